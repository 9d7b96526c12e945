//! The kernel of S4D as one operation.

use std::array::from_fn;

use burn::backend::TensorMetadata;
use burn::tensor::Tensor;
use burn_flex::FlexTensor;
use dss_kernels::s4d::{Kernel, KernelConfig, ParamGrads, Params};

use super::op::{Kept, Operation, call};
use super::slices::{Float, slice, tensor};
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
    fn forward<T: Float>(&self, inputs: &[FlexTensor], _keep: bool) -> (FlexTensor, Kept) {
        let config = self.config(inputs);
        let shape = [config.channels, config.h, config.len];
        let mut k = vec![T::ZERO; shape.iter().product()];
        let done = <T as Planned>::s4d_kernels().with(
            config,
            || Kernel::new(config),
            |plan| plan.forward(&params(inputs), &mut k),
        );
        if done.and_then(|done| done).is_err() {
            k.fill(T::rounded(f64::NAN));
        }
        (tensor(k, shape), Box::new(()))
    }

    fn backward<T: Float>(
        &self,
        inputs: &[FlexTensor],
        _kept: Kept,
        dk: FlexTensor,
    ) -> Vec<FlexTensor> {
        let config = self.config(inputs);
        let mut grads: [Vec<T>; 4] = from_fn(|i| vec![T::ZERO; inputs[i].shape().num_elements()]);
        let [lambda_re, lambda_im, c, delta_log] = &mut grads;
        let to = ParamGrads { lambda_re, lambda_im, b: None, c, delta_log };
        let done = <T as Planned>::s4d_kernels().with(
            config,
            || Kernel::new(config),
            |plan| plan.backward(&params(inputs), slice(&dk), to),
        );
        if done.and_then(|done| done).is_err() {
            grads.iter_mut().for_each(|grad| grad.fill(T::rounded(f64::NAN)));
        }
        grads.into_iter().zip(inputs).map(|(grad, input)| tensor(grad, input.shape())).collect()
    }
}
