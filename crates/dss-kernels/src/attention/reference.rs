//! The textbook formula in f64, one row of weights at a time: the oracle of the fast form.

use super::{AttentionConfig, AttentionInput};

/// Gradients of q `[B, M, Q]`, k and v `[B, L, Q]`.
#[derive(Debug, Clone)]
pub struct ReferenceGrads {
    /// ∂loss/∂q.
    pub q: Vec<f64>,
    /// ∂loss/∂k.
    pub k: Vec<f64>,
    /// ∂loss/∂v.
    pub v: Vec<f64>,
}

/// y: `[B, M, Q]` = softmax(q·kᵀ/√d + mask)·v, head by head.
///
/// # Panics
/// If a slice does not fit `config`.
pub fn attention_reference(config: &AttentionConfig, input: &AttentionInput<'_, f64>) -> Vec<f64> {
    let mut y = vec![0.0; input.q.len()];
    for_each_row(config, input, |i, keys, p| {
        for (&j, p) in keys.iter().zip(p) {
            for c in 0..config.head_dim {
                y[i + c] += p * input.v[j + c];
            }
        }
    });
    y
}

/// The gradients for dy = ∂loss/∂y: `[B, M, Q]`, by dp = dy·vᵀ and the softmax's ds = p·(dp − Σ p·dp).
///
/// # Panics
/// If a slice does not fit `config`.
pub fn attention_backward_reference(
    config: &AttentionConfig,
    input: &AttentionInput<'_, f64>,
    dy: &[f64],
) -> ReferenceGrads {
    let [q, k] = [dy.len(), input.k.len()].map(|size| vec![0.0; size]);
    let mut grads = ReferenceGrads { q, v: k.clone(), k };
    let d = config.head_dim;
    let scale = 1.0 / (d as f64).sqrt();
    for_each_row(config, input, |i, keys, p| {
        let dp: Vec<f64> =
            keys.iter().map(|&j| (0..d).map(|c| dy[i + c] * input.v[j + c]).sum()).collect();
        let mean: f64 = p.iter().zip(&dp).map(|(p, dp)| p * dp).sum();
        for ((&j, p), dp) in keys.iter().zip(p).zip(&dp) {
            let ds = p * (dp - mean) * scale;
            for c in 0..d {
                grads.v[j + c] += p * dy[i + c];
                grads.k[j + c] += ds * input.q[i + c];
                grads.q[i + c] += ds * input.k[j + c];
            }
        }
    });
    grads
}

/// Calls `row(i, keys, p)` for every query of every head: where it is in [B, M, Q], where the keys it sees are in
/// [B, L, Q], and the weights of those keys.
fn for_each_row(
    config: &AttentionConfig,
    input: &AttentionInput<'_, f64>,
    mut row: impl FnMut(usize, &[usize], &[f64]),
) {
    let AttentionConfig { batch, queries, keys, heads, head_dim: d, causal } = *config;
    for b in 0..batch {
        let [true_queries, true_keys] = input.lengths().map(|lengths| lengths.map(|l| l[b]));
        for head in 0..heads {
            let at = |len: usize, t: usize| (b * len + t) * heads * d + head * d;
            for i in 0..true_queries.unwrap_or(queries) {
                let end = if causal { i + 1 } else { true_keys.unwrap_or(keys) };
                let seen: Vec<usize> = (0..end).map(|j| at(keys, j)).collect();
                let q = &input.q[at(queries, i)..][..d];
                let logit = |&j: &usize| -> f64 {
                    let product: f64 = q.iter().zip(&input.k[j..]).map(|(q, k)| q * k).sum();
                    product / (d as f64).sqrt()
                };
                let s: Vec<f64> = seen.iter().map(logit).collect();
                let max = s.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let e: Vec<f64> = s.iter().map(|s| (s - max).exp()).collect();
                let sum: f64 = e.iter().sum();
                let p: Vec<f64> = e.iter().map(|e| e / sum).collect();
                row(at(queries, i), &seen, &p);
            }
        }
    }
}
