//! All positions of a recurrent net as one operation on the CPU backend Flex.

use burn::backend::TensorMetadata;
use burn::tensor::Tensor;
use burn_flex::FlexTensor;
use dss_kernels::recurrent::{Cell, Recurrent, RecurrentGrads, RecurrentInput};

use crate::fused::{Float, Operation, SavedState, call, pooled_tensor, slice};

/// The outputs `[B, L, n]` of all states, for z `[B, L, Z]`, the cell's weights in its order, and the output `[B, n]`
/// before the first position, if it is not 0.
pub(crate) fn run<C: Cell>(
    cell: C,
    z: Tensor<3>,
    weights: &[Tensor<2>],
    start: Option<Tensor<2>>,
) -> Tensor<3> {
    let flat = weights.iter().map(|w| w.clone().reshape([-1]));
    let params: Tensor<1> = Tensor::cat(flat.collect(), 0);
    let mut operands = vec![(&z).into(), (&params).into()];
    operands.extend(start.as_ref().map(Into::into));
    call(CellOp(cell), operands, &z.device())
}

#[derive(Debug)]
struct CellOp<C>(C);

impl<C: Cell> CellOp<C> {
    fn model<T: Float>(&self, inputs: &[FlexTensor]) -> Recurrent<C, T> {
        let model = Recurrent::new(self.0.clone(), slice(&inputs[1]));
        model.unwrap_or_else(|error| panic!("{error}"))
    }

    fn input<'a, T: Float>(&self, inputs: &'a [FlexTensor]) -> RecurrentInput<'a, T> {
        let shape = inputs[0].shape();
        let start = inputs.get(2).map(slice);
        RecurrentInput { batch: shape[0], len: shape[1], z: slice(&inputs[0]), start }
    }
}

impl<C: Cell> Operation for CellOp<C> {
    /// Keeps every √L-th state.
    fn forward<T: Float>(&self, inputs: &[FlexTensor], keep: bool) -> (FlexTensor, SavedState) {
        let (model, input) = (self.model::<T>(inputs), self.input::<T>(inputs));
        let shape = [input.batch, input.len, model.sizes().outputs];
        let mut y = T::buffers().take(shape.iter().product());
        let mut saved = Vec::new();
        let done = model.forward(&input, &mut y, keep.then_some(&mut saved));
        done.unwrap_or_else(|error| panic!("{error}"));
        (pooled_tensor(y, shape), Box::new(saved))
    }

    fn backward<T: Float>(
        &self,
        inputs: &[FlexTensor],
        kept: SavedState,
        dy: FlexTensor,
    ) -> Vec<FlexTensor> {
        let (model, input) = (self.model::<T>(inputs), self.input::<T>(inputs));
        let saved = kept.downcast::<Vec<T>>().expect("kept by this operation");
        let mut dz = T::buffers().take(input.z.len());
        let mut params = T::buffers().take(model.sizes().parameters());
        let mut start = input.start.map(|start| T::buffers().take(start.len()));
        let grads = RecurrentGrads { z: &mut dz, params: &mut params, start: start.as_deref_mut() };
        let done = model.backward(&input, &saved, slice(&dy), grads);
        done.unwrap_or_else(|error| panic!("{error}"));
        let all = [Some(dz), Some(params), start].into_iter().flatten().zip(inputs);
        all.map(|(grad, input)| pooled_tensor(grad, input.shape())).collect()
    }
}
