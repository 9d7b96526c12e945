//! The Woodbury identity: the resolvent of Λ − PP* from four resolvents of Λ, and the bilinear factor.
//!
//! With R_XY = Δ·X(z − ΔΛ)⁻¹Y,
//!
//! K̂ = (1 + iy/2)·(R_CB − R_CP·R_PB/(1 + R_PP)),   2/(1 + ω) = 1 + iy/2 for z = iy = 2(1 − ω)/(1 + ω).
//!
//! On the imaginary axis Re R_PP ≥ 0, so that the quotient has no pole. Backward, with α = R_CP/(1 + R_PP),
//! β = R_PB/(1 + R_PP) and G the gradient of the bracket:
//!
//! g_CB = G,   g_CP = −conj(β)·G,   g_PB = −conj(α)·G,   g_PP = conj(αβ)·G,   the last two summed over the C kernels.

use super::rows::{BLOCK, Row};
use crate::real::{CV, Real, dispatch};
use pulp::{Simd, WithSimd};

/// Rows of the sums U and V of R_PB, R_PP, then of R_CB and R_CP for each of the C kernels.
pub(crate) const fn rows(channels: usize) -> usize {
    4 + 4 * channels
}

/// K̂ of the C kernels at the points iy: sums `[rows]` -> spectrum `[C]`.
pub(crate) fn spectrum(sums: &[Row], y: &[f64; BLOCK], spectrum: &mut [Row]) {
    dispatch(Spectrum { sums, y, spectrum });
}

/// Given the gradient of K̂ `[C]`, writes those of the sums `[rows]`.
pub(crate) fn adjoint(sums: &[Row], y: &[f64; BLOCK], g_spectrum: &[Row], g_sums: &mut [Row]) {
    dispatch(Adjoint { sums, y, g_spectrum, g_sums });
}

/// Vector v of a row.
#[inline(always)]
fn load<S: Simd>(row: &Row, v: usize) -> CV<f64, S> {
    CV { re: S::as_simd_f64s(&row[0]).0[v], im: S::as_simd_f64s(&row[1]).0[v] }
}

#[inline(always)]
fn store<S: Simd>(row: &mut Row, v: usize, z: CV<f64, S>) {
    S::as_mut_simd_f64s(&mut row[0]).0[v] = z.re;
    S::as_mut_simd_f64s(&mut row[1]).0[v] = z.im;
}

/// R = U + iy·V from rows `at` and `at + 1`.
#[inline(always)]
fn resolvent<S: Simd>(s: S, sums: &[Row], at: usize, y: S::f64s, v: usize) -> CV<f64, S> {
    let (first, second) = (load::<S>(&sums[at], v), load::<S>(&sums[at + 1], v));
    CV { re: f64::vfnma(s, y, second.im, first.re), im: f64::vfma(s, y, second.re, first.im) }
}

/// Writes the gradient of U, and that of V = (R − U)/iy: −iy times as much.
#[inline(always)]
fn put_gradient<S: Simd>(s: S, g_sums: &mut [Row], at: usize, y: S::f64s, v: usize, g: CV<f64, S>) {
    store::<S>(&mut g_sums[at], v, g);
    let turned = CV::<f64, S> { re: s.mul_f64s(y, g.im), im: s.neg_f64s(s.mul_f64s(y, g.re)) };
    store::<S>(&mut g_sums[at + 1], v, turned);
}

/// 1/(1 + z)
#[inline(always)]
fn inverse_of_one_plus<S: Simd>(s: S, z: CV<f64, S>) -> CV<f64, S> {
    let one = s.splat_f64s(1.0);
    let re = s.add_f64s(one, z.re);
    let norm = f64::vfma(s, re, re, s.mul_f64s(z.im, z.im));
    let scale = s.div_f64s(one, norm);
    CV { re: s.mul_f64s(re, scale), im: s.neg_f64s(s.mul_f64s(z.im, scale)) }
}

/// 1 + iy/2
#[inline(always)]
fn bilinear<S: Simd>(s: S, y: S::f64s) -> CV<f64, S> {
    CV { re: s.splat_f64s(1.0), im: s.mul_f64s(y, s.splat_f64s(0.5)) }
}

struct Spectrum<'a> {
    sums: &'a [Row],
    y: &'a [f64; BLOCK],
    spectrum: &'a mut [Row],
}

impl WithSimd for Spectrum<'_> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) {
        let Self { sums, y, spectrum } = self;
        for (v, &y) in S::as_simd_f64s(y).0.iter().enumerate() {
            let kappa = inverse_of_one_plus(s, resolvent(s, sums, 2, y, v));
            let beta = resolvent(s, sums, 0, y, v).mul(s, kappa);
            for (channel, out) in spectrum.iter_mut().enumerate() {
                let r_cb = resolvent(s, sums, rows(channel), y, v);
                let r_cp = resolvent(s, sums, rows(channel) + 2, y, v);
                let bracket = r_cb.sub(s, r_cp.mul(s, beta));
                store::<S>(out, v, bracket.mul(s, bilinear(s, y)));
            }
        }
    }
}

struct Adjoint<'a> {
    sums: &'a [Row],
    y: &'a [f64; BLOCK],
    g_spectrum: &'a [Row],
    g_sums: &'a mut [Row],
}

impl WithSimd for Adjoint<'_> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) {
        let Self { sums, y, g_spectrum, g_sums } = self;
        for (v, &y) in S::as_simd_f64s(y).0.iter().enumerate() {
            let kappa = inverse_of_one_plus(s, resolvent(s, sums, 2, y, v));
            let beta = resolvent(s, sums, 0, y, v).mul(s, kappa);
            let (mut g_pb, mut g_pp) = (CV::zero(s), CV::zero(s));
            for (channel, g) in g_spectrum.iter().enumerate() {
                let alpha = resolvent(s, sums, rows(channel) + 2, y, v).mul(s, kappa);
                let g = load::<S>(g, v).mul_conj(s, bilinear(s, y));
                let (to_alpha, to_beta) = (g.mul_conj(s, alpha), g.mul_conj(s, beta));
                g_pb = g_pb.sub(s, to_alpha);
                g_pp = g_pp.add(s, to_alpha.mul_conj(s, beta));
                put_gradient(s, g_sums, rows(channel), y, v, g);
                put_gradient(s, g_sums, rows(channel) + 2, y, v, CV::zero(s).sub(s, to_beta));
            }
            put_gradient(s, g_sums, 0, y, v, g_pb);
            put_gradient(s, g_sums, 2, y, v, g_pp);
        }
    }
}
