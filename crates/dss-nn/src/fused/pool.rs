//! Pooling as one operation.

use burn::backend::TensorMetadata;
use burn::tensor::Tensor;
use burn_flex::FlexTensor;
use dss_format::Pool;
use dss_kernels::block::{self as kernels, pool_backward, pool_forward};
use std::sync::Arc;

use super::op::{Operation, SavedState, call};
use super::slices::{Float, pooled_tensor, slice, tensor};

/// The mean over the first lengths\[b\] positions of sequence b, its position lengths\[b\] − 1, or its first one.
///
/// # Panics
/// If there is not one length per sequence, each from 1 to L.
pub fn pool(x: Tensor<3>, pool: Pool, lengths: &[usize]) -> Tensor<2> {
    let (pool, lengths) = match pool {
        Pool::Mean => (kernels::Pool::Mean, lengths.into()),
        Pool::Last => (kernels::Pool::Last, lengths.into()),
        Pool::Cls => (kernels::Pool::Last, vec![1; lengths.len()].into()),
    };
    let [_, l, _] = x.dims();
    call(PoolOp { pool, l, lengths }, vec![(&x).into()], &x.device())
}

#[derive(Debug)]
struct PoolOp {
    pool: kernels::Pool,
    l: usize,
    lengths: Arc<[usize]>,
}

impl Operation for PoolOp {
    fn forward<T: Float>(&self, inputs: &[FlexTensor], _keep: bool) -> (FlexTensor, SavedState) {
        let shape = inputs[0].shape();
        let [b, h] = [shape[0], shape[2]];
        let mut y = vec![T::ZERO; b * h];
        pool_forward(self.pool, slice::<T>(&inputs[0]), self.l, h, &self.lengths, &mut y);
        (tensor(y, [b, h]), Box::new(()))
    }

    fn backward<T: Float>(
        &self,
        _inputs: &[FlexTensor],
        _kept: SavedState,
        dy: FlexTensor,
    ) -> Vec<FlexTensor> {
        let shape = dy.shape();
        let [b, l, h] = [shape[0], self.l, shape[1]];
        let mut dx = T::buffers().take(b * l * h);
        pool_backward(self.pool, slice::<T>(&dy), l, h, &self.lengths, &mut dx);
        vec![pooled_tensor(dx, [b, l, h])]
    }

    fn needs_inputs(&self) -> bool {
        false
    }
}
