//! Attention of every kind as one operation on the CPU backend Flex.

use std::sync::Arc;

use burn::backend::TensorMetadata;
use burn::tensor::Tensor;
use burn_flex::FlexTensor;
use dss_kernels::Result;
use dss_kernels::attention::gathered::{Gathered, GatheredConfig, GatheredInput, Tiles};
use dss_kernels::attention::{Attention, AttentionConfig, AttentionGrads, AttentionInput};
use dss_kernels::kernelised::{Kernelised, KernelisedConfig, KernelisedInput};

use crate::fused::{Float, Operation, SavedState, call, pooled_tensor, slice};

/// The attentions of `dss_kernels`, with the true length of each sequence where it is not L.
#[derive(Debug)]
pub(super) enum AttentionOp {
    /// Of every query to every key, with the true numbers of both.
    Softmax(AttentionConfig, [Option<Arc<[usize]>>; 2]),
    /// Who sees whom is in the tiles.
    Gathered(GatheredConfig, Arc<dyn Tiles>),
    /// Weights φ(q)·φ(k).
    Kernelised(KernelisedConfig, Option<Arc<[usize]>>),
}

/// q `[B, M, Q]`, k, v `[B, L, Q]` -> `[B, M, Q]`; only softmax attention has M ≠ L. The directions `[m, d]` of FAVOR+ are not trained and get no gradient.
pub(super) fn attention(
    op: AttentionOp,
    qkv: &[Tensor<3>; 3],
    directions: Option<&Tensor<2>>,
) -> Tensor<3> {
    let mut operands: Vec<_> = qkv.iter().map(Into::into).collect();
    operands.extend(directions.map(Into::into));
    call(op, operands, &qkv[0].device())
}

impl AttentionOp {
    fn saved_len(&self) -> usize {
        match self {
            Self::Softmax(config, _) => config.saved_len(),
            Self::Gathered(config, _) => config.saved_len(),
            Self::Kernelised(config, _) => config.saved_len(),
        }
    }

    /// Writes y and the statistics of every row, or the gradients.
    fn run<T: Float>(&self, inputs: &[FlexTensor], pass: AttentionPass<'_, T>) -> Result<()> {
        macro_rules! run {
            ($plan:ty, $config:expr, $input:expr) => {{
                let (mut plan, input) = (<$plan>::new(*$config)?, $input);
                match pass {
                    AttentionPass::Forward(y, saved) => plan.forward(&input, y, saved),
                    AttentionPass::Backward([y, saved, dy], grads) => {
                        plan.backward(&input, y, saved, dy, grads)
                    }
                }
            }};
        }
        let [q, k, v] = [0, 1, 2].map(|i| slice::<T>(&inputs[i]));
        let w = inputs.get(3).map_or(&[][..], slice::<T>);
        match self {
            Self::Softmax(config, lengths) => {
                let [query_lengths, key_lengths] = lengths.each_ref().map(Option::as_deref);
                let input = AttentionInput { q, k, v, query_lengths, key_lengths };
                run!(Attention<T>, config, input)
            }
            Self::Gathered(config, tiles) => {
                run!(Gathered<T>, config, GatheredInput { q, k, v, tiles: &**tiles })
            }
            Self::Kernelised(config, lengths) => {
                let lengths = lengths.as_deref();
                run!(Kernelised<T>, config, KernelisedInput { q, k, v, w, lengths })
            }
        }
    }
}

/// Where the results go; the backward is given y, the statistics and dy.
enum AttentionPass<'a, T> {
    Forward(&'a mut [T], &'a mut [T]),
    Backward([&'a [T]; 3], AttentionGrads<'a, T>),
}

impl Operation for AttentionOp {
    /// Keeps y and the statistics of every row of weights.
    fn forward<T: Float>(&self, inputs: &[FlexTensor], keep: bool) -> (FlexTensor, SavedState) {
        let mut y = T::buffers().take(slice::<T>(&inputs[0]).len());
        let mut saved = vec![T::ZERO; self.saved_len()];
        self.run(inputs, AttentionPass::Forward(&mut y, &mut saved))
            .unwrap_or_else(|error| panic!("{error}"));
        let kept: SavedState = if keep { Box::new((y.to_vec(), saved)) } else { Box::new(()) };
        (pooled_tensor(y, inputs[0].shape()), kept)
    }

    fn backward<T: Float>(
        &self,
        inputs: &[FlexTensor],
        kept: SavedState,
        dy: FlexTensor,
    ) -> Vec<FlexTensor> {
        let kept = kept.downcast::<(Vec<T>, Vec<T>)>().expect("kept by this operation");
        let (y, saved) = *kept;
        let [mut q, mut k, mut v] =
            [0, 1, 2].map(|i| T::buffers().take(slice::<T>(&inputs[i]).len()));
        let grads = AttentionGrads { q: &mut q, k: &mut k, v: &mut v };
        self.run(inputs, AttentionPass::Backward([&y, &saved, slice(&dy)], grads))
            .unwrap_or_else(|error| panic!("{error}"));
        let grads = [q, k, v].into_iter().zip(inputs);
        grads.map(|(grad, input)| pooled_tensor(grad, input.shape())).collect()
    }
}
