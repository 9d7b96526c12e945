//! Attention to chosen keys as one operation on the CPU backend Flex.

use std::sync::Arc;

use burn::backend::TensorMetadata;
use burn::tensor::Tensor;
use burn_flex::FlexTensor;
use dss_kernels::attention::AttentionGrads;
use dss_kernels::attention::gathered::{Gathered, GatheredConfig, GatheredInput, Tiles};

use crate::fused::{Float, Kept, Operation, call, pooled_tensor, slice};

/// q, k, v `[B, L, Q]` -> `[B, L, Q]`: who sees whom is in the tiles.
pub(super) fn gathered(
    qkv: [Tensor<3>; 3],
    config: GatheredConfig,
    tiles: impl Tiles + 'static,
) -> Tensor<3> {
    let op = GatheredOp { config, tiles: Arc::new(tiles) };
    call(op, qkv.each_ref().map(Into::into).into(), &qkv[0].device())
}

#[derive(Debug)]
struct GatheredOp {
    config: GatheredConfig,
    tiles: Arc<dyn Tiles>,
}

impl GatheredOp {
    fn plan<T: Float>(&self) -> Gathered<T> {
        Gathered::new(self.config).unwrap_or_else(|error| panic!("{error}"))
    }

    fn input<'a, T: Float>(&'a self, inputs: &'a [FlexTensor]) -> GatheredInput<'a, T> {
        let [q, k, v] = [0, 1, 2].map(|i| slice::<T>(&inputs[i]));
        GatheredInput { q, k, v, tiles: &*self.tiles }
    }
}

impl Operation for GatheredOp {
    /// Keeps y and the maximum and sum of every row of weights.
    fn forward<T: Float>(&self, inputs: &[FlexTensor], keep: bool) -> (FlexTensor, Kept) {
        let mut y = T::buffers().take(slice::<T>(&inputs[0]).len());
        let mut saved = vec![T::ZERO; self.config.saved_len()];
        let done = self.plan::<T>().forward(&self.input(inputs), &mut y, &mut saved);
        done.unwrap_or_else(|error| panic!("{error}"));
        let kept: Kept = if keep { Box::new((y.to_vec(), saved)) } else { Box::new(()) };
        (pooled_tensor(y, inputs[0].shape()), kept)
    }

    fn backward<T: Float>(
        &self,
        inputs: &[FlexTensor],
        kept: Kept,
        dy: FlexTensor,
    ) -> Vec<FlexTensor> {
        let kept = kept.downcast::<(Vec<T>, Vec<T>)>().expect("kept by this operation");
        let (y, saved) = *kept;
        let [mut q, mut k, mut v] = [0, 1, 2].map(|_| T::buffers().take(y.len()));
        let grads = AttentionGrads { q: &mut q, k: &mut k, v: &mut v };
        let done = self.plan::<T>().backward(&self.input(inputs), &y, &saved, slice(&dy), grads);
        done.unwrap_or_else(|error| panic!("{error}"));
        [q, k, v].map(|grad| pooled_tensor(grad, inputs[0].shape())).into()
    }
}
