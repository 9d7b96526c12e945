//! Attention out of Burn tensor operations, with the whole `[L, L]` matrix of weights: the specification.

use burn::tensor::activation::softmax;
use burn::tensor::{Bool, Tensor, TensorData};

use super::AttentionSpec;
use crate::mixer::heads::{self, cut, join, split};

/// softmax(q·kᵀ/√d)·v of q, k, v `[B, L, Q]`, per head; hidden keys have weight 0, positions beyond a length give 0.
pub(super) fn attention(
    [q, k, v]: [Tensor<3>; 3],
    lengths: Option<&[usize]>,
    spec: AttentionSpec,
) -> Tensor<3> {
    let y = join(weights([q, k], lengths, spec).matmul(split(v, spec.heads)));
    cut(y, lengths)
}

/// The same of q `[B, M, Q]`, k and v `[B, L, Q]`, with the true numbers of queries and keys.
pub(super) fn attention_across(
    [q, k, v]: [Tensor<3>; 3],
    [query_lengths, key_lengths]: [Option<&[usize]>; 2],
    heads: usize,
) -> Tensor<3> {
    let d = q.dims()[2] / heads;
    let q = split(q, heads) * (1.0 / (d as f64).sqrt());
    let weights = heads::weights(q, split(k, heads), key_lengths);
    cut(join(weights.matmul(split(v, heads))), query_lengths)
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
    let (q, k) = (split(q, heads), split(k, heads));
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
