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

use crate::complex::C64;
use crate::product::Product;
use crate::real::{Real, dispatch};
use pulp::{Simd, WithSimd};

/// Frequencies that are worked on at a time.
pub(crate) const BLOCK: usize = 32;

/// Real and imaginary parts over the frequencies of a block.
pub(crate) type Row = [[f64; BLOCK]; 2];

/// All zero.
pub(crate) const ZERO_ROW: Row = [[0.0; BLOCK]; 2];

/// Tables of one block, and what the backward sums up over the blocks.
pub(crate) struct Cauchy {
    /// `[modes]`: g.
    g: Vec<Row>,
    /// `[modes]`: X.
    x: Vec<Row>,
    /// `[2·BLOCK, width]`: Ĝᵀ, the rows padded to whole cache lines.
    transposed: Vec<f64>,
    width: usize,
    /// `[modes, width]`: the gradients of p and s.
    coefficients: Vec<f64>,
    /// `[modes]`: Σ Re T and Σ y·Im T.
    denominators: Vec<[f64; 2]>,
}

impl Cauchy {
    pub(crate) fn new(modes: usize, rows: usize) -> Self {
        let width = rows.next_multiple_of(f64::LINE);
        Self {
            g: vec![ZERO_ROW; modes],
            x: vec![ZERO_ROW; modes],
            transposed: vec![0.0; 2 * BLOCK * width],
            width,
            coefficients: vec![0.0; modes * width],
            denominators: vec![[0.0; 2]; modes],
        }
    }

    /// Makes g for poles w at the points iy.
    pub(crate) fn set(&mut self, w: &[C64], y: &[f64; BLOCK]) {
        dispatch(Table { w, y, g: &mut self.g });
    }

    /// sums `[rows]` = coefficients `[rows, modes]` · g
    pub(crate) fn sums(&self, coefficients: &[f64], sums: &mut [Row]) {
        let modes = self.g.len();
        let size = [sums.len(), 2 * BLOCK, modes];
        let b = self.g.as_flattened().as_flattened();
        let c = sums.as_flattened_mut().as_flattened_mut();
        Product { size, a: coefficients, a_strides: [modes, 1], b, c, add: false }.run();
    }

    /// Begins a backward pass.
    pub(crate) fn clear(&mut self) {
        self.coefficients.fill(0.0);
        self.denominators.fill([0.0; 2]);
    }

    /// Adds the block that was set, given Ĝ `[rows]`.
    pub(crate) fn add(&mut self, coefficients: &[f64], g_sums: &[Row], y: &[f64; BLOCK]) {
        let (modes, rows) = (self.g.len(), g_sums.len());
        let cotangent = g_sums.as_flattened().as_flattened();
        let x = self.x.as_flattened_mut().as_flattened_mut();
        // X [modes × 2·BLOCK] = (p, s)ᵀ [modes × rows] · Ĝ [rows × 2·BLOCK]
        let (a, size) = (coefficients, [modes, 2 * BLOCK, rows]);
        Product { size, a, a_strides: [1, modes], b: cotangent, c: x, add: false }.run();
        for (row, values) in cotangent.chunks_exact(2 * BLOCK).enumerate() {
            for (to, &value) in self.transposed[row..].iter_mut().step_by(self.width).zip(values) {
                *to = value;
            }
        }
        // [modes × width] += g [modes × 2·BLOCK] · Ĝᵀ [2·BLOCK × width]
        let (a, b, c) =
            (self.g.as_flattened().as_flattened(), &self.transposed, &mut self.coefficients);
        let size = [modes, self.width, 2 * BLOCK];
        Product { size, a, a_strides: [2 * BLOCK, 1], b, c, add: true }.run();
        dispatch(Denominators { g: &self.g, x: &self.x, y, sums: &mut self.denominators });
    }

    /// The gradients of p (row 2r) and s (row 2r + 1) of a mode.
    pub(crate) fn coefficient(&self, mode: usize, row: usize) -> f64 {
        self.coefficients[mode * self.width + row]
    }

    /// The gradient of w by way of g: 1/g = |w|² − y² − 2iy·Re w.
    pub(crate) fn pole(&self, mode: usize, w: C64) -> C64 {
        let [t, yt] = self.denominators[mode];
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

/// sums += (Σ Re T, Σ y·Im T) of every mode.
struct Denominators<'a> {
    g: &'a [Row],
    x: &'a [Row],
    y: &'a [f64; BLOCK],
    sums: &'a mut [[f64; 2]],
}

impl WithSimd for Denominators<'_> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) {
        let y = vectors::<S>(self.y);
        for ((g, x), sums) in self.g.iter().zip(self.x).zip(self.sums) {
            let ([g_re, g_im], [x_re, x_im]) =
                (g.each_ref().map(vectors::<S>), x.each_ref().map(vectors::<S>));
            let mut t = s.splat_f64s(0.0);
            let mut yt = t;
            for v in 0..y.len() {
                // conj(g)·X, then conj(g) times that.
                let (a, b) = (g_re[v], g_im[v]);
                let re = f64::vfma(s, b, x_im[v], s.mul_f64s(a, x_re[v]));
                let im = f64::vfnma(s, b, x_re[v], s.mul_f64s(a, x_im[v]));
                t = f64::vfma(s, b, im, f64::vfma(s, a, re, t));
                yt = f64::vfma(s, y[v], f64::vfnma(s, b, re, s.mul_f64s(a, im)), yt);
            }
            sums[0] += -s.reduce_sum_f64s(t);
            sums[1] += -s.reduce_sum_f64s(yt);
        }
    }
}
