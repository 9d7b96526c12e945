//! A diagonal linear recurrence in ℂⁿ, x' = λ·x + z: the core of LRU and S5.

use super::{Cell, CellGrads, CellInput, CellSizes, Weights, vectorised};
use crate::real::Real;

/// n complex states. Parameters: λ `[2n]`; z and the state are `[2n]` too. First all real parts, then all imaginary ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Diagonal {
    /// States.
    pub n: usize,
}

impl Cell for Diagonal {
    fn sizes(&self) -> CellSizes {
        let size = 2 * self.n;
        CellSizes {
            inputs: size,
            state: size,
            outputs: size,
            scratch: 0,
            maps: Vec::new(),
            vectors: vec![size],
        }
    }

    fn step<T: Real>(
        &self,
        weights: &Weights<T>,
        input: CellInput<T>,
        next: &mut [T],
        _scratch: &mut [T],
    ) {
        let n = self.n;
        let (re, im) = weights.vectors[0].split_at(n);
        vectorised(
            #[inline(always)]
            |_| {
                let rows = input.h.chunks_exact(2 * n).zip(input.z.chunks_exact(2 * n));
                for (next, (x, z)) in next.chunks_exact_mut(2 * n).zip(rows) {
                    let ((x_re, x_im), (z_re, z_im)) = (x.split_at(n), z.split_at(n));
                    let (next_re, next_im) = next.split_at_mut(n);
                    for i in 0..n {
                        next_re[i] = re[i] * x_re[i] - im[i] * x_im[i] + z_re[i];
                        next_im[i] = re[i] * x_im[i] + im[i] * x_re[i] + z_im[i];
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
        _scratch: &mut [T],
    ) {
        let n = self.n;
        let (re, im) = weights.vectors[0].split_at(n);
        let (dh, sums) = (grads.h, &mut grads.params.vectors[0]);
        grads.z.copy_from_slice(d_next);
        vectorised(
            #[inline(always)]
            |_| {
                let (sum_re, sum_im) = sums.split_at_mut(n);
                let rows = input.h.chunks_exact(2 * n).zip(d_next.chunks_exact(2 * n));
                for (dx, (x, d)) in dh.chunks_exact_mut(2 * n).zip(rows) {
                    let ((x_re, x_im), (d_re, d_im)) = (x.split_at(n), d.split_at(n));
                    let (dx_re, dx_im) = dx.split_at_mut(n);
                    for i in 0..n {
                        dx_re[i] = re[i] * d_re[i] + im[i] * d_im[i];
                        dx_im[i] = re[i] * d_im[i] - im[i] * d_re[i];
                        sum_re[i] += x_re[i] * d_re[i] + x_im[i] * d_im[i];
                        sum_im[i] += x_re[i] * d_im[i] - x_im[i] * d_re[i];
                    }
                }
            },
        );
    }
}
