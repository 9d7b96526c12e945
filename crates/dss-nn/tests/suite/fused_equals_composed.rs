//! The two forms of every operation agree in values and in all gradients, whatever the sizes and options.

use std::sync::Arc;

use crate::common::random::Random;
use crate::common::{grad, values};
use burn::tensor::{DType, Gradients, Int, Tensor, TensorData};
use dss_nn::config::{Delta, Discretisation, Gelu, Pool, Variant};
use dss_nn::ops::{
    BatchStats, BlockParams, BlockSpec, KernelParams, KernelSpec, NormMode, S4Params, S4Spec,
    S4dParams, S4dSpec,
};
use dss_nn::{composed, fused};

/// The least shape has a variance of 0, where 1/√ε makes f32 rounding visible: it is for f64.
fn shapes(dtype: DType) -> Vec<[usize; 3]> {
    let least = if dtype == DType::F64 { [1, 1, 1] } else { [2, 4, 3] };
    vec![least, [3, 17, 5], [2, 64, 8], [2, 130, 33]]
}

const DTYPES: [DType; 2] = [DType::F32, DType::F64];

/// Named numbers of one form.
type Numbers = Vec<(&'static str, Vec<f64>)>;

/// Equal up to rounding: relative to the largest number of each tensor. Some gradients are 0 but for rounding (a bias in
/// front of a norm): the up to B·L = 260 terms of their sums cancel, and leave about √260 = 16 rounding errors of the
/// largest number of all.
fn assert_same(what: &str, dtype: DType, composed: &Numbers, fused: &Numbers) {
    let (tolerance, epsilon) = match dtype {
        DType::F64 => (1e-11, f64::EPSILON),
        _ => (2e-5, f64::from(f32::EPSILON)),
    };
    let largest = |x: &[f64]| x.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    let rounding = 16.0 * epsilon * composed.iter().map(|(_, x)| largest(x)).fold(0.0, f64::max);
    assert_eq!(composed.len(), fused.len(), "{what}");
    for ((name, want), (_, got)) in composed.iter().zip(fused) {
        assert_eq!(want.len(), got.len(), "{what} {name}");
        let bound = rounding.max(tolerance * largest(want));
        for (i, (want, got)) in want.iter().zip(got).enumerate() {
            let error = (want - got).abs();
            assert!(
                error <= bound,
                "{what} {dtype:?} {name}[{i}]: composed {want:e}, fused {got:e}, bound {bound:e}"
            );
        }
    }
}

/// y, and what `gradients` has when Σ y·g is differentiated.
fn results<const D: usize>(
    y: Tensor<D>,
    g: &Tensor<D>,
    gradients: impl FnOnce(&Gradients) -> Numbers,
) -> Numbers {
    assert_eq!(y.dims(), g.dims());
    let grads = (y.clone() * g.clone()).sum().backward();
    let mut all = gradients(&grads);
    all.push(("y", values(&y)));
    all
}

/// The gradients of some tensors under their names.
macro_rules! gradients {
    ($($x:expr),*) => {
        |grads: &Gradients| -> Numbers { vec![$((stringify!($x), grad(&$x, grads))),*] }
    };
}

#[test]
fn kernels() {
    let sizes = [(1, 1, 1, 1, 1), (1, 3, 4, 7, 7), (2, 5, 3, 33, 40), (2, 4, 9, 300, 300)];
    for dtype in DTYPES {
        let mut random = Random::new(1, dtype);
        for variant in [Variant::Softmax, Variant::Exp, Variant::ExpNoScale] {
            for delta in [Delta::Separate, Delta::Tied] {
                for (c, h, n, taps, norm_len) in sizes {
                    let per = delta.per_channel();
                    let lambda = random.leaf([n, 2]);
                    let delta_log = (random.tensor([h, per]) - 3.0).detach().require_grad();
                    let w = random.leaf([c, h, n, 2]);
                    let params = KernelParams { lambda, delta_log, w };
                    let spec = KernelSpec { variant, delta, taps, norm_len };
                    let dk = random.tensor([c, h, taps]);
                    let run = |kernel: fn(&KernelParams, &KernelSpec) -> Tensor<3>| {
                        let gradients = gradients!(params.lambda, params.delta_log, params.w);
                        results(kernel(&params, &spec), &dk, gradients)
                    };
                    let what = format!("{spec:?}, C = {c}, H = {h}, N = {n}");
                    assert_same(&what, dtype, &run(composed::kernel), &run(fused::kernel));
                }
            }
        }
    }
}

/// Λ_re, Λ_im and Δ_log of S4 and S4D: H channels, modes = S·N/2.
fn poles(random: &mut Random, h: usize, modes: usize) -> [Tensor<1>; 3] {
    let lambda_re = (random.tensor([modes]) * 0.3 - 0.7).detach().require_grad();
    let lambda_im = (random.tensor([modes]) * 8.0).detach().require_grad();
    let delta_log = (random.tensor([h]) - 3.0).detach().require_grad();
    [lambda_re, lambda_im, delta_log]
}

/// Channels, H, S, N/2, taps, and the length of C̃.
const S4_SIZES: [[usize; 6]; 9] = [
    [1, 1, 1, 1, 1, 1],
    [1, 2, 1, 1, 2, 2],
    [1, 3, 1, 4, 7, 7],
    [2, 5, 1, 3, 33, 40],
    [2, 4, 1, 9, 300, 300],
    [1, 2, 1, 3, 97, 97],
    [1, 2, 1, 16, 50, 1000],
    [2, 4, 2, 3, 33, 40],
    [1, 3, 3, 4, 60, 60],
];

#[test]
fn s4_kernels() {
    for dtype in DTYPES {
        let mut random = Random::new(5, dtype);
        for [c, h, systems, pairs, taps, norm_len] in S4_SIZES {
            let modes = systems * pairs;
            let [lambda_re, lambda_im, delta_log] = poles(&mut random, h, modes);
            let params = S4Params {
                lambda_re,
                lambda_im,
                p: random.leaf([modes, 2]),
                b: random.leaf([modes, 2]),
                c: random.leaf([c, h, pairs, 2]),
                delta_log,
            };
            let spec = S4Spec { taps, norm_len };
            let dk = random.tensor([c, h, taps]);
            let run = |kernel: fn(&S4Params, &S4Spec) -> Tensor<3>| {
                let S4Params { lambda_re, lambda_im, p, b, c, delta_log } = &params;
                let gradients = gradients!(lambda_re, lambda_im, p, b, c, delta_log);
                results(kernel(&params, &spec), &dk, gradients)
            };
            let what = format!("S4 {spec:?}, C = {c}, H = {h}, S = {systems}, N/2 = {pairs}");
            assert_same(&what, dtype, &run(composed::s4_kernel), &run(fused::s4_kernel));
        }
    }
}

#[test]
fn s4d_kernels() {
    for dtype in DTYPES {
        let mut random = Random::new(6, dtype);
        for discretisation in [Discretisation::Zoh, Discretisation::Bilinear] {
            for [c, h, systems, pairs, taps, _] in S4_SIZES {
                let [lambda_re, lambda_im, delta_log] = poles(&mut random, h, systems * pairs);
                let c_param = random.leaf([c, h, pairs, 2]);
                let params = S4dParams { lambda_re, lambda_im, c: c_param, delta_log };
                let spec = S4dSpec { discretisation, taps };
                let dk = random.tensor([c, h, taps]);
                let run = |kernel: fn(&S4dParams, &S4dSpec) -> Tensor<3>| {
                    let S4dParams { lambda_re, lambda_im, c, delta_log } = &params;
                    let gradients = gradients!(lambda_re, lambda_im, c, delta_log);
                    results(kernel(&params, &spec), &dk, gradients)
                };
                let what = format!("S4D {spec:?}, C = {c}, H = {h}, S = {systems}, N/2 = {pairs}");
                assert_same(&what, dtype, &run(composed::s4d_kernel), &run(fused::s4d_kernel));
            }
        }
    }
}

#[test]
fn blocks() {
    for dtype in DTYPES {
        let mut random = Random::new(2, dtype);
        for shape in shapes(dtype) {
            for bits in 0..32 {
                let bit = |i: usize| bits >> i & 1 == 1;
                for norm in 0..4 {
                    let options = Options {
                        prenorm: bit(0),
                        glu: bit(1),
                        bidirectional: bit(2),
                        masks: bit(3),
                        short_kernel: bit(4),
                        norm,
                    };
                    check_block(&mut random, shape, options);
                }
            }
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Options {
    prenorm: bool,
    glu: bool,
    bidirectional: bool,
    masks: bool,
    short_kernel: bool,
    norm: usize,
}

fn check_block(random: &mut Random, [batch, l, h]: [usize; 3], options: Options) {
    let Options { prenorm, glu, bidirectional, masks, short_kernel, norm } = options;
    let taps = if short_kernel { l.div_ceil(3) } else { l };
    let rows = if glu { 2 * h } else { h };
    let x = random.leaf([batch, l, h]);
    // Scaled so that activations are of the order of 1, as in a trained model.
    let params = BlockParams {
        k: random.scaled([if bidirectional { 2 } else { 1 }, h, taps], taps),
        d: random.leaf([h]),
        out_weight: random.scaled([rows, h], h),
        out_bias: random.leaf([rows]),
        gamma: random.leaf([h]),
        beta: random.leaf([h]),
        past: (masks && !bidirectional).then(|| random.leaf([batch, l, h])),
    };
    let mut mask =
        || random.tensor([batch, h]).greater_scalar(0.0).float().cast(random.dtype) * 2.0;
    let masks = masks.then(|| [mask(), mask()]);
    let lengths = bidirectional.then(|| Arc::from(random.lengths(batch, l)));
    let spec = BlockSpec {
        prenorm,
        norm: norm_mode(random, norm, batch, l, h),
        glu,
        gelu: if short_kernel == prenorm { Gelu::Tanh } else { Gelu::Erf },
        bidirectional,
        lengths,
        masks,
    };
    let g = random.tensor([batch, l, h]);
    let run =
        |block: fn(Tensor<3>, &BlockParams, &BlockSpec) -> (Tensor<3>, Option<BatchStats>)| {
            let (y, stats) = block(x.clone(), &params, &spec);
            let BlockParams { k, d, out_weight, out_bias, gamma, beta, past } = &params;
            let mut numbers = results(y, &g, |grads| {
                let mut all = gradients!(x, k, d, out_weight, out_bias, gamma, beta)(grads);
                all.extend(past.iter().map(|past| ("past", grad(past, grads))));
                all
            });
            add_stats(&mut numbers, stats);
            numbers
        };
    let what = format!("B = {batch}, L = {l}, H = {h}, {options:?}");
    assert_same(&what, random.dtype, &run(composed::block), &run(fused::block));
}

fn norm_mode(random: &mut Random, which: usize, batch: usize, l: usize, h: usize) -> NormMode {
    let eps = 1e-5;
    match which {
        0 => NormMode::Layer { eps },
        1 => NormMode::BatchTrain { eps, lengths: None },
        2 => NormMode::BatchTrain { eps, lengths: Some(Arc::from(random.lengths(batch, l))) },
        _ => {
            let (mean, var) = (random.tensor([h]), random.tensor([h]).abs() + 0.5);
            NormMode::BatchEval { eps, mean, var }
        }
    }
}

fn add_stats(numbers: &mut Numbers, stats: Option<BatchStats>) {
    if let Some(BatchStats { mean, var }) = stats {
        numbers.extend([("mean", values(&mean)), ("variance", values(&var))]);
    }
}

#[test]
fn norms() {
    for dtype in DTYPES {
        let mut random = Random::new(3, dtype);
        for [batch, l, h] in shapes(dtype) {
            for which in 0..4 {
                let mode = norm_mode(&mut random, which, batch, l, h);
                let (x, g) = (random.leaf([batch, l, h]), random.tensor([batch, l, h]));
                let (gamma, beta) = (random.leaf([h]), random.leaf([h]));
                type Norm = fn(
                    Tensor<3>,
                    Tensor<1>,
                    Tensor<1>,
                    &NormMode,
                ) -> (Tensor<3>, Option<BatchStats>);
                let run = |norm: Norm| {
                    let (y, stats) = norm(x.clone(), gamma.clone(), beta.clone(), &mode);
                    let mut numbers = results(y, &g, gradients!(x, gamma, beta));
                    add_stats(&mut numbers, stats);
                    numbers
                };
                let what = format!("B = {batch}, L = {l}, H = {h}, norm {which}");
                assert_same(&what, dtype, &run(composed::norm), &run(fused::norm));
            }
        }
    }
}

#[test]
fn pools() {
    for dtype in DTYPES {
        let mut random = Random::new(4, dtype);
        for [batch, l, h] in shapes(dtype) {
            for pool in [Pool::Mean, Pool::Last, Pool::Cls] {
                let (x, g) = (random.leaf([batch, l, h]), random.tensor([batch, h]));
                let lengths = random.lengths(batch, l);
                let run = |f: fn(Tensor<3>, Pool, &[usize]) -> Tensor<2>| {
                    results(f(x.clone(), pool, &lengths), &g, gradients!(x))
                };
                let what = format!("B = {batch}, L = {l}, H = {h}, {pool:?}");
                assert_same(&what, dtype, &run(composed::pool), &run(fused::pool));
            }
        }
    }
}

#[test]
fn embeddings() {
    for dtype in DTYPES {
        let mut random = Random::new(8, dtype);
        for [batch, l, h] in shapes(dtype) {
            let (table, g) = (random.leaf([5, h]), random.tensor([batch, l, h]));
            let tokens: Vec<i32> = (0..batch * l).map(|i| (i * i % 7 % 5) as i32).collect();
            let tokens = TensorData::new(tokens, [batch, l]);
            let run = |f: fn(Tensor<2, Int>, Tensor<2>) -> Tensor<3>| {
                let tokens = Tensor::<2, Int>::from_data(tokens.clone(), &table.device());
                results(f(tokens, table.clone()), &g, gradients!(table))
            };
            let what = format!("B = {batch}, L = {l}, H = {h}");
            assert_same(&what, dtype, &run(composed::embed), &run(fused::embed));
        }
    }
}

#[test]
fn encoders() {
    for dtype in DTYPES {
        let mut random = Random::new(7, dtype);
        for [batch, l, h] in shapes(dtype) {
            for channels in [1, 3] {
                let (x, g) = (random.leaf([batch, l, channels]), random.tensor([batch, l, h]));
                let (weight, bias) = (random.leaf([h, channels]), random.leaf([h]));
                let run = |f: fn(Tensor<3>, Tensor<2>, Tensor<1>) -> Tensor<3>| {
                    let y = f(x.clone(), weight.clone(), bias.clone());
                    results(y, &g, gradients!(x, weight, bias))
                };
                let what = format!("B = {batch}, L = {l}, H = {h}, {channels} channels");
                assert_same(&what, dtype, &run(composed::encode), &run(fused::encode));
            }
        }
    }
}
