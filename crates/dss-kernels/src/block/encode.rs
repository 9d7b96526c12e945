//! The first layer of numbers: y = W·x + b, from few channels to many.

use super::share::{SLOTS, row_chunks};
use crate::lines::Lines;
use crate::par::{self, Disjoint, share};
use crate::real::Real;

/// y: `[R, H]` of x: `[R, C]`, weight `[H, C]` and bias `[H]`.
///
/// # Panics
/// If the sizes do not fit.
pub fn encode_forward<T: Real>(x: &[T], weight: &[T], bias: &[T], y: &mut [T]) {
    let h = bias.len();
    let (rows, c) = sizes(x, weight, y, h);
    let columns = transposed(weight, h, c);
    let y = Disjoint::new(y);
    par::for_each(&mut vec![(); par::workers()], SLOTS, |(), slot| {
        let rows = share(rows, SLOTS, slot);
        // SAFETY: the shares do not overlap.
        let y = unsafe { y.part(rows.start * h, rows.len() * h) };
        for (x, y) in x[rows.start * c..].chunks_exact(c).zip(y.chunks_exact_mut(h)) {
            y.copy_from_slice(bias);
            for (&x, column) in x.iter().zip(columns.chunks_exact(h)) {
                y.iter_mut().zip(column).for_each(|(y, &w)| *y += x * w);
            }
        }
    });
}

/// The backward of [`encode_forward`] to h channels: writes dx; gives the gradients of weight and bias.
///
/// # Panics
/// If the sizes do not fit.
pub fn encode_backward<T: Real>(
    x: &[T],
    weight: &[T],
    h: usize,
    dy: &[T],
    dx: &mut [T],
) -> (Vec<T>, Vec<T>) {
    let (rows, c) = sizes(x, weight, dy, h);
    assert_eq!(dx.len(), x.len());
    let columns = transposed(weight, h, c);
    // Of each slot: the gradients of the C columns of the weight, and of the bias.
    let size = (c + 1) * h;
    let mut sums = vec![0.0f64; SLOTS * size];
    let (all_sums, dx) = (Disjoint::new(&mut sums), Disjoint::new(dx));
    // On cache lines that no other worker writes to.
    let mut scratches = vec![Lines::new(size.div_ceil(T::LINE)); par::workers()];
    par::for_each(&mut scratches, SLOTS, |some, slot| {
        // SAFETY: there is one item per slot.
        let sums = unsafe { all_sums.part(slot * size, size) };
        // Short sums in T, their sum in f64.
        for rows in row_chunks(share(rows, SLOTS, slot), usize::MAX) {
            some.fill(T::ZERO);
            // SAFETY: the shares of rows do not overlap.
            let dx = unsafe { dx.part(rows.start * c, rows.len() * c) };
            let x = &x[rows.start * c..rows.end * c];
            let dy = &dy[rows.start * h..rows.end * h];
            for ((x, dx), dy) in x.chunks_exact(c).zip(dx.chunks_exact_mut(c)).zip(dy.chunks(h)) {
                let (weights, bias) = some[..size].split_at_mut(c * h);
                bias.iter_mut().zip(dy).for_each(|(sum, &dy)| *sum += dy);
                let columns = columns.chunks_exact(h).zip(weights.chunks_exact_mut(h));
                for ((&x, dx), (column, sum)) in x.iter().zip(dx).zip(columns) {
                    sum.iter_mut().zip(dy).for_each(|(sum, &dy)| *sum += x * dy);
                    *dx = dot(column, dy);
                }
            }
            sums.iter_mut().zip(some.iter()).for_each(|(sum, some)| *sum += some.to_f64());
        }
    });
    let total = |i: usize| T::rounded((0..SLOTS).map(|slot| sums[slot * size + i]).sum());
    let weight = (0..h * c).map(|i| total(i % c * h + i / c)).collect();
    (weight, (c * h..size).map(total).collect())
}

/// R and C, of R·C numbers in, R·H out and H·C weights.
fn sizes<T>(x: &[T], weight: &[T], y: &[T], h: usize) -> (usize, usize) {
    let (rows, c) = (y.len() / h, weight.len() / h);
    assert!(c > 0 && rows * c == x.len() && rows * h == y.len() && h * c == weight.len());
    (rows, c)
}

/// `[C, H]` of `[H, C]`.
fn transposed<T: Real>(weight: &[T], h: usize, c: usize) -> Vec<T> {
    (0..h * c).map(|i| weight[i % h * c + i / h]).collect()
}

/// Σ a·b, in as many sums as a register holds.
fn dot<T: Real>(a: &[T], b: &[T]) -> T {
    const LANES: usize = 16;
    let mut sums = [T::ZERO; LANES];
    for (a, b) in a.chunks(LANES).zip(b.chunks(LANES)) {
        sums.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (&a, &b))| *sum += a * b);
    }
    sums.into_iter().fold(T::ZERO, |all, sum| all + sum)
}
