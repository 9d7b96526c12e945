//! The parameters of a cell, laid out for products with a few rows, and their gradients.

use super::{CellSizes, padded};
use crate::product::{Layout, Product};
use crate::real::Real;

/// A weight matrix W `[out, in]`.
#[derive(Debug, Clone)]
pub struct Map<T> {
    outputs: usize,
    inputs: usize,
    /// Wᵀ: `[in, padded(out)]`.
    transposed: Vec<T>,
    /// W: `[out, padded(in)]`.
    rows: Vec<T>,
}

/// `[rows, columns]` with rows as wide as products want them.
fn padded_rows<T: Real>(x: &[T], columns: usize) -> Vec<T> {
    let width = padded(columns);
    let mut out = vec![T::ZERO; x.len() / columns * width];
    for (out, x) in out.chunks_exact_mut(width).zip(x.chunks_exact(columns)) {
        out[..columns].copy_from_slice(x);
    }
    out
}

impl<T: Real> Map<T> {
    /// Of the matrix W `[out, in]`.
    pub fn new(weight: &[T], [outputs, inputs]: [usize; 2]) -> Self {
        let mut transposed = vec![T::ZERO; inputs * padded(outputs)];
        for (o, row) in weight.chunks_exact(inputs).enumerate() {
            for (i, &w) in row.iter().enumerate() {
                transposed[i * padded(outputs) + o] = w;
            }
        }
        Self { outputs, inputs, transposed, rows: padded_rows(weight, inputs) }
    }

    /// y `[R, padded(out)]` += x·Wᵀ for R rows of x, which begin `stride` apart.
    pub fn add(&self, rows: usize, x: &[T], stride: usize, y: &mut [T]) {
        let n = padded(self.outputs);
        let size = [rows, n, self.inputs];
        let (a_strides, b_layout) = ([stride, 1], Layout::Rows(n));
        Product { size, a: x, a_strides, b: &self.transposed, b_layout, c: y, add: true }.run();
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
        let n = padded(self.inputs);
        let size = [rows, n, self.outputs];
        let (a_strides, b_layout) = ([stride, 1], Layout::Rows(n));
        Product { size, a: dy, a_strides, b: &self.rows, b_layout, c: dx, add: true }.run();
    }
}

/// The parameters of a cell.
#[derive(Debug, Clone)]
pub struct Weights<T> {
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
pub struct Grads<T> {
    /// `[out, padded(in)]` each.
    maps: Vec<Vec<T>>,
    sizes: Vec<[usize; 2]>,
    /// As the parameters.
    pub vectors: Vec<Vec<T>>,
}

impl<T: Real> Grads<T> {
    pub(super) fn new(sizes: &CellSizes) -> Self {
        let zeros = |count: usize| vec![T::ZERO; count];
        let maps = sizes.maps.iter().map(|[outputs, inputs]| zeros(outputs * padded(*inputs)));
        let vectors = sizes.vectors.iter().map(|&count| zeros(count));
        Self { maps: maps.collect(), sizes: sizes.maps.clone(), vectors: vectors.collect() }
    }

    /// dW += dyᵀ·x of matrix `map`: R rows of dy, and of x, which are at least padded(in) wide, begin so far apart.
    pub fn add_map(
        &mut self,
        map: usize,
        rows: usize,
        (dy, dy_stride): (&[T], usize),
        (x, x_stride): (&[T], usize),
    ) {
        let [outputs, inputs] = self.sizes[map];
        let size = [outputs, padded(inputs), rows];
        let (a_strides, b_layout) = ([1, dy_stride], Layout::Rows(x_stride));
        let c = &mut self.maps[map];
        Product { size, a: dy, a_strides, b: x, b_layout, c, add: true }.run();
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
    pub(super) fn add_to(&self, to: &mut [T]) {
        let maps = self.maps.iter().zip(&self.sizes).flat_map(|(map, &[_, inputs])| {
            map.chunks_exact(padded(inputs)).flat_map(move |row| &row[..inputs])
        });
        let all = maps.chain(self.vectors.iter().flatten());
        to.iter_mut().zip(all).for_each(|(to, &x)| *to += x);
    }
}
