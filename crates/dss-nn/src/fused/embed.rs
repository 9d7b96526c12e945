//! The encoder of tokens as one operation.

use burn::tensor::{Int, Tensor};
use burn_flex::FlexTensor;
use dss_kernels::block::{embed_backward, embed_forward};

use super::op::{Operation, SavedState, call};
use super::slices::{Float, pooled_tensor, slice, tensor};

/// The rows of the table `[V, H]` that the tokens `[B, L]` name: `[B, L, H]`.
///
/// # Panics
/// If a token is not in 0..V.
pub fn embed(tokens: Tensor<2, Int>, table: Tensor<2>) -> Tensor<3> {
    let ([batch, l], [v, h]) = (tokens.dims(), table.dims());
    let tokens: Vec<u32> = tokens.to_data().iter::<u32>().collect();
    assert!(tokens.iter().all(|&token| (token as usize) < v), "embed: tokens from 0 to {}", v - 1);
    call(EmbedOp { tokens, shape: [batch, l, h], v }, vec![(&table).into()], &table.device())
}

#[derive(Debug)]
struct EmbedOp {
    tokens: Vec<u32>,
    shape: [usize; 3],
    v: usize,
}

impl Operation for EmbedOp {
    fn forward<T: Float>(&self, inputs: &[FlexTensor], _keep: bool) -> (FlexTensor, SavedState) {
        let mut y = T::buffers().take(self.shape.iter().product());
        embed_forward(&self.tokens, slice::<T>(&inputs[0]), self.shape[2], &mut y);
        (pooled_tensor(y, self.shape), Box::new(()))
    }

    fn backward<T: Float>(
        &self,
        _inputs: &[FlexTensor],
        _kept: SavedState,
        dy: FlexTensor,
    ) -> Vec<FlexTensor> {
        let h = self.shape[2];
        let grad = embed_backward(&self.tokens, h, slice::<T>(&dy), self.v);
        vec![tensor(grad, [self.v, h])]
    }

    fn needs_inputs(&self) -> bool {
        false
    }
}
