//! A norm by itself: the last one of a pre-norm stack.

use super::moments::BatchMoments;
use super::norm::{Apply, ChannelSums, Norm, NormParams, NormStats, counted_rows, normalise};
use super::rows::{self, OutputGradient};
use super::share::{SLOTS, row_chunks};
use crate::par::{self, Disjoint, share};
use crate::real::Real;

/// A norm alone: y = norm(x) over `[B, L, H]`.
///
/// Returns what the backward needs, and the batch's moments when they were made ([`Norm::BatchTrain`]).
///
/// # Panics
/// If x and y differ in size, or are not whole samples.
pub fn norm_forward<T: Real>(
    x: &[T],
    l: usize,
    params: &NormParams<'_, T>,
    y: &mut [T],
) -> (NormStats<T>, Option<BatchMoments>) {
    let h = params.gamma.len();
    assert!(x.len() == y.len() && x.len().is_multiple_of(l * h));
    let rows = x.len() / h;
    let (mut stats, moments) = params.channel_stats(x, l);
    normalise(x, 0, &Apply::new(params, &mut stats, rows), y);
    (stats, moments)
}

/// The backward of [`norm_forward`]: turns dy into dx; gives the gradients of γ and β.
///
/// # Panics
/// If the slices differ in size, or are not whole samples.
pub fn norm_backward<T: Real>(
    x: &[T],
    l: usize,
    params: &NormParams<'_, T>,
    stats: &NormStats<T>,
    dy: &mut [T],
) -> (Vec<T>, Vec<T>) {
    let h = params.gamma.len();
    assert!(x.len() == dy.len() && x.len().is_multiple_of(l * h));
    let mut sums = ChannelSums::new(h);
    match params.norm {
        Norm::Layer => layer_norm_backward(x, params.gamma, stats, dy, &mut sums),
        _ => sums.gather(dy, x, stats, l),
    }
    let (sum, product) = sums.total();
    if !matches!(params.norm, Norm::Layer) {
        let coefficients = params.backward_coefficients(stats, &sum, &product);
        let dx = Disjoint::new(dy);
        par::for_each(&mut vec![(); par::workers()], SLOTS, |(), slot| {
            for range in row_chunks(share(x.len() / h, SLOTS, slot), l) {
                let at = range.start * h..range.end * h;
                // SAFETY: the shares do not overlap.
                let dx = unsafe { dx.part(at.start, at.len()) };
                let count = counted_rows(params.counted(), &range, l);
                coefficients.apply(OutputGradient::InPlace, &x[at], dx, count);
            }
        });
    }
    let round = |x: Vec<f64>| x.into_iter().map(T::rounded).collect();
    (round(product), round(sum))
}

/// Turns dy into LayerNorm's dx; adds its sums over the rows.
fn layer_norm_backward<T: Real>(
    x: &[T],
    gamma: &[T],
    stats: &NormStats<T>,
    dy: &mut [T],
    sums: &mut ChannelSums<T>,
) {
    let h = gamma.len();
    let dx = Disjoint::new(dy);
    let (sum, product) = (sums.sum.shared(), sums.product.shared());
    par::for_each(&mut vec![(); par::workers()], SLOTS, |(), slot| {
        // SAFETY: there is one item per slot.
        let (sum, product) = unsafe { (sum.slot(slot), product.slot(slot)) };
        for range in row_chunks(share(x.len() / h, SLOTS, slot), usize::MAX) {
            let at = range.start * h..range.end * h;
            // SAFETY: the shares of rows do not overlap.
            let dx = unsafe { dx.part(at.start, at.len()) };
            let (mean, rstd) = (&stats.mean[range.clone()], &stats.rstd[range]);
            rows::layer_norm_backward(&x[at], gamma, mean, rstd, dx, sum, product);
        }
    });
}
