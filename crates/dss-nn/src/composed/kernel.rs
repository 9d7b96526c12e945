//! K `[C, H, L]` from its parameters (§3.1): every kernel is K_l = Re Σ_n c_n·exp(ζ_n·k) with Re ζ ≤ 0.
//!
//! | modes | ζ | k | c |
//! |-------|---|---|---|
//! | softmax, Re λ ≤ 0 | λΔ | l | W·(e^ζ − 1)·reciprocal_ε((e^{ζL} − 1)·λ) |
//! | softmax, Re λ > 0: backwards in time | −λΔ | L−1−l | the same |
//! | exp | λΔ | l | W·(e^ζ − 1)·conj(λ)/max(\|λ\|², ε) |
//! | exp-no-scale | λΔ | l | W |
//!
//! L is the normaliser's length, `norm_len`. Autodiff differentiates just this, so the gradients are the true ones for
//! Re λ > 0 too.
//!
//! With l = a·m + b and m ≈ √L, exp(ζl) = exp(ζma)·exp(ζb): per channel one product `[L/m, 2N]·[2N, m]`, and no
//! `[H, N, L]` tensor. The phases Im(ζ)·l reach 10⁶ rad, where f32 has no digits left; so the powers are made in f64 and
//! rounded once, on devices that have f64.

use burn::tensor::{DType, Tensor};
use dss_kernels::kernel::{DELTA_LOG_LIMIT, EPSILON};

use super::complex::Complex;
use super::{constant, work_dtype};
use crate::ops::{KernelParams, KernelSpec};
use dss_format::mixer::Variant;

/// K: `[C, H, taps]`.
///
/// # Panics
/// If the shapes do not fit together.
pub fn kernel(params: &KernelParams, spec: &KernelSpec) -> Tensor<3> {
    let dtype = params.w.dtype();
    let modes = modes(params, spec.variant, spec.norm_len);
    let [rows, n] = modes.decaying.dims();
    let forwards = modes.decaying.clone().reshape([1, rows, n]);
    let c = modes.c.clone().scale(forwards.clone());
    let k = exponential_sums(&modes.zeta, c, spec.taps, dtype);
    // More taps than the normaliser has are possible only while no mode runs backwards.
    if spec.variant != Variant::Softmax || spec.taps > spec.norm_len {
        return k;
    }
    // Backwards modes: position l of K is position taps−1−l of a sum that starts `ahead` steps into the kernel.
    let ahead = (spec.norm_len - spec.taps) as f64;
    let [h, n] = modes.zeta.re.dims();
    let start = modes.zeta.clone().map(|x| x * ahead).exp().reshape([1, h, n]);
    let c = modes.c.scale(-forwards + 1.0).mul(start);
    k + exponential_sums(&modes.zeta, c, spec.taps, dtype).flip([2])
}

/// What the parameters mean: exponents and coefficients of all modes.
pub(crate) struct Modes {
    /// ζ: `[H, N]`.
    pub zeta: Complex<2>,
    /// c = W·q: `[C, H, N]`.
    pub c: Complex<3>,
    /// `[1, N]` or `[H, N]`: 1 where Re λ ≤ 0, 0 where the mode runs backwards.
    pub decaying: Tensor<2>,
}

/// The modes of the table above, in f64 where the device has it.
pub(crate) fn modes(params: &KernelParams, variant: Variant, norm_len: usize) -> Modes {
    let work = work_dtype(&params.w);
    let [channels, h, n, _] = params.w.dims();

    let lambda = params.lambda.clone().cast(work).swap_dims(0, 1);
    let (re, im) = (lambda.clone().narrow(0, 0, 1), lambda.narrow(0, 1, 1));
    let (re, im) = (per_channel(re, h, n), per_channel(im, h, n));
    let re = match variant {
        Variant::Softmax => re,
        _ => -re.clamp(-DELTA_LOG_LIMIT, DELTA_LOG_LIMIT).exp(),
    };
    let decaying = re.clone().lower_equal_scalar(0.0).float().cast(work).detach();
    let sign = decaying.clone() * 2.0 - 1.0;

    let delta = params.delta_log.clone().cast(work).clamp(-DELTA_LOG_LIMIT, DELTA_LOG_LIMIT).exp();
    let deltas = delta.dims()[1];
    let delta_re = delta.clone().narrow(1, 0, 1); // [H, 1]
    let delta_im = delta.narrow(1, deltas - 1, 1);
    let zeta = Complex::new(re.clone() * delta_re * sign.clone(), im.clone() * delta_im * sign);
    let lambda = Complex::new(re, im).map(|x| x.expand([h, n]));

    let w = Complex::pairs(params.w.clone().cast(work)).reshape([channels, h, n]);
    let c = match scale(variant, &zeta, lambda, norm_len) {
        Some(q) => w.mul(q.reshape([1, h, n])),
        None => w,
    };
    Modes { zeta, c, decaying }
}

/// `[1, S·N]` of S systems as `[H, N]`, where channel h has the row of system h mod S; `[1, N]` of one system.
pub(super) fn per_channel(x: Tensor<2>, h: usize, n: usize) -> Tensor<2> {
    let systems = x.dims()[1] / n;
    let x = x.reshape([systems, n]);
    if systems == 1 { x } else { x.repeat_dim(0, h / systems) }
}

/// q: `[H, N]`, the factor between W and c; `None` where it is 1.
fn scale(
    variant: Variant,
    zeta: &Complex<2>,
    lambda: Complex<2>,
    norm_len: usize,
) -> Option<Complex<2>> {
    match variant {
        Variant::Softmax => {
            let den = zeta.clone().map(|x| x * norm_len as f64).expm1();
            Some(zeta.clone().expm1().mul(den.mul(lambda).reciprocal_eps(EPSILON)))
        }
        Variant::Exp => {
            let inverse = lambda.norm_sqr().clamp_min(EPSILON).recip();
            Some(zeta.clone().expm1().mul(lambda.conj().scale(inverse)))
        }
        Variant::ExpNoScale => None,
    }
}

/// Re Σ_n c_n·exp(ζ_n·l) for l < taps: ζ `[H, N]`, c `[C, H, N]` -> `[C, H, taps]`.
pub(super) fn exponential_sums(
    zeta: &Complex<2>,
    c: Complex<3>,
    taps: usize,
    dtype: DType,
) -> Tensor<3> {
    let [channels, h, n] = c.re.dims();
    let m = 1 << (usize::BITS - (taps - 1).leading_zeros()).div_ceil(2); // ≥ √taps
    let a = taps.div_ceil(m);
    // [H, N, count]: exp(ζ·step·i)
    let powers = |count: usize, step: usize| {
        let steps = (0..count).map(|i| (i * step) as f64).collect();
        let steps = constant(steps, [1, 1, count], &zeta.re.device(), zeta.re.dtype());
        zeta.clone().reshape([h, n, 1]).map(|x| x * steps.clone()).exp()
    };
    let columns = powers(m, 1);
    let columns = Tensor::cat(vec![columns.re, columns.im], 1).cast(dtype); // [H, 2N, m]
    let rows = powers(a, m).reshape([h, 1, n, a]);
    let c = c.map(|x| x.swap_dims(0, 1)).reshape([h, channels, n, 1]);
    let rows = c.mul(rows);
    let rows = Tensor::cat(vec![rows.re, -rows.im], 2).cast(dtype); // [H, C, 2N, a]
    let rows = rows.swap_dims(2, 3).reshape([h, channels * a, 2 * n]);
    let k = rows.matmul(columns).reshape([h, channels, a * m]);
    k.narrow(2, 0, taps).swap_dims(0, 1)
}
