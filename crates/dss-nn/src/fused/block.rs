//! A whole block as one operation.

use burn::backend::TensorMetadata;
use burn::tensor::Tensor;
use burn_flex::FlexTensor;
use dss_kernels::block::{self as kernels, Block, BlockConfig, BlockGrads, Saved};
use std::sync::Arc;

use super::norm::{HostNorm, ObservedMoments};
use super::op::{Operation, SavedState, call};
use super::slices::{Float, constants, pooled_tensor, rounded, slice, tensor};
use crate::ops::{BatchStats, BlockParams, BlockSpec};
use dss_kernels::plans::Planned;

/// One block: `[B, L, H]` -> `[B, L, H]`, and what a BatchNorm in training saw.
///
/// # Panics
/// If the shapes do not fit together, or for `NormMode::LayerScalar`, which has no fused form.
pub fn block(
    x: Tensor<3>,
    params: &BlockParams,
    spec: &BlockSpec,
) -> (Tensor<3>, Option<BatchStats>) {
    let [_, l, h] = x.dims();
    let BlockSpec { prenorm, glu, bidirectional, gelu, .. } = *spec;
    let seen = ObservedMoments::default();
    let op = BlockOp {
        config: BlockConfig { l, h, prenorm, glu, bidirectional, gelu: gelu.into() },
        norm: HostNorm::new(&spec.norm),
        masks: spec.masks.as_ref().map(|masks| masks.each_ref().map(constants)),
        lengths: spec.lengths.clone(),
        seen: seen.clone(),
    };
    let BlockParams { k, d, out_weight, out_bias, gamma, beta, past } = params;
    let mut operands = vec![
        (&x).into(),
        k.into(),
        d.into(),
        out_weight.into(),
        out_bias.into(),
        gamma.into(),
        beta.into(),
    ];
    operands.extend(past.as_ref().map(Into::into));
    let y = call(op, operands, &x.device());
    (y, seen.take(&x.device(), x.dtype()))
}

#[derive(Debug)]
struct BlockOp {
    config: BlockConfig,
    norm: HostNorm,
    masks: Option<[Vec<f64>; 2]>,
    lengths: Option<Arc<[usize]>>,
    seen: ObservedMoments,
}

impl BlockOp {
    /// Calls `body` with a plan and the block's parameters.
    fn with<T: Float, R>(
        &self,
        inputs: &[FlexTensor],
        body: impl FnOnce(&mut Block<T>, &kernels::BlockParams<'_, T>) -> dss_kernels::Result<R>,
    ) -> R {
        let [k, d, out_weight, out_bias, gamma, beta] =
            [1, 2, 3, 4, 5, 6].map(|i| slice::<T>(&inputs[i]));
        let masks = self.masks.as_ref().map(|masks| masks.each_ref().map(|m| rounded::<T>(m)));
        let make = || Block::with_buffers(self.config, T::buffers());
        let done = self.norm.with(gamma, beta, |norm| {
            let params = kernels::BlockParams {
                k,
                d,
                out_weight,
                out_bias,
                norm,
                masks: masks.as_ref().map(|masks| masks.each_ref().map(|m| &m[..])),
                lengths: self.lengths.as_deref(),
                past: inputs.get(7).map(|past| slice(past)),
            };
            <T as Planned>::blocks().with(self.config, make, |plan| body(plan, &params))
        });
        done.and_then(|done| done).unwrap_or_else(|error| panic!("{error}"))
    }
}

impl Operation for BlockOp {
    fn forward<T: Float>(&self, inputs: &[FlexTensor], keep: bool) -> (FlexTensor, SavedState) {
        let x = slice::<T>(&inputs[0]);
        let mut y = T::buffers().take(x.len());
        let (saved, moments) =
            self.with(inputs, |plan, params| plan.forward(x, params, &mut y, keep));
        self.seen.put(moments);
        (pooled_tensor(y, inputs[0].shape()), Box::new(saved))
    }

    fn backward<T: Float>(
        &self,
        inputs: &[FlexTensor],
        kept: SavedState,
        dy: FlexTensor,
    ) -> Vec<FlexTensor> {
        let x = slice::<T>(&inputs[0]);
        let saved = *kept.downcast::<Option<Saved<T>>>().expect("kept by this operation");
        let saved = saved.expect("kept for the backward");
        let mut dx = T::buffers().take(x.len());
        let BlockGrads { k, d, out_weight, out_bias, gamma, beta, past } =
            self.with(inputs, |plan, params| plan.backward(x, params, saved, slice(&dy), &mut dx));
        let grads = [k, d, out_weight, out_bias, gamma, beta].into_iter().chain(past);
        let grads = grads.zip(&inputs[1..]);
        let grads = grads.map(|(grad, input)| tensor(grad, input.shape()));
        std::iter::once(pooled_tensor(dx, inputs[0].shape())).chain(grads).collect()
    }
}
