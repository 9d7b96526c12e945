//! A linear map of rows, y = W·x + b, as matrix products over chunks of rows that stay in the cache.

use super::rows;
use super::share::{CHUNK, SLOTS, SlotSums, row_chunks};
use super::weight::{WeightGrad, apart};
use super::wide;
use crate::lines::Lines;
use crate::par::{self, Disjoint, share};
use crate::product::{Layout, Product, store, store_transposed};
use crate::real::Real;

/// The parameters of a linear map from I to O numbers.
#[derive(Debug, Clone, Copy)]
pub struct LinearParams<'a, T> {
    /// W: `[O, I]`.
    pub weight: &'a [T],
    /// b: `[O]`.
    pub bias: &'a [T],
}

impl<T: Real> LinearParams<'_, T> {
    /// `[O, I]`.
    pub(super) fn sizes(&self) -> [usize; 2] {
        let outputs = self.bias.len();
        assert!(outputs > 0 && !self.weight.is_empty());
        assert!(self.weight.len().is_multiple_of(outputs), "the weight is [O, I], the bias [O]");
        [outputs, self.weight.len() / outputs]
    }
}

/// W `[O, I]` as products with rows read it.
pub(super) struct Map<T: Real> {
    o: usize,
    i: usize,
    /// Wᵀ in panels.
    transposed: Lines<T>,
    /// W in panels.
    stored: Lines<T>,
}

impl<T: Real> Map<T> {
    pub(super) fn new(params: &LinearParams<T>) -> Self {
        let [o, i] = params.sizes();
        let mut transposed = Lines::new(i * wide::<T>(o) / T::LINE);
        let mut stored = Lines::new(o * wide::<T>(i) / T::LINE);
        store_transposed(params.weight, i, &mut transposed);
        store(params.weight, i, &mut stored);
        Self { o, i, transposed, stored }
    }

    /// z `[R, wide(O)]` = x·Wᵀ of R rows of x, which begin `stride` apart.
    pub(super) fn forward(&self, rows: usize, x: &[T], stride: usize, z: &mut [T]) {
        let size = [rows, wide::<T>(self.o), self.i];
        let (b, b_layout) = (&self.transposed[..], Layout::Panels);
        Product { size, a: x, a_strides: [stride, 1], b, b_layout, c: z, add: false }.run();
    }

    /// dx `[R, wide(I)]` = dz·W of R rows of dz, which begin `stride` apart.
    pub(super) fn backward(&self, rows: usize, dz: &[T], stride: usize, dx: &mut [T]) {
        let size = [rows, wide::<T>(self.i), self.o];
        let (b, b_layout) = (&self.stored[..], Layout::Panels);
        Product { size, a: dz, a_strides: [stride, 1], b, b_layout, c: dx, add: false }.run();
    }
}

/// A buffer for a chunk of rows that are so wide.
pub(super) fn chunk<T: Real>(width: usize) -> Lines<T> {
    Lines::new((CHUNK * width).div_ceil(T::LINE))
}

/// y `[R, n]` of the first columns of x `[R, width]`.
pub(super) fn narrow<T: Real>(x: &[T], width: usize, y: &mut [T], n: usize) {
    for (y, x) in y.chunks_exact_mut(n).zip(x.chunks_exact(width)) {
        y.copy_from_slice(&x[..n]);
    }
}

/// y `[R, width]` of x `[R, n]`; other columns stay as they are.
pub(super) fn spread<T: Real>(x: &[T], n: usize, y: &mut [T], width: usize) {
    for (y, x) in y.chunks_exact_mut(width).zip(x.chunks_exact(n)) {
        y[..n].copy_from_slice(x);
    }
}

/// y: `[R, O]` of x: `[R, I]`.
///
/// # Panics
/// If the sizes do not fit.
pub fn linear_forward<T: Real>(x: &[T], params: &LinearParams<'_, T>, y: &mut [T]) {
    let [o, i] = params.sizes();
    let rows = x.len() / i;
    assert!(x.len() == rows * i && y.len() == rows * o);
    let (map, y) = (Map::new(params), Disjoint::new(y));
    let mut scratches: Vec<_> = (0..par::workers()).map(|_| chunk(wide::<T>(o))).collect();
    par::for_each(&mut scratches, SLOTS, |z, slot| {
        for range in row_chunks(share(rows, SLOTS, slot), usize::MAX) {
            map.forward(range.len(), &x[range.start * i..range.end * i], i, z);
            // SAFETY: the shares do not overlap.
            let y = unsafe { y.part(range.start * o, range.len() * o) };
            rows::add_bias(z, wide::<T>(o), params.bias, y);
        }
    });
}

/// The backward of [`linear_forward`]: writes dx; gives the gradients of W and b.
///
/// # Panics
/// If the sizes do not fit.
pub fn linear_backward<T: Real>(
    x: &[T],
    params: &LinearParams<'_, T>,
    dy: &[T],
    dx: &mut [T],
) -> [Vec<T>; 2] {
    struct Scratch<T> {
        dz: Lines<T>,
        x: Lines<T>,
        dx: Lines<T>,
    }
    let [o, i] = params.sizes();
    let rows = x.len() / i;
    assert!(x.len() == rows * i && dx.len() == x.len() && dy.len() == rows * o);
    let (map, dx) = (Map::new(params), Disjoint::new(dx));
    let (mut weight, mut bias) = (WeightGrad::new(o, i), SlotSums::<T>::new(o));
    weight.clear();
    let (slots, sums) = (weight.slots(), bias.shared());
    let buffers =
        |_| Scratch { dz: chunk(apart::<T>(o)), x: chunk(apart::<T>(i)), dx: chunk(wide::<T>(i)) };
    let mut scratches: Vec<_> = (0..par::workers()).map(buffers).collect();
    par::for_each(&mut scratches, SLOTS, |scratch, slot| {
        // SAFETY: there is one item per slot.
        let (weight, sum) = unsafe { (&mut slots.part(slot, 1)[0], sums.slot(slot)) };
        for range in row_chunks(share(rows, SLOTS, slot), usize::MAX) {
            let (inputs, count) = (range.start * i..range.end * i, range.len());
            let dy = &dy[range.start * o..range.end * o];
            rows::masked_with_sums(dy, o, None, &mut scratch.dz, apart::<T>(o), sum);
            spread(&x[inputs.clone()], i, &mut scratch.x, apart::<T>(i));
            weight.add(&scratch.dz, &scratch.x, count);
            map.backward(count, &scratch.dz, apart::<T>(o), &mut scratch.dx);
            // SAFETY: the shares of rows do not overlap.
            let dx = unsafe { dx.part(inputs.start, inputs.len()) };
            narrow(&scratch.dx, wide::<T>(i), dx, i);
        }
    });
    [weight.total(), bias.total().into_iter().map(T::rounded).collect()]
}
