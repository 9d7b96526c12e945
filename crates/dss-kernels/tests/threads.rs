//! Results are equal bit for bit whatever the number of threads.
#![cfg(feature = "rayon")]
#![allow(missing_docs)]

mod common;

use common::random::{layer, normal, rng};
use common::{Owned, to_f32};
use dss_kernels::kernel::{Kernel, KernelConfig, ParamGrads, Variant};
use dss_kernels::{Conv, Scan};

/// Kernel, convolution and scan, forward and backward, in f32; every output bit.
fn everything(threads: usize, b: usize, h: usize, l: usize) -> Vec<u32> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| {
        let config = KernelConfig::new(Variant::Softmax, h, 16, l);
        let mut rng = rng(1);
        let owned = layer(&config, true, &mut rng);
        let owned = Owned {
            lambda_re: to_f32(&owned.lambda_re),
            lambda_im: to_f32(&owned.lambda_im),
            delta_log: to_f32(&owned.delta_log),
            w: to_f32(&owned.w),
        };
        let u = to_f32(&normal(b * l * h, &mut rng));
        let dy = to_f32(&normal(b * l * h, &mut rng));
        let (mut k, mut dk) = (vec![0.0; h * l], vec![0.0; h * l]);
        let (mut y, mut du) = (vec![0.0; u.len()], vec![0.0; u.len()]);
        let mut kernel = Kernel::new(config).unwrap();
        kernel.forward(&owned.params(), &mut k).unwrap();
        let mut conv = Conv::new(b, l, h).unwrap();
        conv.set_kernel(&k).unwrap();
        conv.forward(&u, &mut y).unwrap();
        conv.backward(&u, &dy, &mut du, &mut dk).unwrap();
        let mut g = owned.clone();
        kernel
            .backward(
                &owned.params(),
                &dk,
                ParamGrads {
                    lambda_re: &mut g.lambda_re,
                    lambda_im: &mut g.lambda_im,
                    delta_log: &mut g.delta_log,
                    w: &mut g.w,
                },
            )
            .unwrap();
        let mut scan = Scan::new(config, b, l).unwrap();
        scan.set_params(&owned.params()).unwrap();
        let (before, mut state) = (scan.state(), scan.state());
        let mut scanned = vec![0.0; u.len()];
        scan.forward(&mut state, &u, &mut scanned).unwrap();
        let mut d_state = state.clone();
        let mut d_scanned = vec![0.0; u.len()];
        scan.backward(&before, &u, &dy, &mut d_state, &mut d_scanned).unwrap();
        [k, y, du, dk, g.lambda_re, g.lambda_im, g.delta_log, g.w, scanned, d_scanned]
            .concat()
            .iter()
            .map(|x| x.to_bits())
            .collect()
    })
}

#[test]
fn do_not_change_a_bit() {
    for (b, h, l) in [(3, 40, 100), (9, 3, 64), (1, 17, 33)] {
        let one = everything(1, b, h, l);
        for threads in [2, 3, 7] {
            assert!(everything(threads, b, h, l) == one, "{threads} threads, {:?}", (b, h, l));
        }
    }
}
