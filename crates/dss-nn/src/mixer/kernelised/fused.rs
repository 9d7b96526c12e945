//! Kernelised attention as one operation on the CPU backend Flex.

use std::sync::Arc;

use burn::backend::TensorMetadata;
use burn::tensor::Tensor;
use burn_flex::FlexTensor;
use dss_kernels::kernelised::{Kernelised, KernelisedConfig, KernelisedGrads, KernelisedInput};

use super::KernelisedSpec;
use crate::fused::{Float, Kept, Operation, call, pooled_tensor, slice};

/// As the composed form, in memory that does not depend on the number of features.
pub(super) fn attention(
    qkv: [Tensor<3>; 3],
    directions: Option<&Tensor<2>>,
    lengths: Option<&[usize]>,
    spec: KernelisedSpec,
) -> Tensor<3> {
    let [batch, len, width] = qkv[0].dims();
    let KernelisedSpec { heads, causal, map, eps } = spec;
    let config = KernelisedConfig { batch, len, heads, head_dim: width / heads, causal, map, eps };
    let op = KernelisedOp { config, lengths: lengths.map(Into::into) };
    let mut operands: Vec<_> = qkv.iter().map(Into::into).collect();
    operands.extend(directions.map(Into::into));
    call(op, operands, &qkv[0].device())
}

#[derive(Debug)]
struct KernelisedOp {
    config: KernelisedConfig,
    lengths: Option<Arc<[usize]>>,
}

impl KernelisedOp {
    fn plan<T: Float>(&self) -> Kernelised<T> {
        Kernelised::new(self.config).unwrap_or_else(|error| panic!("{error}"))
    }

    fn input<'a, T: Float>(&'a self, inputs: &'a [FlexTensor]) -> KernelisedInput<'a, T> {
        let [q, k, v] = [0, 1, 2].map(|i| slice::<T>(&inputs[i]));
        let w = inputs.get(3).map_or(&[][..], slice::<T>);
        KernelisedInput { q, k, v, w, lengths: self.lengths.as_deref() }
    }
}

impl Operation for KernelisedOp {
    /// Keeps y and the denominator of every row.
    fn forward<T: Float>(&self, inputs: &[FlexTensor], keep: bool) -> (FlexTensor, Kept) {
        let mut y = T::buffers().take(slice::<T>(&inputs[0]).len());
        let mut saved = vec![T::ZERO; self.config.saved_len()];
        let done = self.plan::<T>().forward(&self.input(inputs), &mut y, &mut saved);
        done.unwrap_or_else(|error| panic!("{error}"));
        let kept: Kept = if keep { Box::new((y.to_vec(), saved)) } else { Box::new(()) };
        (pooled_tensor(y, inputs[0].shape()), kept)
    }

    /// The directions of FAVOR+ are not trained and get none.
    fn backward<T: Float>(
        &self,
        inputs: &[FlexTensor],
        kept: Kept,
        dy: FlexTensor,
    ) -> Vec<FlexTensor> {
        let kept = kept.downcast::<(Vec<T>, Vec<T>)>().expect("kept by this operation");
        let (y, saved) = *kept;
        let [mut q, mut k, mut v] = [0, 1, 2].map(|_| T::buffers().take(y.len()));
        let grads = KernelisedGrads { q: &mut q, k: &mut k, v: &mut v };
        let done = self.plan::<T>().backward(&self.input(inputs), &y, &saved, slice(&dy), grads);
        done.unwrap_or_else(|error| panic!("{error}"));
        [q, k, v].map(|grad| pooled_tensor(grad, inputs[0].shape())).into()
    }
}
