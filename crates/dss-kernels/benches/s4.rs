//! `cargo bench -p dss-kernels --bench s4`: S4 and S4D at the sizes of the paper's tasks.

use divan::{Bencher, black_box};
use dss_kernels::{init, s4, s4d};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

fn main() {
    divan::main();
}

/// (H, N, L) of ListOps, Image, and Path-X or Speech.
const SIZES: [(usize, usize, usize); 3] = [(128, 64, 2048), (512, 64, 1024), (128, 64, 16384)];

fn to_f32(x: impl IntoIterator<Item = f64>) -> Vec<f32> {
    x.into_iter().map(|x| x as f32).collect()
}

/// An S4 layer as initialised: Λ_re, Λ_im, P, B, C̃, Δ_log.
fn s4_layer((h, n, l): (usize, usize, usize)) -> (s4::KernelConfig, [Vec<f32>; 6]) {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let legs = init::nplr_legs(n).unwrap();
    let lambda_re = to_f32(legs.lambda.iter().map(|z| (-z.re).ln()));
    let lambda_im = to_f32(legs.lambda.iter().map(|z| z.im));
    let p = to_f32(legs.p.iter().flat_map(|z| [z.re, z.im]));
    let b = to_f32(legs.b.iter().flat_map(|z| [z.re, z.im]));
    let c = to_f32(init::s4_c(1, h, n / 2, &mut rng));
    let delta_log = to_f32(init::delta_log(h, init::DT_MIN, init::DT_MAX, &mut rng).unwrap());
    let config = s4::KernelConfig::new(h, n, l);
    let mut layer = [lambda_re, lambda_im, p, b, c, delta_log];
    layer[4] = s4::correct_length(&config, &s4_params(&layer)).unwrap();
    (config, layer)
}

fn s4_params([lambda_re, lambda_im, p, b, c, delta_log]: &[Vec<f32>; 6]) -> s4::Params<'_, f32> {
    s4::Params { lambda_re, lambda_im, p, b, c, delta_log }
}

#[divan::bench(args = SIZES)]
fn s4_forward(bencher: Bencher, size: (usize, usize, usize)) {
    let (config, layer) = s4_layer(size);
    let mut plan = s4::Kernel::new(config).unwrap();
    let mut k = vec![0.0; config.h * config.len];
    bencher.bench_local(|| plan.forward(black_box(&s4_params(&layer)), &mut k).unwrap());
}

#[divan::bench(args = SIZES)]
fn s4_backward(bencher: Bencher, size: (usize, usize, usize)) {
    let (config, layer) = s4_layer(size);
    let mut plan = s4::Kernel::new(config).unwrap();
    let dk: Vec<f32> = (0..config.h * config.len).map(|i| (i as f32).sin()).collect();
    let mut grads = layer.clone();
    bencher.bench_local(|| {
        let [lambda_re, lambda_im, p, b, c, delta_log] = &mut grads;
        let grads = s4::ParamGrads { lambda_re, lambda_im, p, b, c, delta_log };
        plan.backward(black_box(&s4_params(&layer)), &dk, grads).unwrap();
    });
}

#[divan::bench]
fn s4_step(bencher: Bencher) {
    let (config, layer) = s4_layer((128, 64, 2048));
    let model = s4::Recurrence::new(config, &s4_params(&layer)).unwrap();
    let mut state = model.state();
    let (u, mut y) = (vec![0.1f32; config.h], vec![0.0; config.h]);
    bencher.bench_local(|| model.step(&mut state, black_box(&u), &mut y).unwrap());
}

/// C -> C̃ for a layer, and back.
#[divan::bench]
fn s4_length_correction(bencher: Bencher) {
    let (config, layer) = s4_layer((128, 64, 2048));
    bencher.bench_local(|| s4::correct_length(&config, black_box(&s4_params(&layer))).unwrap());
}

#[divan::bench]
fn s4_length_uncorrection(bencher: Bencher) {
    let (config, layer) = s4_layer((128, 64, 2048));
    bencher.bench_local(|| s4::uncorrect_length(&config, black_box(&s4_params(&layer))).unwrap());
}

/// An S4D layer as initialised, each feature with its own Λ.
#[divan::bench(args = SIZES)]
fn s4d_forward_and_backward(bencher: Bencher, (h, n, l): (usize, usize, usize)) {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let lambda = init::s4d_lambda(init::S4dInit::Lin, n).unwrap();
    let each = || (0..h).flat_map(|_| &lambda);
    let (lambda_re, lambda_im) =
        (to_f32(each().map(|z| (-z.re).ln())), to_f32(each().map(|z| z.im)));
    let c = to_f32(init::s4_c(1, h, n / 2, &mut rng));
    let delta_log = to_f32(init::delta_log(h, init::DT_MIN, init::DT_MAX, &mut rng).unwrap());
    let params = s4d::Params {
        lambda_re: &lambda_re,
        lambda_im: &lambda_im,
        b: None,
        c: &c,
        delta_log: &delta_log,
    };
    let config = s4d::KernelConfig::new(s4d::Discretisation::ZeroOrderHold, h, n, l);
    let mut plan = s4d::Kernel::new(config).unwrap();
    let mut k = vec![0.0; h * l];
    let mut grads = [lambda_re.clone(), lambda_im.clone(), c.clone(), delta_log.clone()];
    bencher.bench_local(|| {
        plan.forward(black_box(&params), &mut k).unwrap();
        let [lambda_re, lambda_im, c, delta_log] = &mut grads;
        let grads = s4d::ParamGrads { lambda_re, lambda_im, b: None, c, delta_log };
        plan.backward(&params, &k, grads).unwrap();
    });
}
