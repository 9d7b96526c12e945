//! Attention as one operation on the CPU backend Flex.

use std::sync::Arc;

use burn::backend::TensorMetadata;
use burn::tensor::Tensor;
use burn_flex::FlexTensor;
use dss_kernels::attention::{Attention, AttentionConfig, AttentionGrads, AttentionInput};

use super::AttentionSpec;
use crate::fused::{Float, Kept, Operation, call, pooled_tensor, slice};

/// As the composed form, in blocks of queries and keys.
pub(super) fn attention(
    qkv: [Tensor<3>; 3],
    lengths: Option<&[usize]>,
    spec: AttentionSpec,
) -> Tensor<3> {
    let [batch, len, width] = qkv[0].dims();
    let AttentionSpec { heads, causal } = spec;
    let config = AttentionConfig { batch, len, heads, head_dim: width / heads, causal };
    let op = AttentionOp { config, lengths: lengths.map(Into::into) };
    call(op, qkv.each_ref().map(Into::into).into(), &qkv[0].device())
}

#[derive(Debug)]
struct AttentionOp {
    config: AttentionConfig,
    lengths: Option<Arc<[usize]>>,
}

impl AttentionOp {
    fn plan<T: Float>(&self) -> Attention<T> {
        Attention::new(self.config).unwrap_or_else(|error| panic!("{error}"))
    }

    fn input<'a, T: Float>(&'a self, inputs: &'a [FlexTensor]) -> AttentionInput<'a, T> {
        let [q, k, v] = [0, 1, 2].map(|i| slice::<T>(&inputs[i]));
        AttentionInput { q, k, v, lengths: self.lengths.as_deref() }
    }
}

impl Operation for AttentionOp {
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
