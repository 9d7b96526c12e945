//! Which form of an operation runs: decided by the tensors at hand, so that a model may move between devices.

use burn::backend::DispatchDevice;
use burn::tensor::{DType, Device, Int, Tensor};
use dss_format::{Form, Pool};

use crate::error::{Error, Result};
use crate::ops::{
    BatchStats, BlockParams, BlockSpec, FeedForwardParams, KernelParams, KernelSpec, NormMode,
    S4Params, S4Spec, S4dParams, S4dSpec,
};
use crate::{composed, fused};

/// This form can run on `device`.
pub(crate) fn check_device(form: Form, device: &Device) -> Result<()> {
    if form == Form::Fused && !is_flex(device) {
        return Err(Error::config(
            &["model.form"],
            format!(
                "form = \"fused\" needs the CPU backend Flex, but the device is {device:?}: set form to \"auto\" or \
                 \"composed\""
            ),
        ));
    }
    Ok(())
}

/// Whether to take the fused form for tensors like this one.
pub(crate) fn is_fused<const D: usize>(form: Form, tensor: &Tensor<D>) -> bool {
    let precise = matches!(tensor.dtype(), DType::F32 | DType::F64);
    form != Form::Composed && precise && is_flex(&tensor.device())
}

/// The device is the CPU backend, with or without autodiff.
fn is_flex(device: &Device) -> bool {
    matches!(device.clone().without_autodiff().as_dispatch(), DispatchDevice::Flex(_))
}

/// Operations of [`composed`] and [`fused`] with the condition under which the fused one runs.
macro_rules! operations {
    ($($(#[$doc:meta])*
       $name:ident($form:ident, $($arg:ident: $type:ty),*) -> $result:ty, fused if $fused:expr;)*) => {$(
        $(#[$doc])*
        pub(crate) fn $name($form: Form, $($arg: $type),*) -> $result {
            if $fused { fused::$name($($arg),*) } else { composed::$name($($arg),*) }
        }
    )*};
}

operations! {
    /// K `[C, H, taps]` of DSS.
    kernel(form, params: &KernelParams, spec: &KernelSpec) -> Tensor<3>, fused if is_fused(form, &params.w);

    /// K `[C, H, taps]` of S4.
    s4_kernel(form, params: &S4Params, spec: &S4Spec) -> Tensor<3>, fused if is_fused(form, &params.c);

    /// K `[C, H, taps]` of S4D.
    s4d_kernel(form, params: &S4dParams, spec: &S4dSpec) -> Tensor<3>, fused if is_fused(form, &params.c);

    /// One block: `[B, L, H]` -> `[B, L, H]`.
    block(form, x: Tensor<3>, params: &BlockParams, spec: &BlockSpec) -> (Tensor<3>, Option<BatchStats>),
        fused if is_fused(form, &x) && !matches!(spec.norm, NormMode::LayerScalar);

    /// Rows of the table: `[B, L]` -> `[B, L, H]`.
    embed(form, tokens: Tensor<2, Int>, table: Tensor<2>) -> Tensor<3>, fused if is_fused(form, &table);

    /// W·x + b: `[B, L, C]` -> `[B, L, H]`.
    encode(form, x: Tensor<3>, weight: Tensor<2>, bias: Tensor<1>) -> Tensor<3>, fused if is_fused(form, &x);

    /// A norm: `[B, L, H]` -> `[B, L, H]`.
    norm(form, x: Tensor<3>, gamma: Tensor<1>, beta: Tensor<1>, mode: &NormMode) -> (Tensor<3>, Option<BatchStats>),
        fused if is_fused(form, &x) && !matches!(mode, NormMode::LayerScalar);

    /// W·x + b: `[R, in]` -> `[R, out]`.
    linear(form, x: Tensor<2>, weight: Tensor<2>, bias: Option<Tensor<1>>) -> Tensor<2>, fused if is_fused(form, &x);

    /// The feed-forward part of a block: `[B, L, H]` -> `[B, L, H]`.
    feed_forward(form, x: Tensor<3>, params: &FeedForwardParams) -> Tensor<3>, fused if is_fused(form, &x);

    /// `[B, L, H]` -> `[B, H]`.
    pool(form, x: Tensor<3>, pool: Pool, lengths: &[usize]) -> Tensor<2>, fused if is_fused(form, &x);
}
