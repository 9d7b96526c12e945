//! Small dense matrix products on the calling thread, without packing or allocation.
//!
//! The operands here are made by this crate in the layout the inner loop wants, and fit the second-level cache.

use crate::real::{Real, dispatch};
use pulp::{Simd, WithSimd};

/// C = A·B, or C += A·B, with A: [m, k] by strides, B: [k, n] and C: [m, n] row-major; n is a multiple of `T::LINE`.
pub(crate) struct Product<'a, T> {
    /// [m, n, k]
    pub size: [usize; 3],
    pub a: &'a [T],
    /// Strides of A's rows and columns.
    pub a_strides: [usize; 2],
    pub b: &'a [T],
    pub c: &'a mut [T],
    /// Adds to C instead of overwriting it.
    pub add: bool,
}

/// Rows of one register tile.
const ROWS: usize = 6;

impl<T: Real> Product<'_, T> {
    /// # Panics
    /// If a slice is too short, or n not a multiple of `T::LINE`.
    pub(crate) fn run(self) {
        let [m, n, k] = self.size;
        assert!(m > 0 && n > 0 && k > 0 && n.is_multiple_of(T::LINE));
        assert!(self.b.len() >= k * n && self.c.len() >= m * n);
        let [row, column] = self.a_strides;
        assert!((m - 1) * row + (k - 1) * column < self.a.len());
        dispatch(self);
    }
}

impl<T: Real> WithSimd for Product<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, s: S) {
        let [_, n, _] = self.size;
        let lanes = T::lanes::<S>();
        // As many vectors per tile row as the registers hold: ROWS·4 + 4 + 1 of 32, or ROWS·2 + 2 + 1 of 16.
        let wide = if S::REGISTER_COUNT >= 32 { 4 } else { 2 };
        let mut j = 0;
        // SAFETY: `run` checked the sizes; a panel of columns ends at n at the latest.
        unsafe {
            while j < n {
                if wide == 4 && j + 4 * lanes <= n {
                    self.panel::<S, 4>(s, j);
                    j += 4 * lanes;
                } else if j + 2 * lanes <= n {
                    self.panel::<S, 2>(s, j);
                    j += 2 * lanes;
                } else {
                    self.panel::<S, 1>(s, j);
                    j += lanes;
                }
            }
        }
    }
}

impl<T: Real> Product<'_, T> {
    /// Columns j .. j + V·lanes.
    #[inline(always)]
    unsafe fn panel<S: Simd, const V: usize>(&mut self, s: S, j: usize) {
        let m = self.size[0];
        let mut i = 0;
        // SAFETY: rows stay below m; the caller keeps the columns below n.
        unsafe {
            while i + ROWS <= m {
                self.tile::<S, ROWS, V>(s, i, j);
                i += ROWS;
            }
            while i + 2 <= m {
                self.tile::<S, 2, V>(s, i, j);
                i += 2;
            }
            if i < m {
                self.tile::<S, 1, V>(s, i, j);
            }
        }
    }

    /// R rows from i, V vectors of columns from j.
    #[inline(always)]
    unsafe fn tile<S: Simd, const R: usize, const V: usize>(&mut self, s: S, i: usize, j: usize) {
        let [_, n, k] = self.size;
        let lanes = T::lanes::<S>();
        let [row, column] = self.a_strides;
        let mut sums = [[T::vsplat(s, T::ZERO); V]; R];
        // SAFETY: i + R ≤ m and j + V·lanes ≤ n, so all elements exist.
        unsafe {
            let a = self.a.as_ptr().add(i * row);
            let b = self.b.as_ptr().add(j);
            for p in 0..k {
                let mut b_row = [T::vsplat(s, T::ZERO); V];
                for (v, b_row) in b_row.iter_mut().enumerate() {
                    *b_row = b.add(p * n + v * lanes).cast::<T::V<S>>().read_unaligned();
                }
                for (r, sums) in sums.iter_mut().enumerate() {
                    let a = T::vsplat(s, *a.add(r * row + p * column));
                    for (sum, &b) in sums.iter_mut().zip(&b_row) {
                        *sum = T::vfma(s, a, b, *sum);
                    }
                }
            }
            let c = self.c.as_mut_ptr().add(i * n + j);
            for (r, sums) in sums.into_iter().enumerate() {
                for (v, sum) in sums.into_iter().enumerate() {
                    let c = c.add(r * n + v * lanes).cast::<T::V<S>>();
                    let sum = if self.add { T::vadd(s, c.read_unaligned(), sum) } else { sum };
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
        for (m, n, k) in [(1, 8, 1), (7, 24, 5), (6, 40, 33), (13, 72, 16), (2, 8, 100)] {
            let a: Vec<f64> = (0..m * k).map(|i| (i as f64 * 0.7).sin()).collect();
            let b: Vec<f64> = (0..k * n).map(|i| (i as f64 * 0.3).cos()).collect();
            for a_strides in [[k, 1], [1, m]] {
                let mut c = vec![f64::NAN; m * n];
                let size = [m, n, k];
                Product { size, a: &a, a_strides, b: &b, c: &mut c, add: false }.run();
                let twice = &mut c.clone();
                Product { size, a: &a, a_strides, b: &b, c: twice, add: true }.run();
                assert!(c.iter().zip(&*twice).all(|(c, twice)| 2.0 * c == *twice));
                for (at, c) in c.iter().enumerate() {
                    let (i, j) = (at / n, at % n);
                    let sum: f64 =
                        (0..k).map(|p| a[i * a_strides[0] + p * a_strides[1]] * b[p * n + j]).sum();
                    assert!((c - sum).abs() < 1e-13);
                }
            }
        }
    }
}
