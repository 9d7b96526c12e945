//! K `[C, H, L]` of S4, by its generating function on the roots of unity (`dss_kernels::s4` has the derivation).
//!
//! With z = iy = 2(1 − ω)/(1 + ω), y = 2 tan(πk/L) and R_XY = Δ·X(z − ΔΛ)⁻¹Y, the Woodbury identity for A = Λ − PP* reads
//!
//! K̂(ω) = Σ_l K_l·ω^l = (1 + iy/2)·(R_CB − R_CP·R_PB/(1 + R_PP)),   ω = e^{−2πik/L},
//!
//! with C̃ for C. Each R is a sum over conjugate pairs; with w = Δλ and v = Δ·x·y,
//!
//! v/(z − w) + conj(v)/(z − conj(w)) = (p + iy·s)·g,   g = 1/(|w|² − y² − 2iy·Re w),   p = −2 Re(v·conj(w)),   s = 2 Re v.
//!
//! The taps follow by an inverse transform. At ω = −1 (L even) z has no value, and the limit of K̂ is Σ Re v of R_CB.
//!
//! Time and memory O(H·N·L): the `[H, N/2, L/2]` tensors are built. In f64 where the device has it; near a resonance
//! y = Im w the difference above is small, and f32 leaves few digits.

use std::f64::consts::PI;

use burn::tensor::Tensor;
use dss_kernels::s4::LOG_LIMIT;

use super::complex::Complex;
use super::dft::Dft;
use super::kernel::per_channel;
use super::{constant, work_dtype};
use crate::ops::{S4Params, S4Spec};

/// K: `[C, H, taps]` of S4.
///
/// # Panics
/// If the shapes do not fit together.
pub fn s4_kernel(params: &S4Params, spec: &S4Spec) -> Tensor<3> {
    let S4Spec { taps, norm_len: len } = *spec;
    let (device, dtype, work) = (params.c.device(), params.c.dtype(), work_dtype(&params.c));
    let [channels, h, pairs, _] = params.c.dims();
    let exp = |x: &Tensor<1>| x.clone().cast(work).clamp(-LOG_LIMIT, LOG_LIMIT).exp();
    // [S·N/2] -> [1, 1, N/2] or [H, 1, N/2]
    let of_channels = |x: Complex<1>| -> Complex<3> {
        x.map(|x| per_channel(x.unsqueeze(), h, pairs).unsqueeze_dim(1))
    };
    let vector = |x: &Tensor<2>| {
        let modes = x.dims()[0];
        of_channels(Complex::pairs(x.clone().cast(work)).reshape([modes]))
    };

    let delta = exp(&params.delta_log).reshape([h, 1, 1]);
    let lambda = Complex::new(-exp(&params.lambda_re), params.lambda_im.clone().cast(work));
    let w = of_channels(lambda).scale(delta.clone()); // [H, 1, N/2]
    let (p, b) = (vector(&params.p), vector(&params.b));
    let c = Complex::pairs(params.c.clone().cast(work)).reshape([channels, h, pairs]);
    let c = c.map(|c| c.swap_dims(0, 1)).scale(delta.clone()); // [H, C, N/2], times Δ
    let p_conj = p.clone().conj().scale(delta);
    let v_cb = c.clone().mul(b.clone());
    let limit = v_cb.re.clone().sum_dim(2); // [H, C, 1]

    let y = (0..len.div_ceil(2)).map(|k| 2.0 * (PI * k as f64 / len as f64).tan()).collect();
    let y = constant(y, [1, 1, len.div_ceil(2)], &device, work);
    let v = [p_conj.clone().mul(b), p_conj.mul(p.clone()), v_cb, c.mul(p)];
    let r = resolvents(v, w, y.clone());
    let rows = |from, count| r.clone().map(|x| x.narrow(1, from, count));
    let (r_pb, r_pp) = (rows(0, 1), rows(1, 1));
    let (r_cb, r_cp) = (rows(2, channels), rows(2 + channels, channels));
    let kappa = Complex::new(r_pp.re + 1.0, r_pp.im).reciprocal();
    let bracket = r_cb.sub(r_cp.mul(r_pb.mul(kappa)));
    let spectrum = bracket.mul(Complex::new(y.ones_like(), y * 0.5)); // [H, C, ⌈L/2⌉]

    let dft = Dft::exact(len, &device, work);
    let spectrum = whole(spectrum, limit, len).reshape([h * channels, len]);
    let k = dft.inverse(dft.ordered(spectrum)).reshape([h, channels, len]);
    k.narrow(2, 0, taps).swap_dims(0, 1).cast(dtype)
}

/// R = Σ_n (p_n + iy·s_n)·g_n: v four times `[H, rows, N/2]`, w `[H, 1, N/2]`, y `[1, 1, F]` -> `[H, all rows, F]`.
fn resolvents(v: [Complex<3>; 4], w: Complex<3>, y: Tensor<3>) -> Complex<3> {
    let v = Complex::new(
        Tensor::cat(v.iter().map(|v| v.re.clone()).collect(), 1),
        Tensor::cat(v.iter().map(|v| v.im.clone()).collect(), 1),
    );
    let p = (v.re.clone() * w.re.clone() + v.im * w.im.clone()) * -2.0;
    let s = v.re * 2.0;
    let w = w.map(|x| x.swap_dims(1, 2)); // [H, N/2, 1]
    // (Im w − y)(Im w + y) keeps its digits at the resonance.
    let re = w.re.clone().square() + (w.im.clone() - y.clone()) * (w.im + y.clone());
    let g = Complex::new(re, w.re * y.clone() * -2.0).reciprocal(); // [H, N/2, F]
    let (u, v) = (g.clone().map(|g| p.clone().matmul(g)), g.map(|g| s.clone().matmul(g)));
    Complex::new(u.re - y.clone() * v.im, u.im + y * v.re)
}

/// All L frequencies of a real sequence from the first ⌈L/2⌉ and, for even L, that at ω = −1.
fn whole(half: Complex<3>, limit: Tensor<3>, len: usize) -> Complex<3> {
    let zero = limit.zeros_like();
    let join = |half: Tensor<3>, limit: Tensor<3>, sign: f64| {
        let mut parts = vec![half.clone()];
        if len.is_multiple_of(2) {
            parts.push(limit);
        }
        if len > 2 {
            let regular = half.dims()[2];
            parts.push(half.narrow(2, 1, regular - 1).flip([2]) * sign);
        }
        Tensor::cat(parts, 2)
    };
    Complex::new(join(half.re, limit, 1.0), join(half.im, zero, -1.0))
}
