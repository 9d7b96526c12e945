//! The gated recurrent unit with PyTorch's equations (Cho et al. 2014): with a = W_hh·h + b_hh and z = W_ih·u + b_ih in
//! three parts each,
//!
//! r = σ(z₁ + a₁), g = σ(z₂ + a₂), c = tanh(z₃ + r·a₃), h' = (1 − g)·c + g·h

use super::{Cell, CellGrads, CellInput, CellSizes, Weights, padded, tanh, vectorised};
use crate::real::Real;

/// A GRU of n units. Parameters: W_hh `[3n, n]`, b_hh `[3n]`; z is `[3n]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gru {
    /// Units.
    pub n: usize,
}

impl Gru {
    /// Numbers of scratch memory per row.
    pub(super) fn scratch(self) -> usize {
        2 * padded(3 * self.n)
    }

    /// h' of the rows of `input`, with matrix and vector number `at` of the weights; z has the first 3n numbers of rows of
    /// `stride`.
    pub(super) fn step_at<T: Real>(
        self,
        weights: &Weights<T>,
        (at, stride): (usize, usize),
        input: CellInput<T>,
        next: &mut [T],
        scratch: &mut [T],
    ) {
        let (n, s, wide) = (self.n, padded(self.n), padded(3 * self.n));
        let CellInput { rows, z, h } = input;
        let a = &mut scratch[..rows * wide];
        weights.maps[at].affine(rows, h, s, &weights.vectors[at], a);
        vectorised(
            #[inline(always)]
            |fuse| {
                let out = next.chunks_exact_mut(s).zip(h.chunks_exact(s));
                for ((next, h), (z, a)) in out.zip(z.chunks_exact(stride).zip(a.chunks_exact(wide)))
                {
                    let ([z1, z2, z3], [a1, a2, a3]) = (thirds(z, n), thirds(a, n));
                    for i in 0..n {
                        let r = (z1[i] + a1[i]).sigmoid(fuse);
                        let g = (z2[i] + a2[i]).sigmoid(fuse);
                        let c = tanh(z3[i] + r * a3[i], fuse);
                        next[i] = c + g * (h[i] - c);
                    }
                }
            },
        );
    }

    /// The backward of [`Self::step_at`]: dh is overwritten, and the first 3n of each row of dz.
    pub(super) fn backward_at<T: Real>(
        self,
        weights: &Weights<T>,
        (at, stride): (usize, usize),
        input: CellInput<T>,
        d_next: &[T],
        grads: CellGrads<T>,
        scratch: &mut [T],
    ) {
        let (n, s, wide) = (self.n, padded(self.n), padded(3 * self.n));
        let CellInput { rows, z, h } = input;
        let (a, rest) = scratch.split_at_mut(rows * wide);
        let da = &mut rest[..rows * wide];
        weights.maps[at].affine(rows, h, s, &weights.vectors[at], a);
        let (dh, dz) = (grads.h, grads.z);
        vectorised(
            #[inline(always)]
            |fuse| {
                let one = T::rounded(1.0);
                let states =
                    h.chunks_exact(s).zip(d_next.chunks_exact(s)).zip(dh.chunks_exact_mut(s));
                let inputs = z.chunks_exact(stride).zip(dz.chunks_exact_mut(stride));
                let gates = a.chunks_exact(wide).zip(da.chunks_exact_mut(wide));
                for (((h, d), dh), ((z, dz), (a, da))) in states.zip(inputs.zip(gates)) {
                    let ([z1, z2, z3], [a1, a2, a3]) = (thirds(z, n), thirds(a, n));
                    let ([dz1, dz2, dz3], [da1, da2, da3]) = (thirds_mut(dz, n), thirds_mut(da, n));
                    for i in 0..n {
                        let r = (z1[i] + a1[i]).sigmoid(fuse);
                        let g = (z2[i] + a2[i]).sigmoid(fuse);
                        let c = tanh(z3[i] + r * a3[i], fuse);
                        let dg = d[i] * (h[i] - c) * g * (one - g);
                        let dc = d[i] * (one - g) * (one - c * c);
                        let dr = dc * a3[i] * r * (one - r);
                        (dz1[i], dz2[i], dz3[i]) = (dr, dg, dc);
                        (da1[i], da2[i], da3[i]) = (dr, dg, dc * r);
                        dh[i] = d[i] * g;
                    }
                    dh[n..].fill(T::ZERO);
                    da[3 * n..].fill(T::ZERO);
                }
            },
        );
        weights.maps[at].add_backward(rows, da, wide, dh);
        grads.params.add_map(at, rows, (da, wide), (h, s));
        grads.params.add_vector(at, da, wide);
    }
}

/// The first three parts of n numbers.
#[inline(always)]
fn thirds<T>(x: &[T], n: usize) -> [&[T]; 3] {
    [&x[..n], &x[n..2 * n], &x[2 * n..3 * n]]
}

/// The first three parts of n numbers.
#[inline(always)]
fn thirds_mut<T>(x: &mut [T], n: usize) -> [&mut [T]; 3] {
    let (a, rest) = x.split_at_mut(n);
    let (b, rest) = rest.split_at_mut(n);
    [a, b, &mut rest[..n]]
}

impl Cell for Gru {
    fn sizes(&self) -> CellSizes {
        let n = self.n;
        CellSizes {
            inputs: 3 * n,
            state: padded(n),
            outputs: n,
            scratch: self.scratch(),
            maps: vec![[3 * n, n]],
            vectors: vec![3 * n],
        }
    }

    fn step<T: Real>(
        &self,
        weights: &Weights<T>,
        input: CellInput<T>,
        next: &mut [T],
        scratch: &mut [T],
    ) {
        self.step_at(weights, (0, 3 * self.n), input, next, scratch);
    }

    fn backward<T: Real>(
        &self,
        weights: &Weights<T>,
        input: CellInput<T>,
        d_next: &[T],
        grads: CellGrads<T>,
        scratch: &mut [T],
    ) {
        self.backward_at(weights, (0, 3 * self.n), input, d_next, grads, scratch);
    }
}
