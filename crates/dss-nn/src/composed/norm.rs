//! Norms of `[B, L, H]` activations.

use burn::tensor::Tensor;

use super::position_mask;
use crate::ops::{BatchStats, NormMode};

/// The norm of x, and for [`NormMode::BatchTrain`] the statistics of this batch, detached.
///
/// # Shapes
/// x `[B, L, H]` -> `[B, L, H]`; gamma and beta `[H]` (`[1]` for [`NormMode::LayerScalar`]).
///
/// # Panics
/// If the shapes do not fit together.
pub fn norm(
    x: Tensor<3>,
    gamma: Tensor<1>,
    beta: Tensor<1>,
    mode: &NormMode,
) -> (Tensor<3>, Option<BatchStats>) {
    let [batch, l, h] = x.dims();
    let (gamma, beta) = (gamma.unsqueeze::<3>(), beta.unsqueeze::<3>());
    match mode {
        NormMode::Layer { eps } => {
            let (x, var) = centred(x);
            (x / (var + *eps).sqrt() * gamma + beta, None)
        }
        NormMode::LayerScalar => {
            let (x, var) = centred(x);
            ((x + beta) / var.sqrt() * gamma, None)
        }
        NormMode::BatchTrain { eps, lengths } => {
            let mask =
                lengths.as_ref().map(|lengths| position_mask(lengths, l, &x.device(), x.dtype()));
            let count = lengths.as_ref().map_or(batch * l, |x| x.iter().map(|&x| x.min(l)).sum());
            let inverse_count = 1.0 / count.max(1) as f64;
            // Mean over the positions that count: [1, 1, H].
            let mean = |x: Tensor<3>| {
                let x = match &mask {
                    Some(mask) => x * mask.clone(),
                    None => x,
                };
                x.reshape([batch * l, h]).sum_dim(0).reshape([1, 1, h]) * inverse_count
            };
            let centre = mean(x.clone());
            let x = x - centre.clone();
            let var = mean(x.clone().square());
            let unbiased = count as f64 / (count.max(2) - 1) as f64;
            let stats = BatchStats {
                mean: centre.detach().reshape([h]),
                var: var.clone().detach().reshape([h]) * unbiased,
            };
            (x / (var + *eps).sqrt() * gamma + beta, Some(stats))
        }
        NormMode::BatchEval { eps, mean, var } => {
            let x = x - mean.clone().unsqueeze::<3>();
            (x / (var.clone() + *eps).sqrt().unsqueeze::<3>() * gamma + beta, None)
        }
    }
}

/// x less its mean over the channels, and its variance (divided by H) `[B, L, 1]`.
fn centred(x: Tensor<3>) -> (Tensor<3>, Tensor<3>) {
    let mean = x.clone().mean_dim(2);
    let x = x - mean;
    let var = x.clone().square().mean_dim(2);
    (x, var)
}
