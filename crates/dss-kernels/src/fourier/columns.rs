//! The transforms over positions: two columns in one.

use super::{Fourier, Sequence};
use crate::par::Disjoint;
use crate::real::Real;
use num_complex::Complex;
use std::ops::Range;

/// Pairs of columns that are transformed together: their results are one cache line of y in f32.
pub(super) const PAIRS: usize = 8;

impl<T: Real> Fourier<T> {
    /// Blocks of the columns 0 ≤ h ≤ H/2.
    pub(super) fn column_blocks(&self) -> usize {
        (self.config.channels / 2 + 1).div_ceil(2 * PAIRS)
    }

    /// The columns h of a block, and −h, of y.
    pub(super) fn columns(
        &self,
        sequence: &Sequence<'_, T>,
        block: usize,
        z: &mut [Complex<T>],
        work: &mut [Complex<T>],
        r: &Disjoint<'_, T>,
    ) {
        let (n, h) = (self.config.len, self.config.channels);
        let columns = block * 2 * PAIRS..(h / 2 + 1).min((block + 1) * 2 * PAIRS);
        let pairs = columns.len().div_ceil(2);
        // SAFETY: r is complete; it is only read from here on.
        let column = |h: usize| -> &[T] { unsafe { r.part(h * n, n) } };
        for (z, g) in z.chunks_exact_mut(n).zip(columns.clone().step_by(2)) {
            let real = z.iter_mut().zip(column(g));
            if g + 1 < columns.end {
                real.zip(column(g + 1)).for_each(|((z, &re), &im)| *z = Complex::new(re, im));
            } else {
                real.for_each(|(z, &re)| *z = Complex::new(re, T::ZERO));
            }
        }
        let z = &mut z[..pairs * n];
        self.over_positions.process(z, work);
        // y_{l,−h} = y_{−l,h}, but for the columns that are their own opposites.
        let mirrored = columns.start.max(1)..columns.end.min(h.div_ceil(2));
        let half = T::rounded(0.5);
        let mut line = [T::ZERO; 2 * PAIRS];
        for l in 0..n {
            let opposite = (n - l) % n;
            let (here, there) = (l < sequence.visible, opposite < sequence.visible);
            if !here && !there {
                continue;
            }
            for (z, pair) in z.chunks_exact(n).zip(line.chunks_exact_mut(2)) {
                let (a, b) = (z[l], z[opposite]);
                pair[0] = (a.re + b.re - a.im + b.im) * half;
                pair[1] = (a.im + b.im + a.re - b.re) * half;
            }
            let line = &line[..columns.len()];
            if here {
                // SAFETY: these columns belong to this block.
                let y =
                    unsafe { sequence.y.part(sequence.start + l * h + columns.start, line.len()) };
                y.copy_from_slice(line);
            }
            if there && !mirrored.is_empty() {
                let Range { start, end } = mirrored;
                let first = sequence.start + opposite * h + h + 1 - end;
                // SAFETY: so do their opposites.
                let y = unsafe { sequence.y.part(first, end - start) };
                let line = &line[start - columns.start..end - columns.start];
                y.iter_mut().rev().zip(line).for_each(|(y, &line)| *y = line);
            }
        }
    }
}
