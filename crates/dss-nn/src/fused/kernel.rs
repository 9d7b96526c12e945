//! The kernel as one operation.

use burn::backend::TensorMetadata;
use burn::tensor::Tensor;
use burn_flex::FlexTensor;
use dss_kernels::kernel::{KernelConfig, ParamGrads, Params};

use super::op::{Kept, Operation, call};
use super::slices::{Float, slice, tensor};
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

/// Λ as two rows, the way `dss-kernels` takes it.
fn split<T: Copy>(pairs: &[T]) -> (Vec<T>, Vec<T>) {
    pairs.chunks_exact(2).map(|pair| (pair[0], pair[1])).unzip()
}

impl KernelOp {
    /// [C, H, N] and the plan's configuration.
    fn config(&self, inputs: &[FlexTensor]) -> ([usize; 3], KernelConfig) {
        let shape = inputs[2].shape();
        let [c, h, n] = [shape[0], shape[1], shape[2]];
        let KernelSpec { variant, delta, taps, norm_len } = self.0;
        let config = KernelConfig::new(variant.into(), h, n, taps)
            .delta(delta.into())
            .channels(c)
            .norm_len(norm_len)
            .systems(inputs[0].shape()[0] / n);
        ([c, h, n], config)
    }
}

impl Operation for KernelOp {
    fn forward<T: Float>(&self, inputs: &[FlexTensor], _keep: bool) -> (FlexTensor, Kept) {
        let ([c, h, _], config) = self.config(inputs);
        let (lambda_re, lambda_im) = split(slice::<T>(&inputs[0]));
        let params = Params {
            lambda_re: &lambda_re,
            lambda_im: &lambda_im,
            delta_log: slice(&inputs[1]),
            w: slice(&inputs[2]),
        };
        let mut k = vec![T::ZERO; c * h * self.0.taps];
        let make = || dss_kernels::kernel::Kernel::new(config);
        let done =
            <T as Planned>::kernels().with(config, make, |plan| plan.forward(&params, &mut k));
        if done.and_then(|done| done).is_err() {
            k.fill(T::rounded(f64::NAN));
        }
        (tensor(k, [c, h, self.0.taps]), Box::new(()))
    }

    fn backward<T: Float>(
        &self,
        inputs: &[FlexTensor],
        _kept: Kept,
        dk: FlexTensor,
    ) -> Vec<FlexTensor> {
        let ([c, h, n], config) = self.config(inputs);
        let (lambda_re, lambda_im) = split(slice::<T>(&inputs[0]));
        let delta_log = slice(&inputs[1]);
        let params = Params {
            lambda_re: &lambda_re,
            lambda_im: &lambda_im,
            delta_log,
            w: slice(&inputs[2]),
        };
        let modes = lambda_re.len();
        let (mut d_re, mut d_im) = (vec![T::ZERO; modes], vec![T::ZERO; modes]);
        let (mut d_delta, mut d_w) = (vec![T::ZERO; delta_log.len()], vec![T::ZERO; c * h * n * 2]);
        let grads = ParamGrads {
            lambda_re: &mut d_re,
            lambda_im: &mut d_im,
            delta_log: &mut d_delta,
            w: &mut d_w,
        };
        let make = || dss_kernels::kernel::Kernel::new(config);
        let done = <T as Planned>::kernels()
            .with(config, make, |plan| plan.backward(&params, slice(&dk), grads));
        if done.and_then(|done| done).is_err() {
            for grad in [&mut d_re, &mut d_im, &mut d_delta, &mut d_w] {
                grad.fill(T::rounded(f64::NAN));
            }
        }
        let d_lambda: Vec<T> = d_re.into_iter().zip(d_im).flat_map(|(re, im)| [re, im]).collect();
        vec![
            tensor(d_lambda, [modes, 2]),
            tensor(d_delta, inputs[1].shape()),
            tensor(d_w, [c, h, n, 2]),
        ]
    }
}
