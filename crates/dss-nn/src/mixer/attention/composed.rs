//! Attention out of Burn tensor operations, with the whole `[L, L]` matrix of weights: the specification.

use burn::tensor::Tensor;
use burn::tensor::activation::softmax;

use super::AttentionSpec;
use crate::mixer::heads::{cut, flags, join, split};

/// softmax(q·kᵀ/√d)·v of q `[B, M, Q]`, k and v `[B, L, Q]`, per head; queries beyond a length give 0.
pub(super) fn attention(
    [q, k, v]: [Tensor<3>; 3],
    [query_lengths, key_lengths]: [Option<&[usize]>; 2],
    spec: AttentionSpec,
) -> Tensor<3> {
    let y = join(weights([q, k], key_lengths, spec).matmul(split(v, spec.heads)));
    cut(y, query_lengths)
}

/// softmax(q·kᵀ/√d) `[B, heads, M, L]` of q `[B, M, Q]` and k `[B, L, Q]`; keys at and beyond a length, and in the causal
/// form those that follow, have weight 0.
pub(crate) fn weights(
    [q, k]: [Tensor<3>; 2],
    lengths: Option<&[usize]>,
    spec: AttentionSpec,
) -> Tensor<4> {
    let AttentionSpec { heads, causal } = spec;
    let ([batch, m, width], [_, l, _], device) = (q.dims(), k.dims(), q.device());
    let q = split(q, heads) * (1.0 / ((width / heads) as f64).sqrt());
    let logits = q.matmul(split(k, heads).swap_dims(2, 3));
    if lengths.is_none() && !causal {
        return softmax(logits, 3);
    }
    let length = |b: usize| lengths.map_or(l, |lengths| lengths[b]);
    let rows = if causal { m } else { 1 };
    // A row beyond its sequence sees the first key, so that no softmax is empty; it gives 0 below.
    let hidden = (0..batch).flat_map(|b| {
        (0..rows)
            .flat_map(move |i| (0..l).map(move |j| j > 0 && (j >= length(b) || (causal && j > i))))
    });
    let hidden = flags(hidden.collect(), [batch, 1, rows, l], logits.dims(), &device);
    softmax(logits.mask_fill(hidden, f64::NEG_INFINITY), 3)
}
