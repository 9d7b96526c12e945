//! The encoder of numbers: `[B, L, C]` -> `[B, L, H]`.

use burn::tensor::Tensor;

/// W·x + b.
///
/// # Panics
/// If the shapes do not fit together.
pub fn encode(x: Tensor<3>, weight: Tensor<2>, bias: Tensor<1>) -> Tensor<3> {
    let ([batch, l, channels], [h, _]) = (x.dims(), weight.dims());
    let y = x.reshape([batch * l, channels]).matmul(weight.transpose()) + bias.unsqueeze();
    y.reshape([batch, l, h])
}
