//! The paper's formulas literally, in f64 with the whole row of exponentials: the oracles of the fast kernels.

use super::modes::{Deltas, Lambda};
use super::params::{EPSILON, KernelConfig, Params, Variant};
use crate::complex::{C64, reciprocal_eps};

/// K: `[C, H, L]` as the paper's listing (Fig. 6) computes it; the exp variants by Prop. 1(a).
///
/// # Panics
/// If a slice does not fit `config`, or `config.len != config.norm_len`.
pub fn kernel_listing(config: &KernelConfig, params: &Params<f64>) -> Vec<f64> {
    let len = config.len;
    literal(config, params, |lambda, z, w| {
        let positive = lambda.re > 0.0;
        let (shift, z_neg) = if positive { (z * (len - 1) as f64, -z) } else { (C64::ZERO, z) };
        let scaled = match config.variant {
            Variant::Softmax => {
                let num = z_neg.exp() - 1.0;
                let den = (z_neg * len as f64).exp() - 1.0;
                w * num * reciprocal_eps(den * lambda, EPSILON)
            }
            Variant::Exp => w * (z.exp() - 1.0) * lambda.conj() / lambda.norm_sqr().max(EPSILON),
            Variant::ExpNoScale => w,
        };
        (0..len).map(|l| scaled * (z * l as f64 - shift).exp()).collect()
    })
}

/// K: `[C, H, L]` by Alg. 1 with softmax_ε as §A.2 defines it: ε is added to |Σ exp|², and Λ is divided by plainly.
///
/// Differs from [`kernel_listing`] by about ε, except near the poles λΔL = 2πik and near λ = 0.
///
/// # Panics
/// As [`kernel_listing`], or if the variant is not softmax.
pub fn kernel_softmax_eps(config: &KernelConfig, params: &Params<f64>) -> Vec<f64> {
    assert_eq!(config.variant, Variant::Softmax);
    let len = config.len;
    literal(config, params, |lambda, z, w| {
        let max = if lambda.re > 0.0 { z * (len - 1) as f64 } else { C64::ZERO };
        let row: Vec<C64> = (0..len).map(|l| (z * l as f64 - max).exp()).collect();
        let normaliser = reciprocal_eps(row.iter().sum(), EPSILON);
        row.into_iter().map(|e| w / lambda * e * normaliser).collect()
    })
}

/// K[c, h, l] = Re Σ_n row(λ_n, λ_nΔ_h, W[c, h, n])_l
fn literal(
    config: &KernelConfig,
    params: &Params<f64>,
    row: impl Fn(C64, C64, C64) -> Vec<C64>,
) -> Vec<f64> {
    assert_eq!(config.len, config.norm_len, "the reference computes whole kernels");
    params.validate("kernel reference", config).expect("parameters fit the configuration");
    let mut lambda = Lambda::with_capacity(config);
    lambda.set(config, params);
    let mut k = vec![0.0; config.channels * config.h * config.len];
    for (at, k) in k.chunks_exact_mut(config.len).enumerate() {
        let h = at % config.h;
        let delta = Deltas::for_channel(config, params, h);
        for (mode, &value) in lambda.system(h).0.iter().enumerate() {
            let z = C64::new(value.re * delta.re, value.im * delta.im);
            let w = 2 * (at * config.n + mode);
            let w = C64::new(params.w[w], params.w[w + 1]);
            for (k, term) in k.iter_mut().zip(row(value, z, w)) {
                *k += term.re;
            }
        }
    }
    k
}
