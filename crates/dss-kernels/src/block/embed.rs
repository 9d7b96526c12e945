//! The first layer of tokens: a row of a table for each.

use super::share::SLOTS;
use crate::par::{self, Disjoint, share};
use crate::real::Real;

/// y: `[R, H]` of the tokens `[R]` and the table `[V, H]`.
///
/// # Panics
/// If the sizes do not fit, or a token is not in 0..V.
pub fn embed_forward<T: Real>(tokens: &[u32], table: &[T], h: usize, y: &mut [T]) {
    assert!(y.len() == tokens.len() * h && table.len().is_multiple_of(h));
    let y = Disjoint::new(y);
    par::for_each(&mut vec![(); par::workers()], SLOTS, |(), slot| {
        let rows = share(tokens.len(), SLOTS, slot);
        // SAFETY: the shares do not overlap.
        let y = unsafe { y.part(rows.start * h, rows.len() * h) };
        for (&token, y) in tokens[rows].iter().zip(y.chunks_exact_mut(h)) {
            y.copy_from_slice(&table[token as usize * h..][..h]);
        }
    });
}

/// The gradient `[V, H]` of the table, given dy: `[R, H]` of a forward call.
///
/// # Panics
/// As [`embed_forward`].
pub fn embed_backward<T: Real>(tokens: &[u32], h: usize, dy: &[T], v: usize) -> Vec<T> {
    assert_eq!(dy.len(), tokens.len() * h);
    let mut grad = vec![T::ZERO; v * h];
    let to = Disjoint::new(&mut grad);
    // Each worker has some channels to itself: no sums of its own, however large V is.
    let (lines, workers) = (h.div_ceil(T::LINE), par::workers());
    par::for_each(&mut vec![(); workers], workers, |(), item| {
        let lines = share(lines, workers, item);
        let (first, count) =
            (lines.start * T::LINE, h.min(lines.end * T::LINE) - lines.start * T::LINE);
        for (&token, dy) in tokens.iter().zip(dy.chunks_exact(h)) {
            // SAFETY: no other item has these channels.
            let to = unsafe { to.part(token as usize * h + first, count) };
            to.iter_mut().zip(&dy[first..]).for_each(|(to, &dy)| *to += dy);
        }
    });
    grad
}
