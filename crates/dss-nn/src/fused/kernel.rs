//! The kernel as one operation.

use std::array::from_fn;

use burn::backend::TensorMetadata;
use burn::tensor::Tensor;
use burn_flex::FlexTensor;
use dss_kernels::kernel::{Kernel, KernelConfig, ParamGrads, Params};

use super::op::{Operation, SavedState, call};
use super::slices::{Float, gradients_or_nan, slice, tensor_or_nan};
use crate::ops::{KernelParams, KernelSpec};
use dss_kernels::plans::Planned;

/// K: `[C, H, taps]` of the kernel parameters.
///
/// Parameters without a kernel (a NaN, an infinity, |Δ_log| beyond `dss_kernels::kernel::DELTA_LOG_LIMIT`) give NaN.
pub fn kernel(params: &KernelParams, spec: &KernelSpec) -> Tensor<3> {
    let KernelParams { lambda, delta_log, w } = params;
    call(KernelOp(*spec), vec![lambda.into(), delta_log.into(), w.into()], &w.device())
}

#[derive(Debug)]
struct KernelOp(KernelSpec);

impl KernelOp {
    fn config(&self, inputs: &[FlexTensor]) -> KernelConfig {
        let shape = inputs[2].shape();
        let KernelSpec { variant, delta, taps, norm_len } = self.0;
        KernelConfig::new(variant.into(), shape[1], shape[2], taps)
            .delta(delta.into())
            .channels(shape[0])
            .norm_len(norm_len)
            .systems(inputs[0].shape()[0] / shape[2])
    }
}

/// Calls `body` with the parameters, Λ as two rows, the way `dss-kernels` takes it.
fn with_params<T: Float, R>(inputs: &[FlexTensor], body: impl FnOnce(&Params<'_, T>) -> R) -> R {
    let [lambda, delta_log, w] = from_fn(|i| slice(&inputs[i]));
    let rows = lambda.chunks_exact(2).map(|pair| (pair[0], pair[1]));
    let (lambda_re, lambda_im): (Vec<T>, Vec<T>) = rows.unzip();
    body(&Params { lambda_re: &lambda_re, lambda_im: &lambda_im, delta_log, w })
}

impl Operation for KernelOp {
    fn forward<T: Float>(&self, inputs: &[FlexTensor], _keep: bool) -> (FlexTensor, SavedState) {
        let config = self.config(inputs);
        let shape = [config.channels, config.h, config.len];
        let kernel = tensor_or_nan::<T>(shape, |k| {
            let (plans, make) = (<T as Planned>::kernels(), || Kernel::new(config));
            with_params(inputs, |params| plans.with(config, make, |plan| plan.forward(params, k)))
        });
        (kernel, Box::new(()))
    }

    fn backward<T: Float>(
        &self,
        inputs: &[FlexTensor],
        _kept: SavedState,
        dk: FlexTensor,
    ) -> Vec<FlexTensor> {
        let config = self.config(inputs);
        gradients_or_nan::<T, 3>(inputs, |[lambda, delta_log, w]| {
            let (plans, make) = (<T as Planned>::kernels(), || Kernel::new(config));
            let mut rows = [0; 2].map(|_| vec![T::ZERO; lambda.len() / 2]);
            let [lambda_re, lambda_im] = &mut rows;
            let to = ParamGrads { lambda_re, lambda_im, delta_log, w };
            let done = with_params(inputs, |params| {
                plans.with(config, make, |plan| plan.backward(params, slice(&dk), to))
            });
            let [re, im] = rows;
            for (pair, (re, im)) in lambda.chunks_exact_mut(2).zip(re.into_iter().zip(im)) {
                pair.copy_from_slice(&[re, im]);
            }
            done
        })
    }
}
