//! Small dense matrix products on the calling thread, without allocation.
//!
//! B is read row by row by the inner loop, a few cache lines of columns at a time. Rows of many lines that are a power of
//! two apart would fall on the same places of the first-level cache: such a B is stored in panels, or with rows that
//! are an odd number of lines apart.

use crate::real::Real;
use pulp::{Simd, WithSimd};
use std::ops::Range;

/// How B: [k, n] is laid out in its slice.
#[derive(Clone, Copy)]
pub(crate) enum Layout {
    /// See [`panels`].
    Panels,
    /// Rows that are this many elements apart, at least n.
    Rows(usize),
}

/// C = A·B, or C += A·B, with A: [m, k] by strides, B: [k, n] and C: [m, n] row-major; n is a multiple of `T::LINE`.
pub(crate) struct Product<'a, T> {
    /// [m, n, k]
    pub size: [usize; 3],
    pub a: &'a [T],
    /// Strides of A's rows and columns.
    pub a_strides: [usize; 2],
    pub b: &'a [T],
    pub b_layout: Layout,
    pub c: &'a mut [T],
    /// Adds to C instead of overwriting it.
    pub add: bool,
}

/// The columns of the panels of a matrix with n columns. Panel j of a matrix with k rows begins at k·j.start, as
/// [k, j.len()] row-major.
pub(crate) fn panels<T: Real>(n: usize) -> impl Iterator<Item = Range<usize>> {
    (0..n).step_by(panel::<T>()).map(move |j| j..n.min(j + panel::<T>()))
}

/// Columns of a panel: those of the widest register tile.
pub(crate) fn panel<T: Real>() -> usize {
    4 * T::LINE
}

/// Puts a weight, `[O, H]`, into panels of whole cache lines.
pub(crate) fn store<T: Real>(weight: &[T], h: usize, to: &mut [T]) {
    let o = weight.len() / h;
    for j in panels::<T>(h.next_multiple_of(T::LINE)) {
        let columns = j.start..j.end.min(h);
        let rows = to[o * j.start..o * j.end].chunks_exact_mut(j.len());
        for (to, row) in rows.zip(weight.chunks_exact(h)) {
            to[..columns.len()].copy_from_slice(&row[columns.clone()]);
        }
    }
}

/// Puts the transpose, `[H, O]`, of a weight into panels of whole cache lines.
pub(crate) fn store_transposed<T: Real>(weight: &[T], h: usize, to: &mut [T]) {
    let o = weight.len() / h;
    for j in panels::<T>(o.next_multiple_of(T::LINE)) {
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

/// Rows of one register tile.
const ROWS: usize = 6;

/// Rows of a panel that are used together: with four cache lines each they fill most of the first-level cache.
const DEPTH: usize = 128;

impl<T: Real> Product<'_, T> {
    /// # Panics
    /// If a slice is too short, or n not a multiple of `T::LINE`.
    pub(crate) fn run(self) {
        let [m, n, k] = self.size;
        assert!(m > 0 && n > 0 && k > 0 && n.is_multiple_of(T::LINE));
        let b_size = match self.b_layout {
            Layout::Panels => k * n,
            Layout::Rows(stride) => {
                assert!(stride >= n);
                (k - 1) * stride + n
            }
        };
        assert!(self.b.len() >= b_size && self.c.len() >= m * n);
        let [row, column] = self.a_strides;
        assert!((m - 1) * row + (k - 1) * column < self.a.len());
        T::product(self);
    }
}

impl<T: Real> WithSimd for Product<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, s: S) {
        let [_, n, k] = self.size;
        let lanes = T::lanes::<S>();
        // As many vectors per tile row as the registers hold: ROWS·4 + 4 + 1 of 32, or ROWS·2 + 2 + 1 of 16.
        let wide = if S::REGISTER_COUNT >= 32 { 4 } else { 2 };
        for Range { start, end } in panels::<T>(n) {
            let (b, b_row) = match self.b_layout {
                Layout::Panels => (start * k, end - start),
                Layout::Rows(stride) => (start, stride),
            };
            for p in (0..k).step_by(DEPTH) {
                let depth = p..k.min(p + DEPTH);
                let mut j = start;
                // SAFETY: `run` checked the sizes; the columns end at n at the latest.
                unsafe {
                    while j < end {
                        let at = Place { depth: depth.clone(), j, b: b + j - start, b_row };
                        if wide == 4 && j + 4 * lanes <= end {
                            self.columns::<S, 4>(s, at);
                            j += 4 * lanes;
                        } else if j + 2 * lanes <= end {
                            self.columns::<S, 2>(s, at);
                            j += 2 * lanes;
                        } else {
                            self.columns::<S, 1>(s, at);
                            j += lanes;
                        }
                    }
                }
            }
        }
    }
}

/// A part of B: rows `depth` of the columns from j on.
struct Place {
    depth: Range<usize>,
    j: usize,
    /// Where row 0 of column j begins, and how far apart the rows are.
    b: usize,
    b_row: usize,
}

impl<T: Real> Product<'_, T> {
    /// All rows of C, columns j .. j + V·lanes.
    #[inline(always)]
    unsafe fn columns<S: Simd, const V: usize>(&mut self, s: S, at: Place) {
        let m = self.size[0];
        let mut i = 0;
        // SAFETY: rows stay below m; the caller keeps the columns below n.
        unsafe {
            // Eight rows are two tiles of four: two alone would leave most registers empty.
            while i + ROWS <= m && m - i != 8 {
                self.tile::<S, ROWS, V>(s, i, &at);
                i += ROWS;
            }
            while i + 4 <= m {
                self.tile::<S, 4, V>(s, i, &at);
                i += 4;
            }
            while i + 2 <= m {
                self.tile::<S, 2, V>(s, i, &at);
                i += 2;
            }
            if i < m {
                self.tile::<S, 1, V>(s, i, &at);
            }
        }
    }

    /// R rows from i, V vectors of columns from j.
    #[inline(always)]
    unsafe fn tile<S: Simd, const R: usize, const V: usize>(&mut self, s: S, i: usize, at: &Place) {
        let n = self.size[1];
        let lanes = T::lanes::<S>();
        let [row, column] = self.a_strides;
        let Place { depth, j, b, b_row } = at;
        let add = self.add || depth.start > 0;
        let mut sums = [[T::vsplat(s, T::ZERO); V]; R];
        // SAFETY: i + R ≤ m, j + V·lanes ≤ n and depth.end ≤ k, so all elements exist.
        unsafe {
            let mut a = self.a.as_ptr().add(i * row + depth.start * column);
            let mut b = self.b.as_ptr().add(b + depth.start * b_row);
            for _ in 0..depth.len() {
                let mut b_here = [T::vsplat(s, T::ZERO); V];
                for (v, b_here) in b_here.iter_mut().enumerate() {
                    *b_here = b.add(v * lanes).cast::<T::V<S>>().read_unaligned();
                }
                for (r, sums) in sums.iter_mut().enumerate() {
                    let a = T::vsplat(s, *a.add(r * row));
                    for (sum, &b) in sums.iter_mut().zip(&b_here) {
                        *sum = T::vfma(s, a, b, *sum);
                    }
                }
                // Past the end after the last row, where nothing is read.
                a = a.wrapping_add(column);
                b = b.wrapping_add(*b_row);
            }
            let c = self.c.as_mut_ptr().add(i * n + j);
            for (r, sums) in sums.into_iter().enumerate() {
                for (v, sum) in sums.into_iter().enumerate() {
                    let c = c.add(r * n + v * lanes).cast::<T::V<S>>();
                    let sum = if add { T::vadd(s, c.read_unaligned(), sum) } else { sum };
                    c.write_unaligned(sum);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_the_triple_sum() {
        for (m, n, k) in [(1, 8, 1), (7, 24, 5), (6, 40, 33), (13, 72, 16), (2, 8, 300)] {
            let a: Vec<f64> = (0..m * k).map(|i| (i as f64 * 0.7).sin()).collect();
            let b: Vec<f64> = (0..k * n).map(|i| (i as f64 * 0.3).cos()).collect();
            let panel_of = |j: Range<usize>| b.chunks_exact(n).flat_map(move |b| &b[j.clone()]);
            let in_panels: Vec<f64> = panels::<f64>(n).flat_map(panel_of).copied().collect();
            let apart: Vec<f64> =
                b.chunks_exact(n).flat_map(|b| b.iter().chain(&[f64::NAN; 3])).copied().collect();
            for (a_strides, b_layout, b_stored) in [
                ([k, 1], Layout::Rows(n), &b),
                ([1, m], Layout::Rows(n + 3), &apart),
                ([k, 1], Layout::Panels, &in_panels),
            ] {
                let product = |c: &mut [f64], add: bool| {
                    let (a, b) = (&a, b_stored);
                    Product { size: [m, n, k], a, a_strides, b, b_layout, c, add }.run();
                };
                let mut c = vec![f64::NAN; m * n];
                product(&mut c, false);
                let mut twice = c.clone();
                product(&mut twice, true);
                for (at, (c, twice)) in c.iter().zip(twice).enumerate() {
                    let (i, j) = (at / n, at % n);
                    let sum: f64 =
                        (0..k).map(|p| a[i * a_strides[0] + p * a_strides[1]] * b[p * n + j]).sum();
                    assert!((c - sum).abs() < 1e-12);
                    assert!((twice - 2.0 * sum).abs() < 1e-12);
                }
            }
        }
    }
}
