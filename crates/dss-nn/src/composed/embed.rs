//! The encoder of tokens: `[B, L]` -> `[B, L, H]`.

use burn::tensor::{Int, Tensor};

/// The rows of the table `[V, H]` that the tokens name.
///
/// # Panics
/// If a token is not in 0..V.
pub fn embed(tokens: Tensor<2, Int>, table: Tensor<2>) -> Tensor<3> {
    let ([batch, l], [_, h]) = (tokens.dims(), table.dims());
    table.select(0, tokens.reshape([batch * l])).reshape([batch, l, h])
}
