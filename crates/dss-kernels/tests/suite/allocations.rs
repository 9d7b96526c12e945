//! Nothing allocates in the hot calls: a counting allocator around the calling thread.

use crate::common::random::{layer, normal, rng};
use crate::common::to_f32;
use crate::counting;
use dss_kernels::kernel::{Kernel, KernelConfig, Variant};
use dss_kernels::{Conv, Recurrence, Scan};

/// Allocations of the second of two equal calls: the first backward of a convolution makes its accumulators.
fn allocations(mut call: impl FnMut()) -> usize {
    call();
    counting::allocations(call)
}

fn hot_calls() {
    let (b, h, n, l) = (2, 24, 16, 200);
    let config = KernelConfig::new(Variant::Softmax, h, n, l);
    let mut rng = rng(2);
    let owned = layer(&config, true, &mut rng).to_f32();
    let params = owned.params();
    let mut g = owned.clone();
    let u = to_f32(&normal(b * l * h, &mut rng));
    let (mut y, mut du) = (u.clone(), u.clone());
    let (mut k, mut dk) = (vec![0.0; h * l], vec![0.0; h * l]);

    let mut kernel = Kernel::new(config).unwrap();
    assert_eq!(allocations(|| kernel.forward(&params, &mut k).unwrap()), 0, "kernel forward");
    let backward = || kernel.backward(&params, &k, g.grads()).unwrap();
    assert_eq!(allocations(backward), 0, "kernel backward");

    let mut conv = Conv::new(b, l, h).unwrap();
    assert_eq!(allocations(|| conv.set_kernel(&k).unwrap()), 0, "set_kernel");
    assert_eq!(allocations(|| conv.forward(&u, &mut y).unwrap()), 0, "conv forward");
    let backward = || conv.backward(&u, &y, &mut du, &mut dk).unwrap();
    assert_eq!(allocations(backward), 0, "conv backward");

    let model = Recurrence::new(config, &params).unwrap();
    let mut state = model.state();
    let step = || model.step(&mut state, &u[..h], &mut y[..h]).unwrap();
    assert_eq!(allocations(step), 0, "step");

    let chunk = b * 50 * h;
    let mut scan = Scan::new(config, b, 50).unwrap();
    assert_eq!(allocations(|| scan.set_params(&params).unwrap()), 0, "set_params");
    let mut state = scan.state();
    let forward = || scan.forward(&mut state, &u[..chunk], &mut y[..chunk]).unwrap();
    assert_eq!(allocations(forward), 0, "scan forward");
    let (before, mut d_state) = (scan.state(), scan.state());
    let backward = || {
        scan.backward(&before, &u[..chunk], &y[..chunk], &mut d_state, &mut du[..chunk]).unwrap();
    };
    assert_eq!(allocations(backward), 0, "scan backward");
    let short = b * 7 * h;
    let mut state = scan.state();
    let forward = || scan.forward(&mut state, &u[..short], &mut y[..short]).unwrap();
    assert_eq!(allocations(forward), 0, "a short chunk");
    assert_eq!(allocations(|| scan.finish(&params, g.grads()).unwrap()), 0, "scan finish");
}

/// On one thread, so that every allocation is counted and none is a thread pool's own.
#[test]
fn hot_calls_do_not_allocate() {
    #[cfg(feature = "rayon")]
    rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(hot_calls);
    #[cfg(not(feature = "rayon"))]
    hot_calls();
}
