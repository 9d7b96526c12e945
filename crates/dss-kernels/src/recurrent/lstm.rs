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

impl Cell for Lstm {
    /// i, f, g, o `[R, padded(4n)]` and tanh(c') `[R, padded(n)]`.
    const KEEPS_SCRATCH: bool = true;

    fn sizes(&self) -> CellSizes {
        let n = self.n;
        CellSizes {
            inputs: 4 * n,
            state: 2 * padded(n),
            outputs: n,
            scratch: padded(4 * n) + 2 * padded(n),
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
        let rows = input.rows;
        let (gates, rest) = scratch.split_at_mut(rows * wide);
        let cells = &mut rest[..rows * s];
        for (a, z) in gates.chunks_exact_mut(wide).zip(input.z.chunks_exact(4 * n)) {
            a[..4 * n].copy_from_slice(z);
            a[4 * n..].fill(T::ZERO);
        }
        weights.maps[0].add(rows, input.h, 2 * s, gates);
        vectorised(
            #[inline(always)]
            |fuse| {
                let states = next.chunks_exact_mut(2 * s).zip(input.h.chunks_exact(2 * s));
                let kept = gates.chunks_exact_mut(wide).zip(cells.chunks_exact_mut(s));
                for ((next, state), (gates, m)) in states.zip(kept) {
                    let ((h, next_c), c) = (next.split_at_mut(s), &state[s..]);
                    let (a12, a34) = gates.split_at_mut(2 * n);
                    let ((a1, a2), (a3, a4)) = (a12.split_at_mut(n), a34.split_at_mut(n));
                    for j in 0..n {
                        let (i, f) = (a1[j].sigmoid(fuse), a2[j].sigmoid(fuse));
                        let (g, o) = (tanh(a3[j], fuse), a4[j].sigmoid(fuse));
                        next_c[j] = f * c[j] + i * g;
                        m[j] = tanh(next_c[j], fuse);
                        h[j] = o * m[j];
                        (a1[j], a2[j], a3[j], a4[j]) = (i, f, g, o);
                    }
                }
            },
        );
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
        let (gates, rest) = scratch.split_at_mut(rows * wide);
        let (cells, back) = rest[..2 * rows * s].split_at_mut(rows * s);
        let (dh, dz) = (grads.h, grads.z);
        vectorised(
            #[inline(always)]
            |_| {
                let one = T::rounded(1.0);
                let states = input.h.chunks_exact(2 * s).zip(d_next.chunks_exact(2 * s));
                let outputs = dh.chunks_exact_mut(2 * s).zip(dz.chunks_exact_mut(4 * n));
                let kept = gates.chunks_exact(wide).zip(cells.chunks_exact(s));
                for (((state, d), (dh, dz)), (gates, m)) in states.zip(outputs).zip(kept) {
                    let ((d_h, d_c), c) = (d.split_at(s), &state[s..]);
                    let dc = &mut dh[s..];
                    let (z12, z34) = dz.split_at_mut(2 * n);
                    let ((dz1, dz2), (dz3, dz4)) = (z12.split_at_mut(n), z34.split_at_mut(n));
                    let (i, f) = (&gates[..n], &gates[n..2 * n]);
                    let (g, o) = (&gates[2 * n..3 * n], &gates[3 * n..4 * n]);
                    for j in 0..n {
                        let d_cell = d_c[j] + d_h[j] * o[j] * (one - m[j] * m[j]);
                        dz1[j] = d_cell * g[j] * i[j] * (one - i[j]);
                        dz2[j] = d_cell * c[j] * f[j] * (one - f[j]);
                        dz3[j] = d_cell * i[j] * (one - g[j] * g[j]);
                        dz4[j] = d_h[j] * m[j] * o[j] * (one - o[j]);
                        dc[j] = d_cell * f[j];
                    }
                    dc[n..].fill(T::ZERO);
                }
            },
        );
        back.fill(T::ZERO);
        weights.maps[0].add_backward(rows, dz, 4 * n, back);
        for (dh, back) in dh.chunks_exact_mut(2 * s).zip(back.chunks_exact(s)) {
            dh[..s].copy_from_slice(back);
        }
        grads.params.add_map(0, rows, (dz, 4 * n), (input.h, 2 * s));
    }
}
