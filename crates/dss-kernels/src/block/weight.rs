//! The gradient of a weight.

use super::share::SLOTS;
use super::wide;
use crate::lines::Lines;
use crate::par::{self, Disjoint, share};
use crate::product::{Layout, Product, panels};
use crate::real::Real;

/// How far apart the rows of n numbers are that a gradient is made of: an odd number of cache lines (see `product.rs`).
pub(super) fn apart<T: Real>(n: usize) -> usize {
    (n.div_ceil(T::LINE) | 1) * T::LINE
}

/// dW = Σ over rows of dz ⊗ g, with a sum for every slot of rows: what a worker multiplies, and what it adds to, is in its
/// own cache.
pub(super) struct WeightGrad<T: Real> {
    o: usize,
    h: usize,
    /// Made by the first backward.
    slots: Vec<SlotGrad<T>>,
}

/// The sum over the rows of one slot.
pub(super) struct SlotGrad<T: Real> {
    o: usize,
    h: usize,
    /// `[O, H]` with rows of whole cache lines, in panels.
    sum: Lines<T>,
    empty: bool,
}

impl<T: Real> WeightGrad<T> {
    /// For a weight `[O, H]`.
    pub(super) fn new(o: usize, h: usize) -> Self {
        Self { o, h, slots: Vec::new() }
    }

    /// Makes room for the sums, or forgets what is in them.
    pub(super) fn clear(&mut self) {
        let Self { o, h, .. } = *self;
        self.slots.resize_with(SLOTS, || SlotGrad {
            o,
            h,
            sum: Lines::new(o * wide::<T>(h) / T::LINE),
            empty: true,
        });
        self.slots.iter_mut().for_each(|slot| slot.empty = true);
    }

    /// One for each slot, to be divided among workers.
    pub(super) fn slots(&mut self) -> Disjoint<'_, SlotGrad<T>> {
        Disjoint::new(&mut self.slots)
    }

    /// The sum over all slots, in their order: `[O, H]`.
    pub(super) fn total(&self) -> Vec<T> {
        let Self { o, h, ref slots } = *self;
        let mut total = vec![T::ZERO; o * h];
        let to = Disjoint::new(&mut total);
        par::for_each(&mut vec![(); par::workers()], SLOTS, |(), item| {
            for row in share(o, SLOTS, item) {
                // SAFETY: the shares do not overlap.
                let to = unsafe { to.part(row * h, h) };
                for slot in slots.iter().filter(|slot| !slot.empty) {
                    for j in panels::<T>(wide::<T>(h)) {
                        let from = &slot.sum[o * j.start + row * j.len()..][..j.len()];
                        to[j.start..].iter_mut().zip(from).for_each(|(to, &sum)| *to += sum);
                    }
                }
            }
        });
        total
    }
}

impl<T: Real> SlotGrad<T> {
    /// Adds some rows. dz: `[rows, O]`, g: `[rows, H]`, both with rows [`apart`].
    pub(super) fn add(&mut self, dz: &[T], g: &[T], rows: usize) {
        let Self { o, h, .. } = *self;
        for j in panels::<T>(wide::<T>(h)) {
            Product {
                size: [o, j.len(), rows],
                a: dz,
                a_strides: [1, apart::<T>(o)],
                b: &g[j.start..],
                b_layout: Layout::Rows(apart::<T>(h)),
                c: &mut self.sum[o * j.start..o * j.end],
                add: !self.empty,
            }
            .run();
        }
        self.empty = false;
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
            let spread = |rows: &[f64], n: usize| -> Vec<f64> {
                let gap = vec![0.0; apart::<f64>(n) - n];
                rows.chunks_exact(n).flat_map(|row| [row, &gap].concat()).collect()
            };
            let mut grad = WeightGrad::<f64>::new(o, h);
            for _ in 0..2 {
                grad.clear();
                // Two parts in one slot, one in another; the rest stay empty.
                let cuts = [0, rows / 3, rows / 2, rows];
                for (part, slot) in cuts.windows(2).zip([3, 3, 1]) {
                    let dz = spread(&dz[part[0] * o..part[1] * o], o);
                    let g = spread(&g[part[0] * h..part[1] * h], h);
                    grad.slots[slot].add(&dz, &g, part[1] - part[0]);
                }
                for (at, sum) in grad.total().into_iter().enumerate() {
                    let (i, j) = (at / h, at % h);
                    let expected: f64 = (0..rows).map(|r| dz[r * o + i] * g[r * h + j]).sum();
                    assert!((sum - expected).abs() < 1e-12);
                }
            }
        }
    }
}
