//! What attention-like mixers out of Burn tensor operations share: heads, and softmax with hidden keys.

use burn::tensor::activation::softmax;
use burn::tensor::{Bool, Tensor, TensorData};

/// `[B, L, Q]` -> `[B, heads, L, d]`: head i has the channels from i·d on.
pub(super) fn split(x: Tensor<3>, heads: usize) -> Tensor<4> {
    let [batch, l, width] = x.dims();
    x.reshape([batch, l, heads, width / heads]).swap_dims(1, 2)
}

/// `[B, heads, L, d]` -> `[B, L, Q]`.
pub(super) fn join(x: Tensor<4>) -> Tensor<3> {
    let [batch, heads, l, d] = x.dims();
    x.swap_dims(1, 2).reshape([batch, l, heads * d])
}

/// softmax(q·kᵀ) `[B, heads, M, L]` of q `[B, heads, M, d]` and k `[B, heads, L, d]`; keys at and beyond a length have
/// weight 0.
pub(super) fn weights(q: Tensor<4>, k: Tensor<4>, lengths: Option<&[usize]>) -> Tensor<4> {
    let logits = q.matmul(k.swap_dims(2, 3));
    let Some(lengths) = lengths else { return softmax(logits, 3) };
    let [batch, heads, m, l] = logits.dims();
    let hidden = lengths.iter().flat_map(|&len| (0..l).map(move |j| j >= len));
    let hidden = TensorData::new(hidden.collect::<Vec<_>>(), [batch, 1, 1, l]);
    let hidden = Tensor::<4, Bool>::from_data(hidden, &logits.device());
    softmax(logits.mask_fill(hidden.expand([batch, heads, m, l]), f64::NEG_INFINITY), 3)
}
