//! How rows are shared out: always the same way, so that sums do not depend on the number of threads.

use super::wide;
use crate::lines::Lines;
use crate::par::Disjoint;
use crate::real::Real;
use std::ops::Range;

/// Shares of rows with sums of their own; also the most workers that the passes over rows can use.
pub(super) const SLOTS: usize = 16;

/// Rows that go through the passes together: their buffers fit the second-level cache.
pub(super) const CHUNK: usize = 128;

/// Cuts rows into chunks of at most [`CHUNK`], each inside one sample of length l.
pub(super) fn row_chunks(rows: Range<usize>, l: usize) -> impl Iterator<Item = Range<usize>> {
    let mut next = rows.start;
    std::iter::from_fn(move || {
        let start = next;
        if start >= rows.end {
            return None;
        }
        next = rows.end.min(start + CHUNK).min((start / l + 1) * l);
        Some(start..next)
    })
}

/// n sums for every slot. No two slots have a cache line in common: workers that add to neighbouring slots would pass it
/// to and fro with every row.
pub(super) struct SlotSums<T: Real> {
    sums: Lines<T>,
    n: usize,
}

impl<T: Real> SlotSums<T> {
    /// Zeros.
    pub(super) fn new(n: usize) -> Self {
        Self { sums: Lines::new(SLOTS * wide::<T>(n) / T::LINE), n }
    }

    /// To be divided among workers.
    pub(super) fn shared(&mut self) -> SharedSums<'_, T> {
        SharedSums { n: self.n, sums: Disjoint::new(&mut self.sums) }
    }

    /// Over all slots, in their order.
    pub(super) fn total(&self) -> Vec<f64> {
        let mut total = vec![0.0; self.n];
        for slot in self.sums.chunks_exact(wide::<T>(self.n)) {
            total.iter_mut().zip(slot).for_each(|(total, sum)| *total += sum.to_f64());
        }
        total
    }
}

/// [`SlotSums`] that several workers add to.
pub(super) struct SharedSums<'a, T> {
    sums: Disjoint<'a, T>,
    n: usize,
}

impl<T: Real> SharedSums<'_, T> {
    /// The n sums of one slot.
    ///
    /// # Safety
    /// A slot belongs to one worker at a time.
    #[allow(clippy::mut_from_ref)]
    pub(super) unsafe fn slot(&self, slot: usize) -> &mut [T] {
        // SAFETY: slots do not overlap, and the caller promises the rest.
        unsafe { self.sums.part(slot * wide::<T>(self.n), self.n) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_added_up_and_have_lines_of_their_own() {
        for n in [1, 7, 16, 33] {
            let mut sums = SlotSums::<f32>::new(n);
            let shared = sums.shared();
            for slot in 0..SLOTS {
                // SAFETY: one worker.
                let sums = unsafe { shared.slot(slot) };
                assert_eq!((sums.len(), sums.as_ptr() as usize % 64), (n, 0));
                sums.iter_mut().enumerate().for_each(|(i, sum)| *sum = (slot * i) as f32);
            }
            let all = SLOTS * (SLOTS - 1) / 2;
            assert_eq!(sums.total(), (0..n).map(|i| (all * i) as f64).collect::<Vec<_>>());
        }
    }

    #[test]
    fn chunks_cover_the_rows_and_stay_in_their_samples() {
        for (rows, l) in [(0..0, 3), (5..700, 300), (0..256, 128), (7..8, 1), (0..1000, 1)] {
            let mut next = rows.start;
            for chunk in row_chunks(rows.clone(), l) {
                assert_eq!(chunk.start, next);
                assert!(!chunk.is_empty() && chunk.len() <= CHUNK);
                assert_eq!(chunk.start / l, (chunk.end - 1) / l);
                next = chunk.end;
            }
            assert_eq!(next, rows.end);
        }
    }
}
