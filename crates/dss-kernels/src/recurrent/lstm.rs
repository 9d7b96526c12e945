//! Long short-term memory with PyTorch's equations (Hochreiter & Schmidhuber 1997): with a = z + W_hh·h in four parts,
//! z = W_ih·u + b_ih + b_hh,
//!
//! i = σ(a₁), f = σ(a₂), g = tanh(a₃), o = σ(a₄), c' = f·c + i·g, h' = o·tanh(c')

use super::{Cell, CellGrads, CellInput, CellSizes, Weights, padded, tanh, vectorised};
use crate::real::Real;

/// An LSTM of n units. Parameters: W_hh `[4n, n]`; z is `[4n]`, the state (h, c).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lstm {
    /// Units.
    pub n: usize,
}

impl Lstm {
    /// a `[R, padded(4n)]`.
    fn gates<T: Real>(self, weights: &Weights<T>, input: &CellInput<T>, a: &mut [T]) {
        let (n, wide) = (self.n, padded(4 * self.n));
        for (a, z) in a.chunks_exact_mut(wide).zip(input.z.chunks_exact(4 * n)) {
            a[..4 * n].copy_from_slice(z);
            a[4 * n..].fill(T::ZERO);
        }
        weights.maps[0].add(input.rows, input.h, 2 * padded(n), a);
    }
}

impl Cell for Lstm {
    fn sizes(&self) -> CellSizes {
        let n = self.n;
        CellSizes {
            inputs: 4 * n,
            state: 2 * padded(n),
            outputs: n,
            scratch: padded(4 * n) + padded(n),
            maps: vec![[4 * n, n]],
            vectors: Vec::new(),
        }
    }

    fn step<T: Real>(
        &self,
        weights: &Weights<T>,
        input: CellInput<T>,
        next: &mut [T],
        scratch: &mut [T],
    ) {
        let (n, s, wide) = (self.n, padded(self.n), padded(4 * self.n));
        let a = &mut scratch[..input.rows * wide];
        self.gates(weights, &input, a);
        vectorised(|fuse| {
            let states = next.chunks_exact_mut(2 * s).zip(input.h.chunks_exact(2 * s));
            for ((next, state), a) in states.zip(a.chunks_exact(wide)) {
                let ((h, next_c), c) = (next.split_at_mut(s), &state[s..]);
                let (a1, a2, a3, a4) = (&a[..n], &a[n..2 * n], &a[2 * n..3 * n], &a[3 * n..4 * n]);
                for i in 0..n {
                    let (input, forget) = (a1[i].sigmoid(fuse), a2[i].sigmoid(fuse));
                    next_c[i] = forget * c[i] + input * tanh(a3[i], fuse);
                    h[i] = a4[i].sigmoid(fuse) * tanh(next_c[i], fuse);
                }
            }
        });
    }

    fn backward<T: Real>(
        &self,
        weights: &Weights<T>,
        input: CellInput<T>,
        d_next: &[T],
        grads: CellGrads<T>,
        scratch: &mut [T],
    ) {
        let (n, s, wide) = (self.n, padded(self.n), padded(4 * self.n));
        let rows = input.rows;
        let (a, rest) = scratch.split_at_mut(rows * wide);
        self.gates(weights, &input, a);
        let (dh, dz) = (grads.h, grads.z);
        vectorised(|fuse| {
            let one = T::rounded(1.0);
            let states = input.h.chunks_exact(2 * s).zip(d_next.chunks_exact(2 * s));
            let outputs = dh.chunks_exact_mut(2 * s).zip(dz.chunks_exact_mut(4 * n));
            for (((state, d), (dh, dz)), a) in states.zip(outputs).zip(a.chunks_exact(wide)) {
                let ((d_h, d_c), c) = (d.split_at(s), &state[s..]);
                let dc = &mut dh[s..];
                let (z12, z34) = dz.split_at_mut(2 * n);
                let ((dz1, dz2), (dz3, dz4)) = (z12.split_at_mut(n), z34.split_at_mut(n));
                let (a1, a2, a3, a4) = (&a[..n], &a[n..2 * n], &a[2 * n..3 * n], &a[3 * n..4 * n]);
                for j in 0..n {
                    let (i, f) = (a1[j].sigmoid(fuse), a2[j].sigmoid(fuse));
                    let (g, o) = (tanh(a3[j], fuse), a4[j].sigmoid(fuse));
                    let m = tanh(f * c[j] + i * g, fuse);
                    let d_cell = d_c[j] + d_h[j] * o * (one - m * m);
                    dz1[j] = d_cell * g * i * (one - i);
                    dz2[j] = d_cell * c[j] * f * (one - f);
                    dz3[j] = d_cell * i * (one - g * g);
                    dz4[j] = d_h[j] * m * o * (one - o);
                    dc[j] = d_cell * f;
                }
                dc[n..].fill(T::ZERO);
            }
        });
        let back = &mut rest[..rows * s];
        back.fill(T::ZERO);
        weights.maps[0].add_backward(rows, dz, 4 * n, back);
        for (dh, back) in dh.chunks_exact_mut(2 * s).zip(back.chunks_exact(s)) {
            dh[..s].copy_from_slice(back);
        }
        grads.params.add_map(0, rows, (dz, 4 * n), (input.h, 2 * s));
    }
}
