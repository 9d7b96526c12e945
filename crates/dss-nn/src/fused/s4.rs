//! The kernel of S4 as one operation.

use std::array::from_fn;

use burn::backend::TensorMetadata;
use burn::tensor::Tensor;
use burn_flex::FlexTensor;
use dss_kernels::s4::{Kernel, KernelConfig, ParamGrads, Params};

use super::op::{Kept, Operation, call};
use super::slices::{Float, slice, tensor};
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
        KernelConfig::new(shape[1], 2 * shape[2], taps).channels(shape[0]).norm_len(norm_len)
    }
}

fn params<T: Float>(inputs: &[FlexTensor]) -> Params<'_, T> {
    let [lambda_re, lambda_im, p, b, c, delta_log] = from_fn(|i| slice(&inputs[i]));
    Params { lambda_re, lambda_im, p, b, c, delta_log }
}

impl Operation for S4Op {
    fn forward<T: Float>(&self, inputs: &[FlexTensor], _keep: bool) -> (FlexTensor, Kept) {
        let config = self.config(inputs);
        let shape = [config.channels, config.h, config.len];
        let mut k = vec![T::ZERO; shape.iter().product()];
        let done = <T as Planned>::s4_kernels().with(
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
        let mut grads: [Vec<T>; 6] = from_fn(|i| vec![T::ZERO; inputs[i].shape().num_elements()]);
        let [lambda_re, lambda_im, p, b, c, delta_log] = &mut grads;
        let to = ParamGrads { lambda_re, lambda_im, p, b, c, delta_log };
        let done = <T as Planned>::s4_kernels().with(
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
