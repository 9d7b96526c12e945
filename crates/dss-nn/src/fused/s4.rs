//! The kernel of S4 as one operation.

use std::array::from_fn;

use burn::backend::TensorMetadata;
use burn::tensor::Tensor;
use burn_flex::FlexTensor;
use dss_kernels::s4::{Kernel, KernelConfig, ParamGrads, Params};

use super::op::{Operation, SavedState, call};
use super::slices::{Float, gradients_or_nan, slice, tensor_or_nan};
use crate::ops::{S4Params, S4Spec};
use dss_kernels::plans::Planned;

/// K: `[C, H, taps]` of S4.
///
/// Parameters without a kernel (a NaN, an infinity) give NaN.
///
/// # Panics
/// If more taps are wanted than C̃ is for.
pub fn s4_kernel(params: &S4Params, spec: &S4Spec) -> Tensor<3> {
    assert!((1..=spec.norm_len).contains(&spec.taps), "s4_kernel: {spec:?}");
    let S4Params { lambda_re, lambda_im, p, b, c, delta_log } = params;
    let operands =
        vec![lambda_re.into(), lambda_im.into(), p.into(), b.into(), c.into(), delta_log.into()];
    call(S4Op(*spec), operands, &c.device())
}

#[derive(Debug)]
struct S4Op(S4Spec);

impl S4Op {
    fn config(&self, inputs: &[FlexTensor]) -> KernelConfig {
        let shape = inputs[4].shape();
        let S4Spec { taps, norm_len } = self.0;
        KernelConfig::new(shape[1], 2 * shape[2], taps)
            .channels(shape[0])
            .norm_len(norm_len)
            .systems(inputs[0].shape()[0] / shape[2])
    }
}

fn params<T: Float>(inputs: &[FlexTensor]) -> Params<'_, T> {
    let [lambda_re, lambda_im, p, b, c, delta_log] = from_fn(|i| slice(&inputs[i]));
    Params { lambda_re, lambda_im, p, b, c, delta_log }
}

impl Operation for S4Op {
    fn forward<T: Float>(&self, inputs: &[FlexTensor], _keep: bool) -> (FlexTensor, SavedState) {
        let config = self.config(inputs);
        let shape = [config.channels, config.h, config.len];
        let kernel = tensor_or_nan::<T>(shape, |k| {
            let plans = <T as Planned>::s4_kernels();
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
        gradients_or_nan::<T, 6>(inputs, |[lambda_re, lambda_im, p, b, c, delta_log]| {
            let (plans, make) = (<T as Planned>::s4_kernels(), || Kernel::new(config));
            let to = ParamGrads { lambda_re, lambda_im, p, b, c, delta_log };
            plans.with(config, make, |plan| plan.backward(&params(inputs), slice(&dk), to))
        })
    }
}
