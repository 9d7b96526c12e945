//! The kernel of S4D as one operation.

use std::array::from_fn;

use burn::backend::TensorMetadata;
use burn::tensor::Tensor;
use burn_flex::FlexTensor;
use dss_kernels::s4d::{Kernel, KernelConfig, ParamGrads, Params};

use super::op::{Operation, SavedState, call};
use super::slices::{Float, gradients_or_nan, slice, tensor_or_nan};
use crate::ops::{S4dParams, S4dSpec};
use dss_kernels::plans::Planned;

/// K: `[C, H, taps]` of S4D.
///
/// Parameters without a kernel (a NaN, an infinity) give NaN.
pub fn s4d_kernel(params: &S4dParams, spec: &S4dSpec) -> Tensor<3> {
    let S4dParams { lambda_re, lambda_im, c, delta_log } = params;
    let operands = vec![lambda_re.into(), lambda_im.into(), c.into(), delta_log.into()];
    call(S4dOp(*spec), operands, &c.device())
}

#[derive(Debug)]
struct S4dOp(S4dSpec);

impl S4dOp {
    fn config(&self, inputs: &[FlexTensor]) -> KernelConfig {
        let shape = inputs[2].shape();
        KernelConfig::new(self.0.discretisation.into(), shape[1], 2 * shape[2], self.0.taps)
            .channels(shape[0])
            .systems(inputs[0].shape()[0] / shape[2])
    }
}

fn params<T: Float>(inputs: &[FlexTensor]) -> Params<'_, T> {
    let [lambda_re, lambda_im, c, delta_log] = from_fn(|i| slice(&inputs[i]));
    Params { lambda_re, lambda_im, b: None, c, delta_log }
}

impl Operation for S4dOp {
    fn forward<T: Float>(&self, inputs: &[FlexTensor], _keep: bool) -> (FlexTensor, SavedState) {
        let config = self.config(inputs);
        let shape = [config.channels, config.h, config.len];
        let kernel = tensor_or_nan::<T>(shape, |k| {
            let plans = <T as Planned>::s4d_kernels();
            plans.with(config, || Kernel::new(config), |plan| plan.forward(&params(inputs), k))
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
        gradients_or_nan::<T, 4>(inputs, |[lambda_re, lambda_im, c, delta_log]| {
            let (plans, make) = (<T as Planned>::s4d_kernels(), || Kernel::new(config));
            let to = ParamGrads { lambda_re, lambda_im, b: None, c, delta_log };
            plans.with(config, make, |plan| plan.backward(&params(inputs), slice(&dk), to))
        })
    }
}
