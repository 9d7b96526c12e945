//! Attention out of Burn tensor operations, with the whole `[L, L]` matrix of weights: the specification.

use burn::tensor::activation::softmax;
use burn::tensor::{Bool, Tensor, TensorData};

use super::AttentionSpec;
use crate::composed::position_mask;

/// softmax(q·kᵀ/√d)·v of q, k, v `[B, L, Q]`, per head; hidden keys have weight 0, positions beyond a length give 0.
pub(super) fn attention(
    [q, k, v]: [Tensor<3>; 3],
    lengths: Option<&[usize]>,
    spec: AttentionSpec,
) -> Tensor<3> {
    let [batch, l, width] = v.dims();
    let (device, dtype) = (v.device(), v.dtype());
    let values = v.reshape([batch, l, spec.heads, width / spec.heads]).swap_dims(1, 2);
    let weights = weights([q, k], lengths, spec);
    let y = weights.matmul(values).swap_dims(1, 2).reshape([batch, l, width]);
    match lengths {
        Some(lengths) => y * position_mask(lengths, l, &device, dtype),
        None => y,
    }
}

/// softmax(q·kᵀ/√d) `[B, heads, L, L]` of q, k `[B, L, Q]`.
pub(super) fn weights(
    [q, k]: [Tensor<3>; 2],
    lengths: Option<&[usize]>,
    spec: AttentionSpec,
) -> Tensor<4> {
    let [batch, l, width] = q.dims();
    let (heads, d) = (spec.heads, width / spec.heads);
    let device = q.device();
    let split = |x: Tensor<3>| x.reshape([batch, l, heads, d]).swap_dims(1, 2);
    let (q, k) = (split(q), split(k));
    let logits = (q * (1.0 / (d as f64).sqrt())).matmul(k.swap_dims(2, 3));
    let length = |b: usize| lengths.map_or(l, |lengths| lengths[b]);
    // A row beyond its sequence sees the first key, so that no softmax is empty; it gives 0 below.
    let hidden = (0..batch).flat_map(|b| {
        (0..l).flat_map(move |i| {
            (0..l).map(move |j| j > 0 && (j >= length(b) || (spec.causal && j > i)))
        })
    });
    let hidden = TensorData::new(hidden.collect::<Vec<_>>(), [batch, 1, l, l]);
    let hidden = Tensor::<4, Bool>::from_data(hidden, &device).expand([batch, heads, l, l]);
    softmax(logits.mask_fill(hidden, f64::NEG_INFINITY), 3)
}
