//! The projection's weight as the products read it, and its gradient.

use super::{GROUP_ROWS, wide};
use crate::lines::Lines;
use crate::par::{self, Disjoint};
use crate::product::{Layout, Product, panel, panels};
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

/// How far apart rows of n numbers are gathered: an odd number of cache lines (see `product.rs`).
fn apart<T: Real>(n: usize) -> usize {
    (n.div_ceil(T::LINE) | 1) * T::LINE
}

/// dW = Σ over rows of dz ⊗ g: both are gathered, then multiplied, many rows at a time.
pub(super) struct WeightGrad<T: Real> {
    o: usize,
    h: usize,
    /// Rows that are gathered: a function of the sizes.
    pub(super) rows: usize,
    /// `[rows, O]` and `[rows, H]`, with rows [`apart`]; what stands between them is zero.
    dz: Lines<T>,
    g: Lines<T>,
    /// `[O, H]` with rows of whole cache lines, in panels.
    sum: Lines<T>,
    empty: bool,
}

impl<T: Real> WeightGrad<T> {
    /// For a weight `[O, H]`; at most `most` rows will be gathered.
    pub(super) fn new(o: usize, h: usize, most: usize) -> Self {
        let rows = (GATHERED / wide::<T>(o)).max(GROUP_ROWS).min(most);
        let matrix = |rows: usize, width: usize| Lines::new(rows * width / T::LINE);
        let (dz, g) = (matrix(rows, apart::<T>(o)), matrix(rows, apart::<T>(h)));
        let sum = matrix(o, wide::<T>(h));
        Self { o, h, rows, dz, g, sum, empty: true }
    }

    /// Forgets the sum.
    pub(super) fn clear(&mut self) {
        self.empty = true;
    }

    /// Where the rows `rows`, at most as many as are gathered, are to be put.
    pub(super) fn gather(&mut self, rows: Range<usize>) -> Gather<'_, T> {
        assert!(rows.len() <= self.rows);
        let (dz, g) = (Disjoint::new(&mut self.dz), Disjoint::new(&mut self.g));
        Gather { rows, dz, dz_width: apart::<T>(self.o), g, g_width: apart::<T>(self.h) }
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
                a: &dz[i.start..],
                a_strides: [1, apart::<T>(o)],
                b: &g[j.start..],
                b_layout: Layout::Rows(apart::<T>(h)),
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

/// Room for rows of dz and g.
pub(super) struct Gather<'a, T> {
    rows: Range<usize>,
    dz: Disjoint<'a, T>,
    g: Disjoint<'a, T>,
    /// How far apart the rows are.
    pub(super) dz_width: usize,
    pub(super) g_width: usize,
}

impl<T: Real> Gather<'_, T> {
    /// The rows `range` of dz and g, of which the first O and H numbers are to be written.
    ///
    /// # Safety
    /// A row belongs to one worker.
    #[allow(clippy::mut_from_ref)]
    pub(super) unsafe fn put(&self, range: &Range<usize>) -> [&mut [T]; 2] {
        assert!(self.rows.start <= range.start && range.end <= self.rows.end);
        [(&self.dz, self.dz_width), (&self.g, self.g_width)].map(|(to, width)| {
            // SAFETY: the caller's promise.
            unsafe { to.part((range.start - self.rows.start) * width, range.len() * width) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gradient_is_the_sum_of_outer_products() {
        for (o, h, rows) in [(5, 3, 7), (70, 40, 300)] {
            let wave = |n: usize, f: f64| (0..n).map(|i| (i as f64 * f).sin()).collect::<Vec<_>>();
            let (dz, g) = (wave(rows * o, 0.7), wave(rows * h, 0.3));
            let mut grad = WeightGrad::<f64>::new(o, h, rows);
            for part in [0..rows / 3, rows / 3..rows] {
                let gather = grad.gather(part.clone());
                let widths = [gather.dz_width, gather.g_width];
                // SAFETY: one worker.
                let to = unsafe { gather.put(&part) };
                for ((to, width), (from, n)) in to.into_iter().zip(widths).zip([(&dz, o), (&g, h)])
                {
                    let rows = from[part.start * n..part.end * n].chunks_exact(n);
                    for (to, row) in to.chunks_exact_mut(width).zip(rows) {
                        to[..n].copy_from_slice(row);
                    }
                }
                grad.add(part.len());
            }
            for (at, sum) in grad.finish().into_iter().enumerate() {
                let (i, j) = (at / h, at % h);
                let expected: f64 = (0..rows).map(|r| dz[r * o + i] * g[r * h + j]).sum();
                assert!((sum - expected).abs() < 1e-12);
            }
        }
    }
}
