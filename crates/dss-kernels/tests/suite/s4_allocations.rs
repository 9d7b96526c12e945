//! Nothing allocates in the hot calls of S4 and S4D: a counting allocator around the calling thread.

use crate::common::random::rng;
use crate::common::s4 as s4_layer;
use crate::counting::allocations;
use dss_kernels::init::{S4dInit, s4d_lambda};
use dss_kernels::{s4, s4d};

fn hot_calls() {
    let (h, n, l) = (5, 16, 200);
    let config = s4::KernelConfig::new(h, n, l);
    let owned = s4_layer::Owned::random(&config, &mut rng(2)).corrected(&config).to_f32();
    let mut g = owned.clone();
    let mut k = vec![0.0; h * l];
    let mut plan = s4::Kernel::new(config).unwrap();
    let forward = || plan.forward(&owned.params(), &mut k).unwrap();
    assert_eq!(allocations(forward), 0, "s4 forward");
    let backward = || plan.backward(&owned.params(), &k, g.grads()).unwrap();
    assert_eq!(allocations(backward), 0, "s4 backward");
    let model = s4::Recurrence::new(config, &owned.params()).unwrap();
    let (mut state, mut y) = (model.state(), vec![0.0; h]);
    let step = || model.step(&mut state, &k[..h], &mut y).unwrap();
    assert_eq!(allocations(step), 0, "s4 step");

    let lambda = s4d_lambda(S4dInit::Lin, n).unwrap();
    let im: Vec<f32> = lambda.iter().map(|z| z.im as f32).collect();
    let (re, c, delta_log) = (vec![-0.7; n / 2], vec![0.5; h * n], vec![-4.0; h]);
    let params =
        s4d::Params { lambda_re: &re, lambda_im: &im, b: None, c: &c, delta_log: &delta_log };
    let rule = s4d::Discretisation::Bilinear;
    let mut plan = s4d::Kernel::new(s4d::KernelConfig::new(rule, h, n, l).systems(1)).unwrap();
    assert_eq!(allocations(|| plan.forward(&params, &mut k).unwrap()), 0, "s4d forward");
    let [mut g_re, mut g_im, mut g_c, mut g_delta] =
        [re.clone(), im.clone(), c.clone(), delta_log.clone()];
    let backward = || {
        let grads = s4d::ParamGrads {
            lambda_re: &mut g_re,
            lambda_im: &mut g_im,
            b: None,
            c: &mut g_c,
            delta_log: &mut g_delta,
        };
        plan.backward(&params, &k, grads).unwrap();
    };
    assert_eq!(allocations(backward), 0, "s4d backward");
}

/// On one thread, so that every allocation is counted and none is a thread pool's own.
#[test]
fn hot_calls_do_not_allocate() {
    #[cfg(feature = "rayon")]
    rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(hot_calls);
    #[cfg(not(feature = "rayon"))]
    hot_calls();
}
