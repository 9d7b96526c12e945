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

use super::cauchy::{BLOCK, Row};
use crate::complex::C64;
use crate::real::dispatch;
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

/// R = U + iy·V
#[inline(always)]
fn resolvent([u, v]: &[Row; 2], y: f64, j: usize) -> C64 {
    C64::new(u[0][j] - y * v[1][j], u[1][j] + y * v[0][j])
}

/// The rows of two resolvents.
#[inline(always)]
fn two(sums: &[Row], at: usize) -> [&[Row; 2]; 2] {
    let pair = |i: usize| sums[i..i + 2].try_into().expect("two rows");
    [pair(at), pair(at + 2)]
}

#[inline(always)]
fn inverse(z: C64) -> C64 {
    let scale = 1.0 / z.norm_sqr();
    C64::new(z.re * scale, -z.im * scale)
}

#[inline(always)]
fn put(row: &mut Row, j: usize, z: C64) {
    (row[0][j], row[1][j]) = (z.re, z.im);
}

struct Spectrum<'a> {
    sums: &'a [Row],
    y: &'a [f64; BLOCK],
    spectrum: &'a mut [Row],
}

impl WithSimd for Spectrum<'_> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { sums, y, spectrum } = self;
        let [pb, pp] = two(sums, 0);
        for (channel, out) in spectrum.iter_mut().enumerate() {
            let [cb, cp] = two(sums, rows(channel));
            for j in 0..BLOCK {
                let r = |rows| resolvent(rows, y[j], j);
                let beta = r(pb) * inverse(r(pp) + 1.0);
                put(out, j, (r(cb) - r(cp) * beta) * C64::new(1.0, 0.5 * y[j]));
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
    fn with_simd<S: Simd>(self, _: S) {
        let Self { sums, y, g_spectrum, g_sums } = self;
        let [pb, pp] = two(sums, 0);
        let (shared, own) = g_sums.split_at_mut(rows(0));
        let [g_pb, g_pb_v, g_pp, g_pp_v] = shared else { unreachable!("two resolvents") };
        for (channel, g) in g_spectrum.iter().enumerate() {
            let [_, cp] = two(sums, rows(channel));
            let [g_cb, g_cb_v, g_cp, g_cp_v] = &mut own[4 * channel..][..4] else {
                unreachable!("two resolvents")
            };
            for j in 0..BLOCK {
                let r = |rows| resolvent(rows, y[j], j);
                let kappa = inverse(r(pp) + 1.0);
                let (alpha, beta) = ((r(cp) * kappa).conj(), (r(pb) * kappa).conj());
                let g = C64::new(g[0][j], g[1][j]) * C64::new(1.0, -0.5 * y[j]);
                // V = R/iy: its gradient is −iy times that of U.
                let turned = |g: C64| C64::new(y[j] * g.im, -y[j] * g.re);
                let before = |row: &Row| {
                    if channel == 0 { C64::ZERO } else { C64::new(row[0][j], row[1][j]) }
                };
                let (to_pb, to_pp) = (before(g_pb) - alpha * g, before(g_pp) + alpha * beta * g);
                for (value, u, v) in [
                    (g, &mut *g_cb, &mut *g_cb_v),
                    (-beta * g, &mut *g_cp, &mut *g_cp_v),
                    (to_pb, &mut *g_pb, &mut *g_pb_v),
                    (to_pp, &mut *g_pp, &mut *g_pp_v),
                ] {
                    put(u, j, value);
                    put(v, j, turned(value));
                }
            }
        }
    }
}
