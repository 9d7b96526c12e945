//! S4D: kernel, gradients and recurrence against the direct sum.

use crate::common::random::{normal, rng};
use crate::common::{error, to_f32, to_f64};
use dss_kernels::init::{self, S4dInit};
use dss_kernels::s4d::{Discretisation, Kernel, KernelConfig, ParamGrads, Params, recurrence};
use dss_kernels::{C64, Conv, Error, Real};
use rand::{Rng, RngExt};

const RULES: [Discretisation; 2] = [Discretisation::ZeroOrderHold, Discretisation::Bilinear];
const INITS: [S4dInit; 3] = [S4dInit::Legs, S4dInit::Inv, S4dInit::Lin];
const TENSORS: [&str; 5] = ["lambda_re", "lambda_im", "b", "c", "delta_log"];

/// Λ_re, Λ_im, B, C, Δ_log.
type Owned<T> = [Vec<T>; 5];

fn params<T>([lambda_re, lambda_im, b, c, delta_log]: &Owned<T>) -> Params<'_, T> {
    Params { lambda_re, lambda_im, b: Some(b), c, delta_log }
}

fn grads<T>([lambda_re, lambda_im, b, c, delta_log]: &mut Owned<T>) -> ParamGrads<'_, T> {
    ParamGrads { lambda_re, lambda_im, b: Some(b), c, delta_log }
}

/// As initialised, with B moved away from 1.
fn layer(config: &KernelConfig, init: S4dInit, rng: &mut impl Rng) -> Owned<f64> {
    let lambda = init::s4d_lambda(init, config.n).unwrap();
    let each = || (0..config.systems).flat_map(|_| &lambda);
    [
        each().map(|z| (-z.re * rng.random_range(0.5..1.5)).ln()).collect(),
        each().map(|z| z.im).collect(),
        each().flat_map(|_| [1.0, 0.3]).collect(),
        init::s4_c(config.channels, config.h, config.pairs(), rng),
        init::delta_log(config.h, init::DT_MIN, init::DT_MAX, rng).unwrap(),
    ]
}

fn kernel<T: Real>(config: KernelConfig, params: &Params<T>) -> Vec<T> {
    let mut k = vec![T::ZERO; config.channels * config.h * config.len];
    Kernel::new(config).unwrap().forward(params, &mut k).unwrap();
    k
}

fn gradient<T: Real>(config: KernelConfig, owned: &Owned<T>, dk: &[T]) -> Owned<T> {
    let mut g = owned.clone();
    Kernel::new(config).unwrap().backward(&params(owned), dk, grads(&mut g)).unwrap();
    g
}

/// K_l = 2 Re Σ C B̄ ā^l, the powers one after the other.
fn direct(config: &KernelConfig, [re, im, b, c, delta_log]: &Owned<f64>) -> Vec<f64> {
    let pairs = config.pairs();
    let complex = |x: &[f64], i: usize| C64::new(x[2 * i], x[2 * i + 1]);
    let mut k = vec![0.0; config.channels * config.h * config.len];
    for (row, k) in k.chunks_exact_mut(config.len).enumerate() {
        let delta = delta_log[row % config.h].exp();
        for n in 0..pairs {
            let at = row % config.h % config.systems * pairs + n;
            let lambda = C64::new(-re[at].exp(), im[at]);
            let (a, b_bar) = match config.discretisation {
                Discretisation::ZeroOrderHold => {
                    let a = (lambda * delta).exp();
                    (a, complex(b, at) * (a - 1.0) / lambda)
                }
                Discretisation::Bilinear => {
                    let below = 1.0 - lambda * delta / 2.0;
                    ((1.0 + lambda * delta / 2.0) / below, complex(b, at) * delta / below)
                }
            };
            let mut x = 2.0 * complex(c, row * pairs + n) * b_bar;
            for k in k.iter_mut() {
                *k += x.re;
                x *= a;
            }
        }
    }
    k
}

/// All initialisations and rules, Λ shared, in groups and per feature, one and two kernels.
fn cases() -> Vec<(KernelConfig, S4dInit)> {
    let mut all = Vec::new();
    for rule in RULES {
        for init in INITS {
            for (systems, channels, len) in [(1, 1, 37), (2, 2, 64), (4, 1, 300)] {
                let config =
                    KernelConfig::new(rule, 4, 10, len).systems(systems).channels(channels);
                all.push((config, init));
            }
        }
    }
    all
}

#[test]
fn equals_the_direct_sum() {
    for (config, init) in cases() {
        let owned = layer(&config, init, &mut rng(1));
        let exact = direct(&config, &owned);
        let e = error(&kernel(config, &params(&owned)), &exact);
        assert!(e <= 1e-12, "{config:?} {init:?}: {e:.1e}");
        // The same parameters in f32.
        let narrow: Owned<f32> = owned.clone().map(|x| to_f32(&x));
        let exact = direct(&config, &narrow.clone().map(|x| to_f64(&x)));
        let e = error(&to_f64(&kernel(config, &params(&narrow))), &exact);
        assert!(e <= 1e-6, "{config:?} {init:?} f32: {e:.1e}");
        // Without B it is 1.
        let mut ones = owned.clone();
        ones[2] = (0..ones[2].len()).map(|i| f64::from(u8::from(i % 2 == 0))).collect();
        let without = Params { b: None, ..params(&owned) };
        assert_eq!(kernel(config, &without), kernel(config, &params(&ones)));
    }
}

#[test]
fn gradients() {
    for (config, init) in cases() {
        let mut rng = rng(3);
        let mut owned = layer(&config, init, &mut rng);
        // A mode so slow that Δλ is tiny, and one whose step is almost 0 under the bilinear rule.
        owned[0][0] = -12.0;
        owned[1][0] = 1e-4;
        let slow = config.h - 1;
        (owned[0][1], owned[1][1], owned[4][slow]) = (0.02, 0.0, 2f64.ln());
        let g = normal(config.channels * config.h * config.len, &mut rng);
        let loss = |owned: &Owned<f64>| -> f64 {
            kernel(config, &params(owned)).iter().zip(&g).map(|(k, g)| k * g).sum()
        };
        let analytic = gradient(config, &owned, &g);
        for (tensor, name) in TENSORS.into_iter().enumerate() {
            let scale = analytic[tensor].iter().fold(1e-3f64, |m, g| m.max(g.abs()));
            for (i, &analytic) in analytic[tensor].iter().enumerate() {
                let x = owned[tensor][i];
                let step = 1e-4 * x.abs().max(1e-2);
                let mut at = |steps: f64| {
                    owned[tensor][i] = x + steps * step;
                    loss(&owned)
                };
                let numeric = (8.0 * (at(1.0) - at(-1.0)) - (at(2.0) - at(-2.0))) / (12.0 * step);
                owned[tensor][i] = x;
                let error = (numeric - analytic).abs() / scale;
                assert!(error <= 1e-6, "{config:?} {init:?} {name}[{i}]: {analytic}, {numeric}");
            }
        }
    }
}

/// 16384 steps, one at a time, against kernel and convolution, in both precisions.
#[test]
fn recurrence_agrees_at_16384() {
    fn difference<T: Real>(config: KernelConfig, owned: &Owned<T>, u: &[T]) -> f64 {
        let mut conv = Conv::new(1, config.len, config.h).unwrap();
        conv.set_kernel(&kernel(config, &params(owned))).unwrap();
        let (mut convolved, mut stepped) = (u.to_vec(), u.to_vec());
        conv.forward(u, &mut convolved).unwrap();
        let model = recurrence(config, &params(owned)).unwrap();
        model.run(&mut model.state(), u, &mut stepped).unwrap();
        let wide = |x: &[T]| x.iter().map(|x| x.to_f64()).collect::<Vec<_>>();
        error(&wide(&stepped), &wide(&convolved))
    }
    let len = 16384;
    for rule in RULES {
        for init in INITS {
            let config = KernelConfig::new(rule, 2, 64, len);
            let owned = layer(&config, init, &mut rng(5));
            let u = normal(len * config.h, &mut rng(6));
            let wide = difference(config, &owned, &u);
            let narrow = difference(config, &owned.map(|x| to_f32(&x)), &to_f32(&u));
            println!("{rule:?} {init:?}: f64 {wide:.1e}, f32 {narrow:.1e}");
            assert!(wide <= 1e-10 && narrow <= 1e-5, "{rule:?} {init:?}: {wide:.1e}, {narrow:.1e}");
        }
    }
}

/// Wild parameters, and the one place where a bilinear step is exactly 0: everything stays finite.
#[test]
fn never_nan() {
    let mut rng = rng(9);
    for case in 0..200 {
        let config = KernelConfig::new(RULES[case % 2], 2, 6, 1 + case % 50);
        let mut wild = |n: usize, range: f64| -> Vec<f32> {
            (0..n)
                .map(|_| match rng.random_range(0..4) {
                    0 => 0.0,
                    1 => rng.random_range(-1.0..1.0),
                    2 => 150.0 * rng.random_range(-1.0..1.0f32),
                    _ => {
                        rng.random_range(-1.0..1.0)
                            * 10f32.powf(rng.random_range(-30.0..range as f32))
                    }
                })
                .collect()
        };
        // Δλ = −2 where Λ_re = Λ_im = 0 and Δ = 2.
        let mut owned: Owned<f32> =
            [wild(6, 3.0), wild(6, 37.0), wild(12, 37.0), wild(12, 37.0), wild(2, 3.0)];
        (owned[0][0], owned[1][0], owned[4][0]) = (0.0, 0.0, 2f32.ln());
        let k = kernel(config, &params(&owned));
        let g = gradient(config, &owned, &vec![1.0; k.len()]);
        assert!(k.iter().all(|k| k.is_finite()), "{owned:?}");
        assert!(g.iter().all(|g| g.iter().all(|g| g.is_finite())), "{owned:?}");
    }
}

#[test]
fn errors_say_what_is_wrong() {
    let config = KernelConfig::new(RULES[0], 4, 8, 16);
    for config in [config.systems(3), config.systems(0), KernelConfig { n: 5, ..config }] {
        assert!(matches!(Kernel::<f32>::new(config), Err(Error::Invalid { .. })), "{config:?}");
    }
    let mut owned = layer(&config, S4dInit::Lin, &mut rng(1));
    owned[2][5] = f64::INFINITY;
    let got = Kernel::new(config).unwrap().forward(&params(&owned), &mut [0.0; 64]);
    assert!(matches!(got, Err(Error::NonFinite { name: "b", index: 5, .. })));
}

/// Results are equal bit for bit whatever the number of threads.
#[cfg(feature = "rayon")]
#[test]
fn threads_do_not_change_a_bit() {
    let config = KernelConfig::new(RULES[0], 18, 12, 90).systems(6);
    let all = |threads: usize| -> Vec<u64> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let owned = layer(&config, S4dInit::Inv, &mut rng(1));
            let k = kernel(config, &params(&owned));
            let g = gradient(config, &owned, &k).concat();
            [k, g].concat().iter().map(|x| x.to_bits()).collect()
        })
    };
    let one = all(1);
    for threads in [2, 3, 7] {
        assert!(all(threads) == one, "{threads} threads");
    }
}
