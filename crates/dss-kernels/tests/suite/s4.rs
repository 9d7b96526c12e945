//! S4: the fast kernel against the definition, its gradients against differences, the recurrence against the convolution.

use crate::common::random::{normal, rng};
use crate::common::s4::{Owned, TENSORS};
use crate::common::{error, to_f32, to_f64};
use dss_kernels::s4::{
    Kernel, KernelConfig, LOG_LIMIT, Params, Recurrence, change_length, correct_length,
    kernel_dense, uncorrect_length,
};
use dss_kernels::{C64, Conv, Error, Real};
use proptest::prelude::*;
use rand::RngExt;

fn kernel<T: Real>(config: KernelConfig, params: &Params<T>) -> Vec<T> {
    let mut k = vec![T::ZERO; config.channels * config.h * config.len];
    Kernel::new(config).unwrap().forward(params, &mut k).unwrap();
    k
}

fn gradient<T: Real>(config: KernelConfig, owned: &Owned<T>, dk: &[T]) -> Owned<T> {
    let mut grads = owned.clone();
    Kernel::new(config).unwrap().backward(&owned.params(), dk, grads.grads()).unwrap();
    grads
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    /// K by the generating function is C Ā^l B̄ by dense matrices: odd and even lengths, one mode, two kernels, one
    /// system or several.
    #[test]
    fn equals_the_definition(
        channels in 1..3usize, systems in 1..4usize, times in 1..3usize, pairs in 1..9usize, len in 1..150usize,
        seed in any::<u64>(),
    ) {
        let config = KernelConfig::new(systems * times, 2 * pairs, len).channels(channels).systems(systems);
        let owned = Owned::random(&config, &mut rng(seed));
        let expected = kernel_dense(&config, &owned.params());
        let e = error(&kernel(config, &owned.corrected(&config).params()), &expected);
        prop_assert!(e <= 1e-10, "{e:.1e}");
    }

    /// The head of a kernel is the kernel of fewer taps; C̃ can be taken to another length and back.
    #[test]
    fn lengths(pairs in 1..6usize, len in 20..90usize, taps in 1..20usize, seed in any::<u64>()) {
        let config = KernelConfig::new(2, 2 * pairs, len).systems(1 + pairs % 2);
        let free = Owned::random(&config, &mut rng(seed));
        let owned = free.clone().corrected(&config);
        let whole = kernel(config, &owned.params());
        let head: Vec<f64> = whole.chunks_exact(len).flat_map(|k| k[..taps].to_vec()).collect();
        let short = KernelConfig { len: taps, norm_len: taps, ..config };
        prop_assert!(error(&kernel(short.norm_len(len), &owned.params()), &head) <= 1e-11);
        let shorter = Owned { c: change_length(&config, &owned.params(), taps).unwrap(), ..owned.clone() };
        prop_assert!(error(&kernel(short, &shorter.params()), &head) <= 1e-8);
        let back = uncorrect_length(&config, &owned.params()).unwrap();
        prop_assert!(error(&back, &free.c) <= 1e-9);
    }

    /// Any finite parameters: kernels and gradients stay finite, in both precisions.
    #[test]
    fn never_nan(len in 1..70usize, seed in any::<u64>()) {
        let mut rng = rng(seed);
        let config = KernelConfig::new(3, 6, len);
        let mut wild = |n: usize, range: f64| -> Vec<f64> {
            (0..n)
                .map(|_| match rng.random_range(0..4) {
                    0 => 0.0,
                    1 => rng.random_range(-1.0..1.0),
                    2 => 50.0 * rng.random_range(-1.0..1.0),
                    _ => rng.random_range(-1.0..1.0) * 10f64.powf(rng.random_range(-30.0..range)),
                })
                .collect()
        };
        let owned = Owned {
            lambda_re: wild(3, 3.0),
            lambda_im: wild(3, 30.0),
            p: wild(6, 30.0),
            b: wild(6, 30.0),
            c: wild(18, 30.0),
            delta_log: wild(3, 3.0),
        };
        let finite = |x: &[f64]| x.iter().all(|x| x.is_finite());
        let k = kernel(config, &owned.params());
        let mut g = gradient(config, &owned, &vec![1.0; k.len()]);
        prop_assert!(finite(&k) && g.tensors().iter().all(|x| finite(x)), "{owned:?}");
        let owned = owned.to_f32();
        let k = kernel(config, &owned.params());
        let mut g = gradient(config, &owned, &vec![1.0; k.len()]);
        prop_assert!(finite(&to_f64(&k)) && g.tensors().iter().all(|x| finite(&to_f64(x))), "{owned:?}");
    }
}

/// Every gradient against fourth-order differences: odd and even lengths, two kernels, the head of a longer kernel.
#[test]
fn gradients() {
    for config in [
        KernelConfig::new(3, 10, 45).channels(2),
        KernelConfig::new(4, 6, 48).systems(2),
        KernelConfig::new(3, 4, 31).systems(3).channels(2),
        KernelConfig::new(2, 2, 1),
        KernelConfig::new(2, 8, 20).norm_len(40),
    ] {
        let mut rng = rng(3);
        let mut owned = Owned::random(&config, &mut rng).corrected(&config);
        let g = normal(config.channels * config.h * config.len, &mut rng);
        let loss = |owned: &Owned<f64>| -> f64 {
            kernel(config, &owned.params()).iter().zip(&g).map(|(k, g)| k * g).sum()
        };
        let mut analytic = gradient(config, &owned, &g);
        for (tensor, name) in TENSORS.into_iter().enumerate() {
            let analytic = analytic.tensors()[tensor].clone();
            let scale = analytic.iter().fold(1e-3f64, |m, g| m.max(g.abs()));
            for (i, &analytic) in analytic.iter().enumerate().step_by(analytic.len() / 9 + 1) {
                let x = owned.tensors()[tensor][i];
                let step = 1e-4 * x.abs().max(1e-2);
                let mut at = |steps: f64| {
                    owned.tensors()[tensor][i] = x + steps * step;
                    loss(&owned)
                };
                let numeric = (8.0 * (at(1.0) - at(-1.0)) - (at(2.0) - at(-2.0))) / (12.0 * step);
                owned.tensors()[tensor][i] = x;
                let error = (numeric - analytic).abs() / scale;
                assert!(error <= 1e-7, "{config:?} {name}[{i}]: {analytic}, differences {numeric}");
            }
        }
    }
}

/// A layer as initialised, H = 4, N = 64, S systems.
fn initialised(len: usize, systems: usize) -> (KernelConfig, Owned<f64>) {
    let config = KernelConfig::new(4, 64, len).systems(systems);
    let legs = dss_kernels::init::nplr_legs(64).unwrap();
    let mut owned = Owned::random(&config, &mut rng(11));
    // System s is s times as fast.
    let flat = |x: &[C64]| x.repeat(systems).iter().flat_map(|z| [z.re, z.im]).collect();
    let scaled = |z: &C64, at: usize| z * (1 + at / legs.lambda.len()) as f64;
    let lambda: Vec<C64> =
        legs.lambda.repeat(systems).iter().enumerate().map(|(at, z)| scaled(z, at)).collect();
    owned.lambda_re = lambda.iter().map(|z| (-z.re).ln()).collect();
    owned.lambda_im = lambda.iter().map(|z| z.im).collect();
    (owned.p, owned.b) = (flat(&legs.p), flat(&legs.b));
    (config, owned)
}

/// 16384 steps, one at a time, against kernel and convolution, in both precisions.
#[test]
fn recurrence_agrees_at_16384() {
    let len = 16384;
    for systems in [1, 2, 4] {
        let (config, owned) = initialised(len, systems);
        let owned = owned.corrected(&config);
        let u = normal(len * config.h, &mut rng(5));
        let wide = difference(config, &owned, &u);
        let narrow = difference(config, &owned.to_f32(), &to_f32(&u));
        println!("S = {systems}: f64 {wide:.1e}, f32 {narrow:.1e}");
        assert!(wide <= 1e-10 && narrow <= 1e-5, "S = {systems}: {wide:.1e}, {narrow:.1e}");
    }
}

fn difference<T: Real>(config: KernelConfig, owned: &Owned<T>, u: &[T]) -> f64 {
    let k = kernel(config, &owned.params());
    let mut conv = Conv::new(1, config.len, config.h).unwrap();
    conv.set_kernel(&k).unwrap();
    let (mut convolved, mut stepped) = (u.to_vec(), u.to_vec());
    conv.forward(u, &mut convolved).unwrap();
    let model = Recurrence::new(config, &owned.params()).unwrap();
    model.run(&mut model.state(), u, &mut stepped).unwrap();
    let wide = |x: &[T]| x.iter().map(|x| x.to_f64()).collect::<Vec<_>>();
    error(&wide(&stepped), &wide(&convolved))
}

/// f32 results are the f64 ones of the same parameters, rounded.
#[test]
fn f32_is_the_rounded_f64() {
    let len = 2048;
    let (config, owned) = initialised(len, 1);
    let narrow = owned.corrected(&config).to_f32();
    let wide = narrow.map(to_f64);
    let (k, exact_k) = (kernel(config, &narrow.params()), kernel(config, &wide.params()));
    let dk = to_f32(&normal(k.len(), &mut rng(7)));
    let mut g = gradient(config, &narrow, &dk);
    let mut exact = gradient(config, &wide, &to_f64(&dk));
    assert!(k.iter().zip(&exact_k).all(|(k, &e)| *k == e as f32));
    for (g, exact) in g.tensors().iter().zip(exact.tensors()) {
        assert!(g.iter().zip(exact.iter()).all(|(g, &e)| *g == e as f32));
    }
}

/// A saved state resumes as if nothing had happened; a stream in a batch runs as alone.
#[test]
fn states() {
    let config = KernelConfig::new(3, 10, 50).channels(2).systems(3);
    let owned = Owned::random(&config, &mut rng(1)).corrected(&config);
    let model = Recurrence::new(config, &owned.params()).unwrap();
    let u = normal(20 * 3, &mut rng(2));
    let (mut state, mut y) = (model.state(), vec![0.0; 20 * 6]);
    model.run(&mut state, &u, &mut y).unwrap();
    let (mut half, mut tail) = (model.state(), vec![0.0; 10 * 6]);
    model.run(&mut half, &u[..30], &mut tail).unwrap();
    let mut restored = model.state_from(half.position(), &model.values(&half)).unwrap();
    model.run(&mut restored, &u[30..], &mut tail).unwrap();
    assert!(error(&tail, &y[60..]) < 1e-13);
    assert_eq!(restored.position(), state.position());

    let mut streams = [model.state(), half];
    let mut out = vec![0.0; 12];
    model.step_batch(&mut streams, &[&u[..3], &u[30..33]].concat(), &mut out).unwrap();
    assert_eq!(out[..6], y[..6]);
    assert!(error(&out[6..], &y[60..66]) < 1e-13);
}

/// Beyond the limit of the logarithms nothing changes any more, and the gradient says so.
#[test]
fn limits() {
    let config = KernelConfig::new(2, 4, 16);
    let mut owned = Owned::random(&config, &mut rng(4)).corrected(&config);
    owned.delta_log = vec![LOG_LIMIT, LOG_LIMIT + 5.0];
    owned.c.copy_within(..4, 4);
    let k = kernel(config, &owned.params());
    assert_eq!(k[..16], k[16..]);
    assert_eq!(gradient(config, &owned, &vec![1.0; 32]).delta_log[1], 0.0);
}

#[test]
fn errors_say_what_is_wrong() {
    let invalid =
        |config: KernelConfig| matches!(Kernel::<f32>::new(config), Err(Error::Invalid { .. }));
    assert!(invalid(KernelConfig::new(2, 7, 16)) && invalid(KernelConfig::new(0, 8, 16)));
    assert!(invalid(KernelConfig::new(2, 8, 16).norm_len(15)));
    assert!(invalid(KernelConfig::new(4, 8, 16).systems(3)));
    assert!(invalid(KernelConfig::new(4, 8, 16).systems(0)));
    let config = KernelConfig::new(2, 8, 16);
    let mut owned = Owned::random(&config, &mut rng(4));
    // Ā = I to the last bit: there is no way back from C̃ = 0.
    let original = owned.clone();
    owned.delta_log[1] = -LOG_LIMIT;
    owned.lambda_im.fill(0.0);
    owned.p.fill(0.0);
    owned.c = correct_length(&config, &owned.params()).unwrap();
    let got = uncorrect_length(&config, &owned.params());
    assert!(matches!(got, Err(Error::Singular { .. })), "{got:?}");
    let mut owned = original;
    owned.p[3] = f64::NAN;
    let got = Kernel::new(config).unwrap().forward(&owned.params(), &mut [0.0; 32]);
    assert!(matches!(got, Err(Error::NonFinite { name: "p", index: 3, .. })));
    owned.p.pop();
    let got = Kernel::new(config).unwrap().forward(&owned.params(), &mut [0.0; 32]);
    assert!(matches!(got, Err(Error::Shape { name: "p", expected: 8, got: 7, .. })));
}

/// Results are equal bit for bit whatever the number of threads.
#[cfg(feature = "rayon")]
#[test]
fn threads_do_not_change_a_bit() {
    let config = KernelConfig::new(18, 12, 90).channels(2).systems(6);
    let all = |threads: usize| -> Vec<u64> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let owned = Owned::random(&config, &mut rng(1)).corrected(&config);
            let k = kernel(config, &owned.params());
            let mut g = gradient(config, &owned, &k);
            let g: Vec<f64> = g.tensors().iter().flat_map(|x| x.to_vec()).collect();
            [owned.c, k, g].concat().iter().map(|x| x.to_bits()).collect()
        })
    };
    let one = all(1);
    for threads in [2, 3, 7] {
        assert!(all(threads) == one, "{threads} threads");
    }
}
