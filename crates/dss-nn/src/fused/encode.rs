//! The encoder of numbers as one operation.

use burn::backend::TensorMetadata;
use burn::tensor::Tensor;
use burn_flex::FlexTensor;
use dss_kernels::block::{encode_backward, encode_forward};

use super::op::{Operation, SavedState, call};
use super::slices::{Float, pooled_tensor, slice, tensor};

/// W·x + b: `[B, L, C]` -> `[B, L, H]`.
///
/// # Panics
/// If the shapes do not fit together.
pub fn encode(x: Tensor<3>, weight: Tensor<2>, bias: Tensor<1>) -> Tensor<3> {
    assert_eq!(weight.dims(), [bias.dims()[0], x.dims()[2]], "encode: the weight is [H, C]");
    call(EncodeOp, vec![(&x).into(), (&weight).into(), (&bias).into()], &x.device())
}

#[derive(Debug)]
struct EncodeOp;

impl Operation for EncodeOp {
    fn forward<T: Float>(&self, inputs: &[FlexTensor], _keep: bool) -> (FlexTensor, SavedState) {
        let [x, weight, bias] = [0, 1, 2].map(|i| slice::<T>(&inputs[i]));
        let shape = inputs[0].shape();
        let shape = [shape[0], shape[1], bias.len()];
        let mut y = T::buffers().take(shape.iter().product());
        encode_forward(x, weight, bias, &mut y);
        (pooled_tensor(y, shape), Box::new(()))
    }

    fn backward<T: Float>(
        &self,
        inputs: &[FlexTensor],
        _kept: SavedState,
        dy: FlexTensor,
    ) -> Vec<FlexTensor> {
        let (x, weight) = (slice::<T>(&inputs[0]), slice::<T>(&inputs[1]));
        let shapes = [0, 1, 2].map(|i| inputs[i].shape());
        let mut dx = vec![T::ZERO; x.len()];
        let (dw, db) = encode_backward(x, weight, shapes[2][0], slice(&dy), &mut dx);
        [dx, dw, db].into_iter().zip(shapes).map(|(grad, shape)| tensor(grad, shape)).collect()
    }
}
