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
use crate::real::Real;

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
}

/// Buffers for one channel of up to N modes.
pub(crate) struct Scratch<T> {
    /// [m, 2N]: Re exp(ζb) then Im.
    v1: Vec<T>,
    /// [A, 2N]: exp(ζma).
    v2: Vec<T>,
    /// [A, 2N]: Re(c·V₂) and −Im(c·V₂).
    p: Vec<T>,
    /// [m, 2N]: b·V₁.
    bv1: Vec<T>,
    /// [A, 2N] each: G₀ and G₁.
    g: [Vec<T>; 2],
    /// [A, m]: a kernel padded to whole rows.
    k: Vec<T>,
    /// [4, N]: one step, and the running power, as real and imaginary parts.
    power: Vec<f64>,
}

impl<T: Real> Scratch<T> {
    pub(crate) fn new(n: usize, blocks: Blocks) -> Self {
        let Blocks { a, m, .. } = blocks;
        let zeros = |len: usize| vec![T::ZERO; len];
        Self {
            v1: zeros(m * 2 * n),
            v2: zeros(a * 2 * n),
            p: zeros(a * 2 * n),
            bv1: zeros(m * 2 * n),
            g: [zeros(a * 2 * n), zeros(a * 2 * n)],
            k: zeros(a * m),
            power: vec![0.0; 4 * n],
        }
    }

    /// Makes V₁ and V₂ for the exponents ζ.
    pub(crate) fn set_modes(&mut self, blocks: Blocks, zeta: &[C64]) {
        let n = zeta.len();
        powers(&mut self.v1[..blocks.m * 2 * n], &mut self.power, zeta, 1);
        powers(&mut self.v2[..blocks.a * 2 * n], &mut self.power, zeta, blocks.m);
    }

    /// out_l = Re Σ_n c_n exp(ζ_n l) for the modes that were set.
    pub(crate) fn sum(&mut self, blocks: Blocks, c: &[C64], out: &mut [T]) {
        let Blocks { len, a, m } = blocks;
        let n = c.len();
        for (p, v) in self.p.chunks_exact_mut(2 * n).zip(self.v2.chunks_exact(2 * n)).take(a) {
            let ((p_re, p_im), (v_re, v_im)) = (p.split_at_mut(n), v.split_at(n));
            for i in 0..n {
                let v = C64::new(v_re[i].to_f64(), v_im[i].to_f64()) * c[i];
                p_re[i] = T::from_f64(v.re);
                p_im[i] = T::from_f64(-v.im);
            }
        }
        let whole = a * m == len;
        let k = if whole { &mut *out } else { &mut self.k[..] };
        // K [A × m] = P [A × 2N] · V₁ᵀ [2N × m]
        let (p, v1) = (&self.p[..a * 2 * n], &self.v1[..m * 2 * n]);
        T::product([a, m, 2 * n], k, (p, [2 * n, 1]), (v1, [1, 2 * n]));
        if !whole {
            out.copy_from_slice(&self.k[..len]);
        }
    }

    /// (S₀, S₁) of dk into `s0`, `s1`, for the modes that were set.
    pub(crate) fn moments(&mut self, blocks: Blocks, dk: &[T], s0: &mut [C64], s1: &mut [C64]) {
        let Blocks { len, a, m } = blocks;
        let n = s0.len();
        let dk = if a * m == len {
            dk
        } else {
            self.k[..len].copy_from_slice(dk);
            self.k[len..].fill(T::ZERO);
            &self.k
        };
        let v1 = &self.v1[..m * 2 * n];
        let bv1 = &mut self.bv1[..m * 2 * n];
        for (b, (row, v)) in
            bv1.chunks_exact_mut(2 * n).zip(v1.chunks_exact(2 * n)).enumerate()
        {
            let b = T::from_f64(b as f64);
            for (x, &v) in row.iter_mut().zip(v) {
                *x = b * v;
            }
        }
        let [g0, g1] = &mut self.g;
        T::product([a, 2 * n, m], g0, (dk, [m, 1]), (v1, [2 * n, 1]));
        T::product([a, 2 * n, m], g1, (dk, [m, 1]), (bv1, [2 * n, 1]));
        s0.fill(C64::ZERO);
        s1.fill(C64::ZERO);
        for row in 0..a {
            let at = row * 2 * n;
            let am = (row * m) as f64;
            for i in 0..n {
                let complex = |x: &[T]| C64::new(x[at + i].to_f64(), x[at + n + i].to_f64());
                let (v, g0) = (complex(&self.v2), complex(g0));
                s0[i] += v * g0;
                s1[i] += v * (g0 * am + complex(g1));
            }
        }
    }
}

/// out[j] = exp(ζ·step·j) as [count, 2N], by repeated products in f64.
fn powers<T: Real>(out: &mut [T], power: &mut [f64], zeta: &[C64], step: usize) {
    let n = zeta.len();
    let (base, running) = power.split_at_mut(power.len() / 2);
    let (base_re, base_im) = base[..2 * n].split_at_mut(n);
    let (re, im) = running[..2 * n].split_at_mut(n);
    for (i, &z) in zeta.iter().enumerate() {
        let e = exp(z * step as f64);
        (base_re[i], base_im[i]) = (e.re, e.im);
        (re[i], im[i]) = (1.0, 0.0);
    }
    for row in out.chunks_exact_mut(2 * n) {
        let (out_re, out_im) = row.split_at_mut(n);
        for i in 0..n {
            let (x, y) = (re[i], im[i]);
            out_re[i] = T::from_f64(if x.abs() < TINY { 0.0 } else { x });
            out_im[i] = T::from_f64(if y.abs() < TINY { 0.0 } else { y });
            let (next_re, next_im) =
                (x * base_re[i] - y * base_im[i], x * base_im[i] + y * base_re[i]);
            // Far below TINY: stop before f64 itself becomes denormal.
            re[i] = if next_re.abs() < 1e-200 { 0.0 } else { next_re };
            im[i] = if next_im.abs() < 1e-200 { 0.0 } else { next_im };
        }
    }
}
