//! The parameters of a cell, laid out for products with a few rows, and their gradients.

use super::{CellSizes, padded};
use crate::lines::Lines;
use crate::product::{Layout, Product, store, store_transposed};
use crate::real::Real;

/// A weight matrix W `[out, in]`.
#[derive(Debug, Clone)]
pub struct Map<T: Real> {
    outputs: usize,
    inputs: usize,
    /// Wᵀ, `[in, padded(out)]`, in panels.
    transposed: Lines<T>,
    /// W, `[out, padded(in)]`, in panels.
    stored: Lines<T>,
}

impl<T: Real> Map<T> {
    /// Of the matrix W `[out, in]`.
    pub fn new(weight: &[T], [outputs, inputs]: [usize; 2]) -> Self {
        let (mut rows, wide) = (weight.to_vec(), padded(inputs));
        rows.resize(padded(outputs) * inputs, T::ZERO);
        let mut transposed = Lines::new(rows.len().div_ceil(T::LINE));
        store_transposed(&rows, inputs, &mut transposed);
        let mut columns = vec![T::ZERO; outputs * wide];
        for (to, row) in columns.chunks_exact_mut(wide).zip(weight.chunks_exact(inputs)) {
            to[..inputs].copy_from_slice(row);
        }
        let mut stored = Lines::new(columns.len() / T::LINE);
        store(&columns, wide, &mut stored);
        Self { outputs, inputs, transposed, stored }
    }

    /// y `[R, padded(out)]` += x·Wᵀ for R rows of x, which begin `stride` apart.
    pub fn add(&self, rows: usize, x: &[T], stride: usize, y: &mut [T]) {
        let size = [rows, padded(self.outputs), self.inputs];
        let (b, b_layout) = (&self.transposed[..], Layout::Panels);
        Product { size, a: x, a_strides: [stride, 1], b, b_layout, c: y, add: true }.run();
    }

    /// y `[R, padded(out)]` = x·Wᵀ + b.
    pub fn affine(&self, rows: usize, x: &[T], stride: usize, bias: &[T], y: &mut [T]) {
        let n = padded(self.outputs);
        for y in y[..rows * n].chunks_exact_mut(n) {
            y[..bias.len()].copy_from_slice(bias);
            y[bias.len()..].fill(T::ZERO);
        }
        self.add(rows, x, stride, y);
    }

    /// dx `[R, padded(in)]` += dy·W for R rows of dy, which begin `stride` apart.
    pub fn add_backward(&self, rows: usize, dy: &[T], stride: usize, dx: &mut [T]) {
        let size = [rows, padded(self.inputs), self.outputs];
        let (b, b_layout) = (&self.stored[..], Layout::Panels);
        Product { size, a: dy, a_strides: [stride, 1], b, b_layout, c: dx, add: true }.run();
    }
}

/// The parameters of a cell.
#[derive(Debug, Clone)]
pub struct Weights<T: Real> {
    /// The matrices, in the order of [`CellSizes::maps`].
    pub maps: Vec<Map<T>>,
    /// The other parameters, in the order of [`CellSizes::vectors`].
    pub vectors: Vec<Vec<T>>,
}

impl<T: Real> Weights<T> {
    /// Of all parameters behind each other.
    pub(super) fn new(sizes: &CellSizes, mut params: &[T]) -> Self {
        let mut take = |count: usize| params.split_off(..count).expect("checked by the caller");
        Self {
            maps: sizes.maps.iter().map(|&size| Map::new(take(size[0] * size[1]), size)).collect(),
            vectors: sizes.vectors.iter().map(|&count| take(count).to_vec()).collect(),
        }
    }
}

/// Gradients of [`Weights`].
#[derive(Debug, Clone)]
pub struct Grads<T: Real> {
    maps: Vec<MapGrad<T>>,
    /// As the parameters.
    pub vectors: Vec<Vec<T>>,
}

/// Rows that are multiplied together: a product with the few rows of one step would go through all of dW for them.
const PENDING: usize = 256;

/// dW `[out, padded(in)]`, and rows that are still to be multiplied into it.
#[derive(Debug, Clone)]
struct MapGrad<T: Real> {
    outputs: usize,
    inputs: usize,
    sum: Vec<T>,
    /// `[PENDING, outputs]` and `[PENDING, padded(in)]`, rows an odd number of cache lines apart.
    dy: Lines<T>,
    x: Lines<T>,
    pending: usize,
}

/// How far apart rows of n numbers are (see `product.rs`).
fn apart(n: usize) -> usize {
    (n.div_ceil(16) | 1) * 16
}

impl<T: Real> MapGrad<T> {
    fn new([outputs, inputs]: [usize; 2]) -> Self {
        let rows = |n: usize| Lines::new(PENDING * apart(n) / T::LINE);
        let sum = vec![T::ZERO; outputs * padded(inputs)];
        Self { outputs, inputs, sum, dy: rows(outputs), x: rows(inputs), pending: 0 }
    }

    fn push(&mut self, dy: &[T], x: &[T]) {
        let (o, i) = (apart(self.outputs), apart(self.inputs));
        self.dy[self.pending * o..][..self.outputs].copy_from_slice(&dy[..self.outputs]);
        self.x[self.pending * i..][..self.inputs].copy_from_slice(&x[..self.inputs]);
        self.pending += 1;
        if self.pending == PENDING {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let Self { outputs, inputs, ref mut sum, ref dy, ref x, pending } = *self;
        if pending > 0 {
            let size = [outputs, padded(inputs), pending];
            let (a_strides, b_layout) = ([1, apart(outputs)], Layout::Rows(apart(inputs)));
            Product { size, a: dy, a_strides, b: x, b_layout, c: sum, add: true }.run();
        }
        self.pending = 0;
    }
}

impl<T: Real> Grads<T> {
    pub(super) fn new(sizes: &CellSizes) -> Self {
        let maps = sizes.maps.iter().map(|&size| MapGrad::new(size));
        let vectors = sizes.vectors.iter().map(|&count| vec![T::ZERO; count]);
        Self { maps: maps.collect(), vectors: vectors.collect() }
    }

    /// dW += dyᵀ·x of matrix `map`: R rows of dy, and of x, which begin so far apart.
    pub fn add_map(
        &mut self,
        map: usize,
        rows: usize,
        (dy, dy_stride): (&[T], usize),
        (x, x_stride): (&[T], usize),
    ) {
        for row in 0..rows {
            self.maps[map].push(&dy[row * dy_stride..], &x[row * x_stride..]);
        }
    }

    /// db += Σ dy over the rows, which begin `stride` apart.
    pub fn add_vector(&mut self, vector: usize, dy: &[T], stride: usize) {
        for dy in dy.chunks(stride) {
            for (sum, &dy) in self.vectors[vector].iter_mut().zip(dy) {
                *sum += dy;
            }
        }
    }

    /// Adds all numbers to `to`, in the order of the parameters.
    pub(super) fn add_to(&mut self, to: &mut [T]) {
        self.maps.iter_mut().for_each(MapGrad::flush);
        let maps = self.maps.iter().flat_map(|map| {
            map.sum.chunks_exact(padded(map.inputs)).flat_map(|row| &row[..map.inputs])
        });
        let all = maps.chain(self.vectors.iter().flatten());
        to.iter_mut().zip(all).for_each(|(to, &x)| *to += x);
    }
}
