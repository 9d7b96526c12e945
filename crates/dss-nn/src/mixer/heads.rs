//! What the attention family shares: heads, padding, rows by number, flags of hidden keys.

use burn::tensor::{Bool, Device, Int, Tensor, TensorData};

use crate::composed::position_mask;

/// `[B, L, Q]` -> `[B, heads, L, d]`: head i has the channels from i·d on.
pub(super) fn split(x: Tensor<3>, heads: usize) -> Tensor<4> {
    let [batch, l, width] = x.dims();
    x.reshape([batch, l, heads, width / heads]).swap_dims(1, 2)
}

/// `[B, heads, L, d]` -> `[B, L, Q]`.
pub(super) fn join(y: Tensor<4>) -> Tensor<3> {
    let [batch, heads, l, d] = y.dims();
    y.swap_dims(1, 2).reshape([batch, l, heads * d])
}

/// `[B, L, Q]` with zeros up to length l.
pub(super) fn padded(x: Tensor<3>, l: usize) -> Tensor<3> {
    let [batch, len, width] = x.dims();
    if len == l {
        return x;
    }
    let zeros = Tensor::zeros([batch, l - len, width], (&x.device(), x.dtype()));
    Tensor::cat(vec![x, zeros], 1)
}

/// `[B, L, Q]` with zeros at and beyond the lengths.
pub(super) fn cut(x: Tensor<3>, lengths: Option<&[usize]>) -> Tensor<3> {
    let Some(lengths) = lengths else { return x };
    let mask = position_mask(lengths, x.dims()[1], &x.device(), x.dtype());
    x * mask
}

/// The rows of x `[R, d]` with these numbers.
pub(super) fn rows(x: Tensor<2>, numbers: Vec<i64>) -> Tensor<2> {
    let device = x.device();
    x.select(0, integers(numbers, &device))
}

/// A vector of integers.
pub(super) fn integers(numbers: Vec<i64>, device: &Device) -> Tensor<1, Int> {
    let count = numbers.len();
    Tensor::from_data(TensorData::new(numbers, [count]), device)
}

/// Flags, broadcast to another shape.
pub(super) fn flags(
    flags: Vec<bool>,
    shape: [usize; 4],
    full: [usize; 4],
    device: &Device,
) -> Tensor<4, Bool> {
    Tensor::<4, Bool>::from_data(TensorData::new(flags, shape), device).expand(full)
}
