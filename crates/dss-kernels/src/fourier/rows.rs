//! The transforms over channels: rows t and −t in one.

use super::{Fourier, Sequence};
use crate::par::Disjoint;
use crate::real::Real;
use num_complex::Complex;

/// Pairs of rows that are transformed together: one cache line of r in f32.
pub(super) const ROWS: usize = 16;

impl<T: Real> Fourier<T> {
    /// Blocks of pairs (t, −t), 0 ≤ t ≤ N/2.
    pub(super) fn row_blocks(&self) -> usize {
        (self.config.len / 2 + 1).div_ceil(ROWS)
    }

    /// r_h[t] and r_h[−t] for all h ≤ H/2 and the t of a block; r: [H/2 + 1, N].
    pub(super) fn rows(
        &self,
        sequence: &Sequence<'_, T>,
        block: usize,
        z: &mut [Complex<T>],
        work: &mut [Complex<T>],
        r: &Disjoint<'_, T>,
    ) {
        let (n, h) = (self.config.len, self.config.channels);
        let first = block * ROWS;
        let count = ROWS.min(n / 2 + 1 - first);
        let zero = Complex::new(T::ZERO, T::ZERO);
        // Whether anything is to be transformed.
        let mut any = false;
        for (z, t) in z.chunks_exact_mut(h).zip(first..first + count) {
            let opposite = (n - t) % n;
            let row = |t: usize| (t < sequence.visible).then(|| &sequence.u[t * h..][..h]);
            match (row(t), row(opposite)) {
                (Some(a), Some(b)) => {
                    z.iter_mut().zip(a.iter().zip(b)).for_each(|(z, (&a, &b))| {
                        *z = Complex::new(a + b, a - b);
                    })
                }
                (Some(a), None) => {
                    z.iter_mut().zip(a).for_each(|(z, &a)| *z = Complex::new(a, a));
                }
                (None, Some(b)) => {
                    z.iter_mut().zip(b).for_each(|(z, &b)| *z = Complex::new(b, -b));
                }
                (None, None) => z.fill(zero),
            }
            any |= t < sequence.visible || opposite < sequence.visible;
        }
        let z = &mut z[..count * h];
        if any {
            self.over_channels.process(z, work);
        }
        let half = T::rounded(0.5);
        for column in 0..=h / 2 {
            let opposite = (h - column) % h;
            // SAFETY: t and −t belong to one block; t = 0 and t = N/2 are their own opposites, and written by turns.
            let forwards = unsafe { r.part(column * n + first, count) };
            for (r, z) in forwards.iter_mut().zip(z.chunks_exact(h)) {
                *r = z[opposite].re * half;
            }
            for (z, t) in z.chunks_exact(h).zip(first..) {
                if t > 0 {
                    // SAFETY: as above.
                    let backwards = unsafe { r.part(column * n + n - t, 1) };
                    backwards[0] = z[column].re * half;
                }
            }
        }
    }
}
