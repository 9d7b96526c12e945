//! The projection's weight as the products read it, and its gradient.

use super::{GROUP_ROWS, wide};
use crate::lines::Lines;
use crate::par::{self, Disjoint};
use crate::product::{Product, panel, panels};
use crate::real::Real;
use std::ops::Range;

/// Elements of dz that are gathered before the product is taken, if they have enough rows: they, and those of g, stay in
/// the cache.
const GATHERED: usize = 1 << 17;

/// Puts a weight, `[O, H]`, into panels of whole cache lines.
pub(super) fn store<T: Real>(weight: &[T], h: usize, to: &mut [T]) {
    let o = weight.len() / h;
    for j in panels::<T>(wide::<T>(h)) {
        let columns = j.start..j.end.min(h);
        let rows = to[o * j.start..o * j.end].chunks_exact_mut(j.len());
        for (to, row) in rows.zip(weight.chunks_exact(h)) {
            to[..columns.len()].copy_from_slice(&row[columns.clone()]);
        }
    }
}

/// Puts the transpose, `[H, O]`, of a weight into panels of whole cache lines.
pub(super) fn store_transposed<T: Real>(weight: &[T], h: usize, to: &mut [T]) {
    let o = weight.len() / h;
    for j in panels::<T>(wide::<T>(o)) {
        let to = &mut to[h * j.start..h * j.end];
        // In blocks of a cache line.
        for start in (0..h).step_by(T::LINE) {
            for (column, row) in weight.chunks_exact(h).skip(j.start).take(j.len()).enumerate() {
                for (i, &w) in row.iter().enumerate().skip(start).take(T::LINE) {
                    to[i * j.len() + column] = w;
                }
            }
        }
    }
}

/// dW = Σ over rows of dz ⊗ g: both are gathered, then multiplied, many rows at a time.
pub(super) struct WeightGrad<T: Real> {
    o: usize,
    h: usize,
    /// Rows that are gathered: a function of the sizes.
    pub(super) rows: usize,
    /// `[rows, O]` and `[rows, H]` with rows of whole cache lines, in panels.
    dz: Lines<T>,
    g: Lines<T>,
    /// `[O, H]`, likewise.
    sum: Lines<T>,
    empty: bool,
}

impl<T: Real> WeightGrad<T> {
    /// For a weight `[O, H]`; at most `most` rows will be gathered.
    pub(super) fn new(o: usize, h: usize, most: usize) -> Self {
        let (out_width, width) = (wide::<T>(o), wide::<T>(h));
        let rows = (GATHERED / out_width).max(GROUP_ROWS).min(most);
        let matrix = |rows: usize, width: usize| Lines::new(rows * width / T::LINE);
        let (dz, g, sum) = (matrix(rows, out_width), matrix(rows, width), matrix(o, width));
        Self { o, h, rows, dz, g, sum, empty: true }
    }

    /// Forgets the sum.
    pub(super) fn clear(&mut self) {
        self.empty = true;
    }

    /// Where the rows `rows`, at most as many as are gathered, are to be put.
    pub(super) fn gather(&mut self, rows: Range<usize>) -> Gather<'_, T> {
        assert!(rows.len() <= self.rows);
        Gather { rows, dz: Disjoint::new(&mut self.dz), g: Disjoint::new(&mut self.g) }
    }

    /// Adds the product of the `rows` rows that were gathered.
    pub(super) fn add(&mut self, rows: usize) {
        let Self { o, h, ref dz, ref g, ref mut sum, empty, .. } = *self;
        let (out_width, width) = (wide::<T>(o), wide::<T>(h));
        let sum = Disjoint::new(sum);
        let (down, across) = (out_width.div_ceil(panel::<T>()), width.div_ceil(panel::<T>()));
        par::for_each(&mut vec![(); par::workers()], down * across, |(), item| {
            let columns = |n: usize, at: usize| {
                let start = at * panel::<T>();
                start..n.min(start + panel::<T>())
            };
            let (i, j) = (columns(out_width, item / across), columns(width, item % across));
            let outputs = o.min(i.end) - i.start;
            // SAFETY: the items' parts do not overlap.
            let c = unsafe { sum.part(o * j.start + i.start * j.len(), outputs * j.len()) };
            Product {
                size: [outputs, j.len(), rows],
                a: &dz[rows * i.start..],
                a_strides: [1, i.len()],
                b: &g[rows * j.start..],
                panel: j.len(),
                c,
                add: !empty,
            }
            .run();
        });
        self.empty = false;
    }

    /// The sum, `[O, H]`.
    pub(super) fn finish(&self) -> Vec<T> {
        let Self { o, h, ref sum, .. } = *self;
        let mut out = vec![T::ZERO; o * h];
        for j in panels::<T>(wide::<T>(h)) {
            let columns = j.start..j.end.min(h);
            let rows = sum[o * j.start..o * j.end].chunks_exact(j.len());
            for (out, row) in out.chunks_exact_mut(h).zip(rows) {
                out[columns.clone()].copy_from_slice(&row[..columns.len()]);
            }
        }
        out
    }
}

/// Rows of dz and g on their way into panels.
pub(super) struct Gather<'a, T> {
    rows: Range<usize>,
    dz: Disjoint<'a, T>,
    g: Disjoint<'a, T>,
}

impl<T: Real> Gather<'_, T> {
    /// Puts the rows from `first` on. dz: `[n, O]`, g: `[n, H]` with rows of whole cache lines.
    ///
    /// # Safety
    /// A row belongs to one worker.
    pub(super) unsafe fn put(
        &self,
        first: usize,
        dz: &[T],
        out_width: usize,
        g: &[T],
        width: usize,
    ) {
        for (to, from, width) in [(&self.dz, dz, out_width), (&self.g, g, width)] {
            let count = from.len() / width;
            assert!(self.rows.start <= first && first + count <= self.rows.end);
            for j in panels::<T>(width) {
                let start = self.rows.len() * j.start + (first - self.rows.start) * j.len();
                // SAFETY: the caller's promise; the panels do not overlap.
                let to = unsafe { to.part(start, count * j.len()) };
                for (to, from) in to.chunks_exact_mut(j.len()).zip(from.chunks_exact(width)) {
                    to.copy_from_slice(&from[j.clone()]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gradient_is_the_sum_of_outer_products() {
        for (o, h, rows) in [(5, 3, 7), (70, 40, 300)] {
            let (out_width, width) = (wide::<f64>(o), wide::<f64>(h));
            let wave = |n: usize, f: f64| (0..n).map(|i| (i as f64 * f).sin()).collect::<Vec<_>>();
            let (dz, g) = (wave(rows * out_width, 0.7), wave(rows * width, 0.3));
            let mut grad = WeightGrad::<f64>::new(o, h, rows);
            for part in [0..rows / 3, rows / 3..rows] {
                let (dz, g) = (
                    &dz[part.start * out_width..part.end * out_width],
                    &g[part.start * width..part.end * width],
                );
                // SAFETY: one worker.
                unsafe { grad.gather(part.clone()).put(part.start, dz, out_width, g, width) };
                grad.add(part.len());
            }
            for (at, sum) in grad.finish().into_iter().enumerate() {
                let (i, j) = (at / h, at % h);
                let expected: f64 =
                    (0..rows).map(|r| dz[r * out_width + i] * g[r * width + j]).sum();
                assert!((sum - expected).abs() < 1e-12);
            }
        }
    }
}
