//! Attention within chunks out of Burn tensor operations: rounds one beside the other, joined by their logsumexp.

use burn::tensor::activation::softmax;
use burn::tensor::{Int, Tensor};
use dss_kernels::attention::gathered::{HashSizes, SELF_LOGIT};

use super::ChunkSpec;
use crate::mixer::heads::{flags, integers, join, padded, rows, split};

/// The logit of a hidden key; finite, since a position sees itself with [`SELF_LOGIT`] where it sees nothing else.
const HIDDEN_LOGIT: f64 = -1e9;

/// q, k, v `[B, L, Q]` -> `[B, L, Q]`, with the sorted positions `[B, heads, R, L]`. What is beyond a length is
/// not defined.
///
/// y = Σ_ρ softmax_ρ(lse_ρ)·y_ρ, lse the logsumexp of a round's logits.
pub(super) fn reformer(
    [q, k, v]: [Tensor<3>; 3],
    order: &[u32],
    lengths: Option<&[usize]>,
    spec: &ChunkSpec,
) -> Tensor<3> {
    let [batch, l, width] = q.dims();
    let HashSizes { rounds, chunk, chunks, .. } = spec.sizes;
    let (heads, d, device) = (spec.heads, width / spec.heads, q.device());
    // Chunks of a round in this batch.
    let present = l.div_ceil(chunk);
    let (size, all) = (present * chunk, batch * heads);
    let [q, k, v] =
        [q * spec.scale, k, v].map(|x| split(padded(x, size), heads).reshape([all * size, d]));

    // Positions of the queries [B·heads, R, size], and of the keys [B·heads, R·present, 2·chunk].
    let order = |row: usize| {
        let sorted = order[row * l..][..l].iter().map(|&t| t as usize);
        sorted.chain(l..size).collect::<Vec<_>>()
    };
    let mut query_positions = Vec::with_capacity(all * rounds * size);
    let mut key_positions = Vec::with_capacity(2 * all * rounds * size);
    let mut hidden = Vec::with_capacity(2 * all * rounds * size);
    for row in 0..all {
        let length = lengths.map_or(l, |lengths| lengths[row / heads]);
        let orders: Vec<_> = (0..rounds).map(|round| order(row * rounds + round)).collect();
        for round in 0..rounds {
            for i in 0..present {
                let own = &orders[round][i * chunk..][..chunk];
                // Where the batch has fewer chunks than the longest sequences, the last chunk holds padding only.
                let (before, exists) = match i {
                    0 => {
                        let last = &orders[(round + rounds - 1) % rounds][size - chunk..];
                        (last, present == chunks)
                    }
                    _ => (&orders[round][(i - 1) * chunk..][..chunk], true),
                };
                query_positions.extend_from_slice(own);
                key_positions.extend(before.iter().chain(own).copied());
                hidden.extend(before.iter().map(|&t| !exists || t >= length));
                hidden.extend(own.iter().map(|&t| t >= length));
            }
        }
    }
    let numbers = |positions: &[usize]| -> Vec<i64> {
        let per_row = positions.len() / all;
        let row = |i: usize| i / per_row * size;
        positions.iter().enumerate().map(|(i, &t)| (row(i) + t) as i64).collect()
    };
    let (query_rows, key_rows) = (numbers(&query_positions), numbers(&key_positions));
    let tiles = rounds * present;
    let q = rows(q, query_rows).reshape([all, tiles, chunk, d]);
    let k = rows(k, key_rows.clone()).reshape([all, tiles, 2 * chunk, d]);
    let v = rows(v, key_rows).reshape([all, tiles, 2 * chunk, d]);

    let mut logits = q.matmul(k.swap_dims(2, 3));
    let full = [all, tiles, chunk, 2 * chunk];
    if hidden.contains(&true) {
        let hidden = flags(hidden, [all, tiles, 1, 2 * chunk], full, &device);
        logits = logits.mask_fill(hidden, HIDDEN_LOGIT);
    }
    let positions = |all_positions: &[usize], shape: [usize; 4]| -> Tensor<4, Int> {
        let numbers = all_positions.iter().map(|&t| t as i64).collect();
        integers(numbers, &device).reshape(shape).expand(full)
    };
    if spec.self_last {
        let query = positions(&query_positions, [all, tiles, chunk, 1]);
        let key = positions(&key_positions, [all, tiles, 1, 2 * chunk]);
        if spec.causal {
            logits = logits.mask_fill(key.clone().greater(query.clone()), HIDDEN_LOGIT);
        }
        logits = logits.mask_fill(key.equal(query), SELF_LOGIT);
    }
    let largest = logits.clone().detach().max_dim(3);
    let weights = (logits - largest.clone()).exp();
    let sum = weights.clone().sum_dim(3);
    let y = weights.matmul(v) * sum.clone().recip();
    let lse = largest + sum.log();

    // Back to the order of the sequence, [B·heads, R, L, ·].
    let mut places = vec![0; all * rounds * l];
    for (row, positions) in query_positions.chunks_exact(size).enumerate() {
        for (place, &t) in positions.iter().enumerate().filter(|(_, t)| **t < l) {
            places[row * l + t] = (row * size + place) as i64;
        }
    }
    let y = rows(y.reshape([all * rounds * size, d]), places.clone());
    let lse = rows(lse.reshape([all * rounds * size, 1]), places);
    let share = softmax(lse.reshape([all, rounds, l, 1]), 1);
    let y = (y.reshape([all, rounds, l, d]) * share).sum_dim(1);
    join(y.reshape([batch, heads, l, d]))
}
