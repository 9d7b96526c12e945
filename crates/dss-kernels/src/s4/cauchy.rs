//! The Cauchy kernel over conjugate pairs, as small matrix products.
//!
//! With z = iy on the imaginary axis,
//!
//! R(z) = Σ_n v_n/(z − w_n) + conj(v_n)/(z − conj(w_n)) = Σ_n (p_n + iy·s_n)·g_n
//! g_n = 1/((z − w_n)(z − conj(w_n))),   p_n = −2 Re(v_n·conj(w_n)),   s_n = 2 Re v_n
//!
//! Only g depends on both mode and frequency, and it does not depend on v: for a block of frequencies all sums of one
//! channel are one real product [rows × modes]·[modes × 2·BLOCK], where a pair of rows p, s gives U = Σ p·g and
//! V = Σ s·g of one R = U + iy·V.
//!
//! Backward, with Ĝ the gradients of U and V, the gradients of p and s are the product g·Ĝᵀ, those of g the product
//! X = (p, s)ᵀ·Ĝ, and T = −conj(g²)·X, the gradient of 1/g, leads on to w.

use super::rows::{BLOCK, Row, Rows};
use crate::complex::C64;
use crate::product::{Layout, Product};
use crate::real::{Real, dispatch};
use pulp::{Simd, WithSimd};

/// Of the rows that are multiplied.
const LAYOUT: Layout = Layout::Rows(2 * BLOCK);

/// A sum over frequencies, by lanes: adding them up once is cheaper than after every block.
type Lanes = [f64; 8];

/// Tables of one block, and what the backward sums up over the blocks.
pub(crate) struct Cauchy {
    modes: usize,
    rows: usize,
    /// `[modes]`: g.
    g: Rows,
    /// `[modes]`: X.
    x: Rows,
    /// `[modes, rows]`: the gradients of p and s.
    coefficients: Vec<Lanes>,
    /// `[modes]`: Σ Re T and Σ y·Im T.
    denominators: Vec<[Lanes; 2]>,
}

impl Cauchy {
    /// For sums `[rows]`; the rows come in fours.
    pub(crate) fn new(modes: usize, rows: usize) -> Self {
        assert!(rows.is_multiple_of(4));
        Self {
            modes,
            rows,
            g: Rows::new(modes),
            x: Rows::new(modes),
            coefficients: vec![[0.0; 8]; modes * rows],
            denominators: vec![[[0.0; 8]; 2]; modes],
        }
    }

    /// Makes g for poles w at the points iy.
    pub(crate) fn set(&mut self, w: &[C64], y: &[f64; BLOCK]) {
        dispatch(Table { w, y, g: self.g.get_mut() });
    }

    /// sums `[rows]` = coefficients `[rows, modes]` · g
    pub(crate) fn sums(&self, coefficients: &[f64], sums: &mut Rows) {
        let size = [self.rows, 2 * BLOCK, self.modes];
        let (b, c) = (self.g.flat(), sums.flat_mut());
        let (a, a_strides) = (coefficients, [self.modes, 1]);
        Product { size, a, a_strides, b, b_layout: LAYOUT, c, add: false }.run();
    }

    /// Begins a backward pass.
    pub(crate) fn clear(&mut self) {
        self.coefficients.fill([0.0; 8]);
        self.denominators.fill([[0.0; 8]; 2]);
    }

    /// Adds the block that was set, given Ĝ `[rows]`.
    pub(crate) fn add(&mut self, coefficients: &[f64], g_sums: &Rows, y: &[f64; BLOCK]) {
        let Self { modes, rows, g, x, .. } = self;
        // X [modes × 2·BLOCK] = (p, s)ᵀ [modes × rows] · Ĝ [rows × 2·BLOCK]
        let size = [*modes, 2 * BLOCK, *rows];
        let (a, b, c) = (coefficients, g_sums.flat(), x.flat_mut());
        let a_strides = [1, *modes];
        Product { size, a, a_strides, b, b_layout: LAYOUT, c, add: false }.run();
        let sums = &mut self.coefficients;
        dispatch(Gram { modes: *modes, rows: *rows, g: g.flat(), cotangent: g_sums.flat(), sums });
        dispatch(Denominators { g: g.get(), x: x.get(), y, sums: &mut self.denominators });
    }

    /// The gradients of p (row 2r) and s (row 2r + 1) of a mode.
    pub(crate) fn coefficient(&self, mode: usize, row: usize) -> f64 {
        self.coefficients[mode * self.rows + row].iter().sum()
    }

    /// The gradient of w by way of g: 1/g = |w|² − y² − 2iy·Re w.
    pub(crate) fn pole(&self, mode: usize, w: C64) -> C64 {
        let [t, yt] = self.denominators[mode].map(|lanes| lanes.iter().sum::<f64>());
        C64::new(2.0 * (w.re * t - yt), 2.0 * w.im * t)
    }
}

/// The vectors of one part of a row.
#[inline(always)]
fn vectors<S: Simd>(x: &[f64; BLOCK]) -> &[S::f64s] {
    S::as_simd_f64s(x).0
}

/// g of all modes.
struct Table<'a> {
    w: &'a [C64],
    y: &'a [f64; BLOCK],
    g: &'a mut [Row],
}

impl WithSimd for Table<'_> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) {
        let mut g = self.g.chunks_exact_mut(2);
        let mut w = self.w.chunks_exact(2);
        for (w, g) in (&mut w).zip(&mut g) {
            let (first, second) = (Pole::new(s, w[0]), Pole::new(s, w[1]));
            let [[re0, im0], [re1, im1]] = g else { unreachable!("chunks of two") };
            let (re0, im0) = (S::as_mut_simd_f64s(re0).0, S::as_mut_simd_f64s(im0).0);
            let (re1, im1) = (S::as_mut_simd_f64s(re1).0, S::as_mut_simd_f64s(im1).0);
            for (v, &y) in vectors::<S>(self.y).iter().enumerate() {
                let (a_re, a_im, a) = first.denominator(s, y);
                let (b_re, b_im, b) = second.denominator(s, y);
                // One division for two modes: 1/a = b·(1/ab). `LOG_LIMIT` keeps the product in range.
                let inverse = s.div_f64s(s.splat_f64s(1.0), s.mul_f64s(a, b));
                let (over_a, over_b) = (s.mul_f64s(inverse, b), s.mul_f64s(inverse, a));
                (re0[v], im0[v]) = (s.mul_f64s(a_re, over_a), s.mul_f64s(a_im, over_a));
                (re1[v], im1[v]) = (s.mul_f64s(b_re, over_b), s.mul_f64s(b_im, over_b));
            }
        }
        for (&w, [re, im]) in w.remainder().iter().zip(g.into_remainder()) {
            let pole = Pole::new(s, w);
            let (to_re, to_im) = (S::as_mut_simd_f64s(re).0, S::as_mut_simd_f64s(im).0);
            for (v, &y) in vectors::<S>(self.y).iter().enumerate() {
                let (re, im, norm) = pole.denominator(s, y);
                let scale = s.div_f64s(s.splat_f64s(1.0), norm);
                (to_re[v], to_im[v]) = (s.mul_f64s(re, scale), s.mul_f64s(im, scale));
            }
        }
    }
}

/// What the denominators of one pole w = a + ib need, in every lane.
struct Pole<S: Simd> {
    a_squared: S::f64s,
    b: S::f64s,
    two_a: S::f64s,
}

impl<S: Simd> Pole<S> {
    #[inline(always)]
    fn new(s: S, w: C64) -> Self {
        Self {
            a_squared: s.splat_f64s(w.re * w.re),
            b: s.splat_f64s(w.im),
            two_a: s.splat_f64s(2.0 * w.re),
        }
    }

    /// Re d, −Im d and |d|² of d = 1/g = a² + (b − y)(b + y) − 2iya; the factors keep their digits at the resonance
    /// y = b.
    #[inline(always)]
    fn denominator(&self, s: S, y: S::f64s) -> (S::f64s, S::f64s, S::f64s) {
        let (below, above) = (s.sub_f64s(self.b, y), s.add_f64s(self.b, y));
        let re = f64::vfma(s, below, above, self.a_squared);
        let im = s.mul_f64s(self.two_a, y);
        let norm = f64::vfma(s, re, re, s.mul_f64s(im, im));
        (re, im, norm)
    }
}

/// sums `[modes, rows]` += g·Ĝᵀ
struct Gram<'a> {
    modes: usize,
    rows: usize,
    g: &'a [f64],
    cotangent: &'a [f64],
    sums: &'a mut [Lanes],
}

impl WithSimd for Gram<'_> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) {
        let Self { modes, rows, sums, .. } = self;
        let (g, cotangent) = (S::as_simd_f64s(self.g).0, S::as_simd_f64s(self.cotangent).0);
        // Vectors in a row, as a number that the compiler does not know: it would unroll the loop and spill.
        let len = cotangent.len() / rows;
        for row in (0..rows).step_by(4) {
            let cotangent = &cotangent[row * len..][..4 * len];
            let mut mode = 0;
            // As many modes at a time as the registers hold the sums of.
            while S::REGISTER_COUNT >= 32 && mode + 4 <= modes {
                gram::<S, 4>(
                    s,
                    len,
                    &g[mode * len..],
                    cotangent,
                    &mut sums[mode * rows + row..],
                    rows,
                );
                mode += 4;
            }
            while mode + 2 <= modes {
                gram::<S, 2>(
                    s,
                    len,
                    &g[mode * len..],
                    cotangent,
                    &mut sums[mode * rows + row..],
                    rows,
                );
                mode += 2;
            }
            if mode < modes {
                gram::<S, 1>(
                    s,
                    len,
                    &g[mode * len..],
                    cotangent,
                    &mut sums[mode * rows + row..],
                    rows,
                );
            }
        }
    }
}

/// M modes against four rows of `len` vectors.
#[inline(always)]
fn gram<S: Simd, const M: usize>(
    s: S,
    len: usize,
    g: &[S::f64s],
    cotangent: &[S::f64s],
    sums: &mut [Lanes],
    rows: usize,
) {
    let mut tile = [[s.splat_f64s(0.0); 4]; M];
    let mut modes = [&g[..len]; M];
    for (i, mode) in modes.iter_mut().enumerate() {
        *mode = &g[i * len..][..len];
    }
    let (c0, rest) = cotangent.split_at(len);
    let (c1, rest) = rest.split_at(len);
    let (c2, c3) = rest.split_at(len);
    let c3 = &c3[..len];
    for v in 0..len {
        let c = [c0[v], c1[v], c2[v], c3[v]];
        for i in 0..M {
            let g = modes[i][v];
            for row in 0..4 {
                tile[i][row] = f64::vfma(s, g, c[row], tile[i][row]);
            }
        }
    }
    for (mode, tile) in tile.iter().enumerate() {
        for (row, &sum) in tile.iter().enumerate() {
            add_lanes(s, &mut sums[mode * rows + row], sum);
        }
    }
}

/// Adds a vector to its lanes.
#[inline(always)]
fn add_lanes<S: Simd>(s: S, lanes: &mut Lanes, value: S::f64s) {
    let first = &mut S::as_mut_simd_f64s(lanes).0[0];
    *first = s.add_f64s(*first, value);
}

/// sums += (Σ Re T, Σ y·Im T) of every mode.
struct Denominators<'a> {
    g: &'a [Row],
    x: &'a [Row],
    y: &'a [f64; BLOCK],
    sums: &'a mut [[Lanes; 2]],
}

impl WithSimd for Denominators<'_> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) {
        let y = vectors::<S>(self.y);
        for ((g, x), sums) in self.g.iter().zip(self.x).zip(self.sums) {
            let (g_re, g_im) = (vectors::<S>(&g[0]), vectors::<S>(&g[1]));
            let (x_re, x_im) = (vectors::<S>(&x[0]), vectors::<S>(&x[1]));
            let mut t = s.splat_f64s(0.0);
            let mut yt = t;
            for v in 0..y.len() {
                // conj(g)·X, then −conj(g) times that.
                let (a, b) = (g_re[v], g_im[v]);
                let re = f64::vfma(s, b, x_im[v], s.mul_f64s(a, x_re[v]));
                let im = f64::vfnma(s, b, x_re[v], s.mul_f64s(a, x_im[v]));
                t = f64::vfnma(s, b, im, f64::vfnma(s, a, re, t));
                yt = f64::vfnma(s, y[v], f64::vfnma(s, b, re, s.mul_f64s(a, im)), yt);
            }
            add_lanes(s, &mut sums[0], t);
            add_lanes(s, &mut sums[1], yt);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// U + iy·V is the sum over both poles of every pair, also next to them; the gradients are those of the sum.
    #[test]
    fn equals_the_sum_over_poles() {
        let modes = 5;
        let w: Vec<C64> = (0..modes).map(|n| C64::new(-0.01, 0.3 * n as f64)).collect();
        let v: Vec<C64> = (0..2 * modes).map(|n| C64::new(1.0, 0.4 * n as f64 - 1.0)).collect();
        let mut y = [0.0; BLOCK];
        y.iter_mut().enumerate().for_each(|(j, y)| *y = 0.05 * j as f64);
        let mut coefficients = vec![0.0; 4 * modes];
        for (r, v) in v.chunks_exact(modes).enumerate() {
            for n in 0..modes {
                coefficients[2 * r * modes + n] = -2.0 * (v[n] * w[n].conj()).re;
                coefficients[(2 * r + 1) * modes + n] = 2.0 * v[n].re;
            }
        }
        let sum = |w: &[C64], v: &[C64], z: C64| -> C64 {
            w.iter().zip(v).map(|(w, v)| v / (z - w) + v.conj() / (z - w.conj())).sum()
        };
        let (mut cauchy, mut sums) = (Cauchy::new(modes, 4), Rows::new(4));
        cauchy.set(&w, &y);
        cauchy.sums(&coefficients, &mut sums);
        for (rows, v) in sums.get().chunks_exact(2).zip(v.chunks_exact(modes)) {
            for (j, &y) in y.iter().enumerate() {
                let [u, v_sum] = [0, 1].map(|i| C64::new(rows[i][0][j], rows[i][1][j]));
                let (got, exact) = (u + C64::new(0.0, y) * v_sum, sum(&w, v, C64::new(0.0, y)));
                assert!((got - exact).norm() < 1e-13 * exact.norm().max(1.0), "{got} {exact}");
            }
        }
        // loss = Σ Re U of row 0: the gradient of p is Σ Re g, and w moves g alone.
        let mut g_sums = Rows::new(4);
        g_sums.get_mut()[0][0].fill(1.0);
        cauchy.clear();
        cauchy.add(&coefficients, &g_sums, &y);
        let loss = |w: C64, n: usize| -> f64 {
            let g = |&y: &f64| ((C64::new(0.0, y) - w) * (C64::new(0.0, y) - w.conj())).inv().re;
            coefficients[n] * y.iter().map(g).sum::<f64>()
        };
        for n in 0..modes {
            let expected = loss(w[n], n) / coefficients[n];
            assert!((cauchy.coefficient(n, 0) / expected - 1.0).abs() < 1e-12);
            let step = 1e-6;
            let slope =
                |d: C64| (loss(w[n] + d * step, n) - loss(w[n] - d * step, n)) / (2.0 * step);
            let numeric = C64::new(slope(C64::ONE), slope(C64::I));
            let got = cauchy.pole(n, w[n]);
            assert!((got - numeric).norm() < 1e-5 * got.norm(), "{got} {numeric}");
        }
    }
}
