//! One vector per sequence: `[B, L, H]` to `[B, H]`, by true lengths.

use crate::par::{self, Disjoint};
use crate::real::Real;

/// How a sequence becomes one vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pool {
    /// The mean over the first `lengths[b]` positions.
    Mean,
    /// Position `lengths[b] − 1`.
    Last,
}

/// y: `[B, H]` of x: `[B, L, H]`.
///
/// # Panics
/// If the sizes do not fit, or a length is not in 1..=L.
pub fn pool_forward<T: Real>(
    pool: Pool,
    x: &[T],
    l: usize,
    h: usize,
    lengths: &[usize],
    y: &mut [T],
) {
    assert!(x.len() == lengths.len() * l * h && y.len() == lengths.len() * h);
    assert!(lengths.iter().all(|length| (1..=l).contains(length)));
    let y = Disjoint::new(y);
    par::for_each(&mut vec![(); par::workers()], lengths.len(), |(), sample| {
        // SAFETY: each sample is taken once.
        let y = unsafe { y.part(sample * h, h) };
        let (x, length) = (&x[sample * l * h..], lengths[sample]);
        match pool {
            Pool::Last => y.copy_from_slice(&x[(length - 1) * h..][..h]),
            Pool::Mean => {
                let mut sum = vec![0.0; h];
                // Short sums in T, their sum in f64.
                for rows in x[..length * h].chunks(64 * h) {
                    y.fill(T::ZERO);
                    super::rows::column_sums(rows, h, y);
                    sum.iter_mut().zip(&*y).for_each(|(sum, y)| *sum += y.to_f64());
                }
                for (y, sum) in y.iter_mut().zip(sum) {
                    *y = T::rounded(sum / length as f64);
                }
            }
        }
    });
}

/// dx: `[B, L, H]` of dy: `[B, H]`.
///
/// # Panics
/// As [`pool_forward`].
pub fn pool_backward<T: Real>(
    pool: Pool,
    dy: &[T],
    l: usize,
    h: usize,
    lengths: &[usize],
    dx: &mut [T],
) {
    assert!(dx.len() == lengths.len() * l * h && dy.len() == lengths.len() * h);
    assert!(lengths.iter().all(|length| (1..=l).contains(length)));
    let dx = Disjoint::new(dx);
    par::for_each(&mut vec![(); par::workers()], lengths.len(), |(), sample| {
        // SAFETY: each sample is taken once.
        let dx = unsafe { dx.part(sample * l * h, l * h) };
        let (dy, length) = (&dy[sample * h..][..h], lengths[sample]);
        let (first, share) = match pool {
            Pool::Mean => (0, T::rounded(1.0 / length as f64)),
            Pool::Last => (length - 1, T::rounded(1.0)),
        };
        dx[..first * h].fill(T::ZERO);
        for dx in dx[first * h..length * h].chunks_exact_mut(h) {
            dx.iter_mut().zip(dy).for_each(|(dx, &dy)| *dx = dy * share);
        }
        dx[length * h..].fill(T::ZERO);
    });
}
