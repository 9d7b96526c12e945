//! The sum K_l = Re Σ_n c_n·exp(ζ_n·l), l < L, and its backward, as small matrix products.
//!
//! With l = a·m + b and m ≈ √L: exp(ζl) = exp(ζm)^a · exp(ζ)^b. For one channel
//!
//! K[a, b] = Σ_n Re(c_n V₂[a, n]) Re V₁[b, n] − Im(c_n V₂[a, n]) Im V₁[b, n]
//!
//! is one real product [A × 2N]·[2N × m]; only O(N√L) powers are made, in f64 and rounded once, because the phases
//! Im ζ·l reach 10⁶ rad where f32 has no digits left.
//!
//! Backward, with S₀ = Σ_l dK_l e^{ζl} and S₁ = Σ_l l·dK_l e^{ζl}:  g_c = conj(S₀), g_ζ = conj(c·S₁). The factor
//! l = am + b splits, so both sums come from G₀ = dK·V₁ and G₁ = dK·diag(b)·V₁, two products of the same shape.

use crate::complex::{C64, exp};
use crate::product::{Layout, Product};
use crate::real::Real;
use pulp::{Simd, WithSimd};

/// Powers below this are set to zero: denormal numbers stall the products.
const TINY: f64 = 1e-30;

/// Block sizes for L taps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Blocks {
    len: usize,
    /// A: rows.
    a: usize,
    /// m: columns.
    m: usize,
}

impl Blocks {
    pub(crate) fn new(len: usize) -> Self {
        let mut m = 16;
        while m * m < len {
            m *= 2;
        }
        Self { len, a: len.div_ceil(m), m }
    }

    /// The same columns for fewer taps: fits the same scratch.
    pub(crate) fn shortened(self, len: usize) -> Self {
        debug_assert!(len <= self.len);
        Self { len, a: len.div_ceil(self.m), m: self.m }
    }
}

/// Buffers for one channel of up to N modes.
///
/// A row of n modes holds n real parts, then n imaginary parts, then zeros up to `width(n)`.
pub(crate) struct Scratch<T> {
    /// [m, width]: exp(ζb).
    v1: Vec<T>,
    /// `[2N, m]`: its transpose.
    v1_t: Vec<T>,
    /// `[A, width]`: exp(ζma).
    v2: Vec<T>,
    /// `[A, width]`: Re(c·V₂) and −Im(c·V₂).
    p: Vec<T>,
    /// [m, width]: b·V₁.
    bv1: Vec<T>,
    /// `[A, width]` each: G₀ and G₁.
    g: [Vec<T>; 2],
    /// `[A, m]`: a kernel padded to whole rows.
    k: Vec<T>,
    /// `[4, N]`: one step, and the running power, as real and imaginary parts.
    power: Vec<f64>,
}

/// Columns of a row of n modes: whole cache lines.
fn width<T: Real>(n: usize) -> usize {
    (2 * n).next_multiple_of(T::LINE)
}

impl<T: Real> Scratch<T> {
    pub(crate) fn new(n: usize, blocks: Blocks) -> Self {
        let Blocks { a, m, .. } = blocks;
        let zeros = |len: usize| vec![T::ZERO; len];
        let w = width::<T>(n);
        Self {
            v1: zeros(m * w),
            v1_t: zeros(2 * n * m),
            v2: zeros(a * w),
            p: zeros(a * w),
            bv1: zeros(m * w),
            g: [zeros(a * w), zeros(a * w)],
            k: zeros(a * m),
            power: vec![0.0; 4 * n],
        }
    }

    /// Makes V₁ and V₂ for the exponents ζ.
    pub(crate) fn set_modes(&mut self, blocks: Blocks, zeta: &[C64]) {
        let w = width::<T>(zeta.len());
        let (v1, v2) = (&mut self.v1[..blocks.m * w], &mut self.v2[..blocks.a * w]);
        T::powers(Powers { out: v1, power: &mut self.power, zeta, step: 1 });
        T::powers(Powers { out: v2, power: &mut self.power, zeta, step: blocks.m });
    }

    /// out_l = Re Σ_n c_n exp(ζ_n l) for the modes that were set.
    pub(crate) fn sum(&mut self, blocks: Blocks, c: &[C64], out: &mut [T]) {
        let Blocks { len, a, m } = blocks;
        let n = c.len();
        let w = width::<T>(n);
        T::weighted(WeightedSum { v: &self.v2[..a * w], c, out: &mut self.p[..a * w] });
        transpose(&self.v1[..m * w], w, &mut self.v1_t[..2 * n * m], m);
        let whole = a * m == len;
        let k = if whole { &mut *out } else { &mut self.k[..] };
        // K [A × m] = P [A × 2N] · V₁ᵀ [2N × m]
        let (p, v1_t) = (&self.p[..a * w], &self.v1_t[..2 * n * m]);
        let size = [a, m, 2 * n];
        let (a_strides, b_layout) = ([w, 1], Layout::Rows(m));
        Product { size, a: p, a_strides, b: v1_t, b_layout, c: k, add: false }.run();
        if !whole {
            out.copy_from_slice(&self.k[..len]);
        }
    }

    /// (S₀, S₁) of dk into `s0`, `s1`, for the modes that were set.
    pub(crate) fn moments(&mut self, blocks: Blocks, dk: &[T], s0: &mut [C64], s1: &mut [C64]) {
        let Blocks { len, a, m } = blocks;
        let n = s0.len();
        let w = width::<T>(n);
        let dk = if a * m == len {
            dk
        } else {
            self.k[..len].copy_from_slice(dk);
            self.k[len..a * m].fill(T::ZERO);
            &self.k[..a * m]
        };
        let (v1, v2) = (&self.v1[..m * w], &self.v2[..a * w]);
        let bv1 = &mut self.bv1[..m * w];
        for (b, (row, v)) in bv1.chunks_exact_mut(w).zip(v1.chunks_exact(w)).enumerate() {
            let b = T::rounded(b as f64);
            for (x, &v) in row.iter_mut().zip(v) {
                *x = b * v;
            }
        }
        let [g0, g1] = &mut self.g;
        let size = [a, w, m];
        let (a_strides, b_layout) = ([m, 1], Layout::Rows(w));
        Product { size, a: dk, a_strides, b: v1, b_layout, c: g0, add: false }.run();
        Product { size, a: dk, a_strides, b: bv1, b_layout, c: g1, add: false }.run();
        let sums = &mut self.power[..4 * n];
        T::reduce(Reduce { v2, g0, g1, m, sums });
        for i in 0..n {
            s0[i] = C64::new(sums[i], sums[n + i]);
            s1[i] = C64::new(sums[2 * n + i], sums[3 * n + i]);
        }
    }
}

/// to [columns, rows] = the first columns of from [rows, width], in blocks of a cache line.
fn transpose<T: Real>(from: &[T], width: usize, to: &mut [T], rows: usize) {
    let columns = to.len() / rows;
    for i0 in (0..rows).step_by(T::LINE) {
        for j0 in (0..columns).step_by(T::LINE) {
            for j in j0..columns.min(j0 + T::LINE) {
                for i in i0..rows.min(i0 + T::LINE) {
                    to[j * rows + i] = from[i * width + j];
                }
            }
        }
    }
}

// Loops over modes that the compiler vectorises, compiled for the machine's vector instructions.

/// out[j] = exp(ζ·step·j) as rows of modes, by repeated products in f64.
pub(crate) struct Powers<'a, T> {
    out: &'a mut [T],
    power: &'a mut [f64],
    zeta: &'a [C64],
    step: usize,
}

impl<T: Real> WithSimd for Powers<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { out, power, zeta, step } = self;
        let n = zeta.len();
        let [base_re, base_im, re, im] = quarters(&mut power[..4 * n]);
        for (i, &z) in zeta.iter().enumerate() {
            let e = exp(z * step as f64);
            (base_re[i], base_im[i]) = (e.re, e.im);
            (re[i], im[i]) = (1.0, 0.0);
        }
        let flushed = |x: f64, tiny: f64| if x.abs() < tiny { 0.0 } else { x };
        for row in out.chunks_exact_mut(width::<T>(n)) {
            let (out_re, rest) = row.split_at_mut(n);
            let (out_im, padding) = rest.split_at_mut(n);
            padding.fill(T::ZERO);
            for i in 0..n {
                let (x, y) = (re[i], im[i]);
                out_re[i] = T::rounded(flushed(x, TINY));
                out_im[i] = T::rounded(flushed(y, TINY));
                // The running power stops far below that, before f64 itself becomes denormal.
                re[i] = flushed(x * base_re[i] - y * base_im[i], 1e-200);
                im[i] = flushed(x * base_im[i] + y * base_re[i], 1e-200);
            }
        }
    }
}

/// out[a] = (Re(c·v[a]), −Im(c·v[a])), both rows of modes.
pub(crate) struct WeightedSum<'a, T> {
    v: &'a [T],
    c: &'a [C64],
    out: &'a mut [T],
}

impl<T: Real> WithSimd for WeightedSum<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { v, c, out } = self;
        let n = c.len();
        let w = width::<T>(n);
        for (out, v) in out.chunks_exact_mut(w).zip(v.chunks_exact(w)) {
            let ((re, im), (v_re, v_im)) = (out[..2 * n].split_at_mut(n), v[..2 * n].split_at(n));
            for i in 0..n {
                let (x, y) = (v_re[i].to_f64(), v_im[i].to_f64());
                re[i] = T::from_f64(c[i].re * x - c[i].im * y);
                im[i] = T::from_f64(-(c[i].re * y + c[i].im * x));
            }
        }
    }
}

/// sums = (Re S₀, Im S₀, Re S₁, Im S₁): S₀ = Σ_a V₂[a]·G₀[a], S₁ = Σ_a V₂[a]·(am·G₀[a] + G₁[a]).
pub(crate) struct Reduce<'a, T> {
    v2: &'a [T],
    g0: &'a [T],
    g1: &'a [T],
    m: usize,
    sums: &'a mut [f64],
}

impl<T: Real> WithSimd for Reduce<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { v2, g0, g1, m, sums } = self;
        let n = sums.len() / 4;
        sums.fill(0.0);
        let [s0_re, s0_im, s1_re, s1_im] = quarters(sums);
        let w = width::<T>(n);
        let rows = v2.chunks_exact(w).zip(g0.chunks_exact(w)).zip(g1.chunks_exact(w));
        for (a, ((v, g0), g1)) in rows.enumerate() {
            let am = (a * m) as f64;
            let [(v_re, v_im), (g0_re, g0_im), (g1_re, g1_im)] =
                [v, g0, g1].map(|row| row[..2 * n].split_at(n));
            for i in 0..n {
                let (x, y) = (v_re[i].to_f64(), v_im[i].to_f64());
                let (p, q) = (g0_re[i].to_f64(), g0_im[i].to_f64());
                let (r, s) = (am * p + g1_re[i].to_f64(), am * q + g1_im[i].to_f64());
                s0_re[i] += x * p - y * q;
                s0_im[i] += x * q + y * p;
                s1_re[i] += x * r - y * s;
                s1_im[i] += x * s + y * r;
            }
        }
    }
}

/// Four equal parts.
fn quarters(x: &mut [f64]) -> [&mut [f64]; 4] {
    let n = x.len() / 4;
    let (a, rest) = x.split_at_mut(n);
    let (b, rest) = rest.split_at_mut(n);
    let (c, d) = rest.split_at_mut(n);
    [a, b, c, d]
}
