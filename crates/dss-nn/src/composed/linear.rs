//! Linear maps of rows, and the feed-forward part of a block.

use burn::tensor::Tensor;

use super::activated;
use crate::ops::FeedForwardParams;

/// W·x + b: `[R, in]` -> `[R, out]`.
///
/// # Panics
/// If the shapes do not fit together.
pub fn linear(x: Tensor<2>, weight: Tensor<2>, bias: Option<Tensor<1>>) -> Tensor<2> {
    let y = x.matmul(weight.transpose());
    match bias {
        Some(bias) => y + bias.unsqueeze(),
        None => y,
    }
}

/// W₂·(mask·GELU(W₁·x + b₁)) + b₂: `[B, L, H]` -> `[B, L, H]`.
///
/// # Panics
/// If the shapes do not fit together.
pub fn feed_forward(x: Tensor<3>, params: &FeedForwardParams) -> Tensor<3> {
    let [batch, l, h] = x.dims();
    let [hidden, out] = params.maps.clone();
    let z = linear(x.reshape([batch * l, h]), hidden.0, Some(hidden.1));
    let mut g = activated(z, params.gelu);
    if let Some(mask) = params.mask.clone() {
        let width = g.dims()[1];
        let dropped = g.reshape([batch, l, width]) * mask.unsqueeze_dim(1);
        g = dropped.reshape([batch * l, width]);
    }
    linear(g, out.0, Some(out.1)).reshape([batch, l, h])
}
