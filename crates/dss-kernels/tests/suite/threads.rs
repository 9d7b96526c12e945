//! Results are equal bit for bit whatever the number of threads.

use crate::common::random::{layer, normal, rng};
use crate::common::to_f32;
use dss_kernels::block::{Block, BlockConfig, BlockParams, Gelu, Norm, NormParams};
use dss_kernels::kernel::{Kernel, KernelConfig, Variant};
use dss_kernels::{Conv, Scan};

/// Kernel, convolution and scan, forward and backward, in f32; every output bit.
fn everything(threads: usize, b: usize, h: usize, l: usize) -> Vec<u32> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| {
        let config = KernelConfig::new(Variant::Softmax, h, 16, l);
        let mut rng = rng(1);
        let owned = layer(&config, true, &mut rng).to_f32();
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
        kernel.backward(&owned.params(), &dk, g.grads()).unwrap();
        let mut scan = Scan::new(config, b, l).unwrap();
        scan.set_params(&owned.params()).unwrap();
        let (before, mut state) = (scan.state(), scan.state());
        let mut scanned = vec![0.0; u.len()];
        scan.forward(&mut state, &u, &mut scanned).unwrap();
        let mut d_state = state.clone();
        let mut d_scanned = vec![0.0; u.len()];
        scan.backward(&before, &u, &dy, &mut d_state, &mut d_scanned).unwrap();
        let mut scan_g = owned.clone();
        scan.finish(&owned.params(), scan_g.grads()).unwrap();
        let both = [k.clone(), k.clone()].concat();
        let mut two_sided = vec![0.0; u.len()];
        conv.set_kernel_bidirectional(&both).unwrap();
        conv.forward(&u, &mut two_sided).unwrap();
        [
            k,
            y,
            du,
            dk,
            g.lambda_re,
            g.lambda_im,
            g.delta_log,
            g.w,
            scanned,
            d_scanned,
            two_sided,
            scan_g.w,
        ]
        .concat()
        .iter()
        .map(|x| x.to_bits())
        .collect()
    })
}

/// A block, forward and backward, in f32; every output bit.
fn block(threads: usize, b: usize, h: usize, l: usize, prenorm: bool) -> Vec<u32> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| {
        let mut rng = rng(2);
        let mut draw = |n: usize| to_f32(&normal(n, &mut rng));
        let (x, k, d, out_weight) = (draw(b * l * h), draw(h * l), draw(h), draw(h * h));
        let (out_bias, gamma, beta, dy) = (draw(h), draw(h), draw(h), draw(b * l * h));
        let norm = NormParams {
            gamma: &gamma,
            beta: &beta,
            eps: 1e-5,
            norm: Norm::BatchTrain { counted: None },
        };
        let params = BlockParams {
            k: &k,
            d: &d,
            out_weight: &out_weight,
            out_bias: &out_bias,
            norm,
            masks: None,
            lengths: None,
            past: None,
        };
        let gelu = Gelu::Erf;
        let config = BlockConfig { l, h, prenorm, glu: false, bidirectional: false, gelu };
        let mut block = Block::new(config).unwrap();
        let (mut y, mut dx) = (vec![0.0; x.len()], vec![0.0; x.len()]);
        let (saved, _) = block.forward(&x, &params, &mut y, true).unwrap();
        let grads = block.backward(&x, &params, saved.unwrap(), &dy, &mut dx).unwrap();
        let all = [y, dx, grads.k, grads.d, grads.out_weight, grads.out_bias, grads.gamma];
        all.concat().iter().map(|x| x.to_bits()).collect()
    })
}

#[test]
fn do_not_change_a_bit_of_a_block() {
    for (b, h, l, prenorm) in
        [(3, 40, 300, false), (70, 3, 100, true), (2, 17, 3000, true), (2, 150, 700, false)]
    {
        let one = block(1, b, h, l, prenorm);
        for threads in [2, 3, 7] {
            assert!(block(threads, b, h, l, prenorm) == one, "{threads} threads, {:?}", (b, h, l));
        }
    }
}

#[test]
fn do_not_change_a_bit() {
    for (b, h, l) in [(3, 40, 100), (9, 3, 64), (1, 17, 33), (1, 150, 40)] {
        let one = everything(1, b, h, l);
        for threads in [2, 3, 7] {
            assert!(everything(threads, b, h, l) == one, "{threads} threads, {:?}", (b, h, l));
        }
    }
}
