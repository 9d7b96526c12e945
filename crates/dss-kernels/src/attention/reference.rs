//! The textbook formula in f64, one row of weights at a time: the oracle of the fast form.

use super::{AttentionConfig, AttentionInput};

/// Gradients of q, k and v, each `[B, L, Q]`.
#[derive(Debug, Clone)]
pub struct ReferenceGrads {
    /// ∂loss/∂q.
    pub q: Vec<f64>,
    /// ∂loss/∂k.
    pub k: Vec<f64>,
    /// ∂loss/∂v.
    pub v: Vec<f64>,
}

/// y: `[B, L, Q]` = softmax(q·kᵀ/√d + mask)·v, head by head.
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

/// The gradients for dy = ∂loss/∂y: `[B, L, Q]`, by dp = dy·vᵀ and the softmax's ds = p·(dp − Σ p·dp).
///
/// # Panics
/// If a slice does not fit `config`.
pub fn attention_backward_reference(
    config: &AttentionConfig,
    input: &AttentionInput<'_, f64>,
    dy: &[f64],
) -> ReferenceGrads {
    let zeros = vec![0.0; dy.len()];
    let mut grads = ReferenceGrads { q: zeros.clone(), k: zeros.clone(), v: zeros };
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

/// Calls `row(i, keys, p)` for every query of every head: where it and the keys it sees are in [B, L, Q], and the
/// weights of those keys.
fn for_each_row(
    config: &AttentionConfig,
    input: &AttentionInput<'_, f64>,
    mut row: impl FnMut(usize, &[usize], &[f64]),
) {
    let AttentionConfig { batch, len, heads, head_dim: d, causal } = *config;
    for b in 0..batch {
        let visible = input.lengths.map_or(len, |lengths| lengths[b]);
        for head in 0..heads {
            let at = |t: usize| (b * len + t) * heads * d + head * d;
            for i in 0..visible {
                let end = if causal { i + 1 } else { visible };
                let keys: Vec<usize> = (0..end).map(at).collect();
                let q = &input.q[at(i)..][..d];
                let logit = |&j: &usize| -> f64 {
                    let product: f64 = q.iter().zip(&input.k[j..]).map(|(q, k)| q * k).sum();
                    product / (d as f64).sqrt()
                };
                let s: Vec<f64> = keys.iter().map(logit).collect();
                let max = s.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let e: Vec<f64> = s.iter().map(|s| (s - max).exp()).collect();
                let sum: f64 = e.iter().sum();
                let p: Vec<f64> = e.iter().map(|e| e / sum).collect();
                row(at(i), &keys, &p);
            }
        }
    }
}
