//! A linear map of rows, and the feed-forward part of a block, as one operation each.

use burn::backend::TensorMetadata;
use burn::tensor::Tensor;
use burn_flex::FlexTensor;
use dss_format::Gelu;
use dss_kernels::block::{self, LinearParams, linear_backward, linear_forward};

use super::op::{Operation, SavedState, call};
use super::slices::{Float, pooled_tensor, slice, tensor};
use crate::ops::FeedForwardParams;

/// W·x + b: `[R, in]` -> `[R, out]`.
///
/// # Panics
/// If the shapes do not fit together.
pub fn linear(x: Tensor<2>, weight: Tensor<2>, bias: Option<Tensor<1>>) -> Tensor<2> {
    let mut operands = vec![(&x).into(), (&weight).into()];
    operands.extend(bias.as_ref().map(Into::into));
    call(LinearOp, operands, &x.device())
}

/// W₂·(mask·GELU(W₁·x + b₁)) + b₂: `[B, L, H]` -> `[B, L, H]`.
///
/// # Panics
/// If the shapes do not fit together.
pub fn feed_forward(x: Tensor<3>, params: &FeedForwardParams) -> Tensor<3> {
    let FeedForwardParams { maps, gelu, mask } = params;
    let mut operands = vec![(&x).into()];
    operands.extend(maps.iter().flat_map(|(weight, bias)| [weight.into(), bias.into()]));
    operands.extend(mask.as_ref().map(Into::into));
    call(FeedForwardOp(*gelu), operands, &x.device())
}

#[derive(Debug)]
struct LinearOp;

/// The map's parameters; zeros in the place of a missing bias.
fn params<'a, T: Float>(inputs: &'a [FlexTensor], zeros: &'a mut Vec<T>) -> LinearParams<'a, T> {
    let bias = match inputs.get(2) {
        Some(bias) => slice(bias),
        None => {
            zeros.resize(inputs[1].shape()[0], T::ZERO);
            zeros
        }
    };
    LinearParams { weight: slice(&inputs[1]), bias }
}

impl Operation for LinearOp {
    fn forward<T: Float>(&self, inputs: &[FlexTensor], _keep: bool) -> (FlexTensor, SavedState) {
        let shape = [inputs[0].shape()[0], inputs[1].shape()[0]];
        let mut y = T::buffers().take(shape.iter().product());
        linear_forward(slice(&inputs[0]), &params(inputs, &mut Vec::new()), &mut y);
        (pooled_tensor(y, shape), Box::new(()))
    }

    fn backward<T: Float>(
        &self,
        inputs: &[FlexTensor],
        _kept: SavedState,
        dy: FlexTensor,
    ) -> Vec<FlexTensor> {
        let x = slice::<T>(&inputs[0]);
        let mut dx = T::buffers().take(x.len());
        let grads = linear_backward(x, &params(inputs, &mut Vec::new()), slice(&dy), &mut dx);
        let grads = grads.into_iter().zip(&inputs[1..]);
        let dx = pooled_tensor(dx, inputs[0].shape());
        [dx].into_iter().chain(grads.map(|(grad, input)| tensor(grad, input.shape()))).collect()
    }
}

#[derive(Debug)]
struct FeedForwardOp(Gelu);

impl FeedForwardOp {
    fn params<'a, T: Float>(&self, inputs: &'a [FlexTensor]) -> block::FeedForwardParams<'a, T> {
        let map =
            |i: usize| LinearParams { weight: slice(&inputs[i]), bias: slice(&inputs[i + 1]) };
        let (gelu, mask) = (self.0.into(), inputs.get(5).map(slice));
        block::FeedForwardParams { hidden: map(1), out: map(3), gelu, mask }
    }
}

impl Operation for FeedForwardOp {
    fn forward<T: Float>(&self, inputs: &[FlexTensor], _keep: bool) -> (FlexTensor, SavedState) {
        let (x, shape) = (slice::<T>(&inputs[0]), inputs[0].shape());
        let mut y = T::buffers().take(x.len());
        block::feed_forward(x, shape[1], &self.params(inputs), &mut y);
        (pooled_tensor(y, shape), Box::new(()))
    }

    fn backward<T: Float>(
        &self,
        inputs: &[FlexTensor],
        _kept: SavedState,
        dy: FlexTensor,
    ) -> Vec<FlexTensor> {
        let (x, shape) = (slice::<T>(&inputs[0]), inputs[0].shape());
        let mut dx = T::buffers().take(x.len());
        let params = self.params(inputs);
        let grads = block::feed_forward_backward(x, shape[1], &params, slice(&dy), &mut dx);
        let grads = grads.hidden.into_iter().chain(grads.out).zip(&inputs[1..]);
        let dx = pooled_tensor(dx, shape);
        [dx].into_iter().chain(grads.map(|(grad, input)| tensor(grad, input.shape()))).collect()
    }
}
