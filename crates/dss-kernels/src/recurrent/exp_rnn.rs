//! ExpRNN (Lezcano-Casado & Martínez-Rubio 2019): h' = modReLU(z + h·Q; b) with an orthogonal Q, so that h·Q is as long
//! as h. modReLU(x; b) = sign(x)·relu(|x| + b).

use super::{Cell, CellGrads, CellInput, CellSizes, Weights, padded, vectorised};
use crate::real::Real;

/// n units. Parameters: Qᵀ `[n, n]`, b `[n]`; z is `[n]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpRnn {
    /// Units.
    pub n: usize,
}

impl ExpRnn {
    /// x = z + h·Q: `[R, padded(n)]`.
    fn sums<T: Real>(self, weights: &Weights<T>, input: &CellInput<T>, x: &mut [T]) {
        let (n, s) = (self.n, padded(self.n));
        for (x, z) in x.chunks_exact_mut(s).zip(input.z.chunks_exact(n)) {
            x[..n].copy_from_slice(z);
            x[n..].fill(T::ZERO);
        }
        weights.maps[0].add(input.rows, input.h, s, x);
    }
}

/// sign(x) where |x| + b > 0, else 0.
#[inline(always)]
fn gate<T: Real>(x: T, b: T) -> T {
    let (zero, one) = (T::ZERO, T::rounded(1.0));
    let (size, sign) = if x < zero { (-x, -one) } else { (x, one) };
    if size + b > zero && size > zero { sign } else { zero }
}

impl Cell for ExpRnn {
    fn sizes(&self) -> CellSizes {
        let n = self.n;
        CellSizes {
            inputs: n,
            state: padded(n),
            outputs: n,
            scratch: padded(n),
            maps: vec![[n, n]],
            vectors: vec![n],
        }
    }

    fn step<T: Real>(
        &self,
        weights: &Weights<T>,
        input: CellInput<T>,
        next: &mut [T],
        _scratch: &mut [T],
    ) {
        let s = padded(self.n);
        self.sums(weights, &input, next);
        vectorised(
            #[inline(always)]
            |_| {
                for next in next.chunks_exact_mut(s) {
                    for (x, &b) in next.iter_mut().zip(&weights.vectors[0]) {
                        let gate = gate(*x, b);
                        *x = (*x + gate * b) * gate * gate;
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
        let (n, s, rows) = (self.n, padded(self.n), input.rows);
        let x = &mut scratch[..rows * s];
        self.sums(weights, &input, x);
        let (dz, sums) = (grads.z, &mut grads.params.vectors[0]);
        vectorised(
            #[inline(always)]
            |_| {
                let rows = x.chunks_exact(s).zip(d_next.chunks_exact(s));
                for ((x, d), dz) in rows.zip(dz.chunks_exact_mut(n)) {
                    for i in 0..n {
                        let gate = gate(x[i], weights.vectors[0][i]);
                        dz[i] = d[i] * gate * gate;
                        sums[i] += d[i] * gate;
                    }
                }
            },
        );
        grads.h.fill(T::ZERO);
        weights.maps[0].add_backward(rows, dz, n, grads.h);
        grads.params.add_map(0, rows, (dz, n), (input.h, s));
    }
}
