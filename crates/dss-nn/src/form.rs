//! Which form of the operations runs: decided by the tensors at hand, so that a model may move between devices.

use burn::backend::DispatchDevice;
use burn::tensor::{DType, Device, Int, Tensor};

use crate::config::{Form, Pool};
use crate::error::{Error, Result};
use crate::ops::{
    BatchStats, BlockParams, BlockSpec, KernelParams, KernelSpec, NormMode, S4Params, S4Spec,
    S4dParams, S4dSpec,
};
use crate::{composed, fused};

impl Form {
    /// This form can run on `device`.
    pub(crate) fn check_device(self, device: &Device) -> Result<()> {
        if self == Form::Fused && !is_flex(device) {
            return Err(Error::config(
                &["form"],
                format!(
                    "form = \"fused\" needs the CPU backend Flex, but the device is {device:?}: set form to \"auto\" or \
                 \"composed\""
                ),
            ));
        }
        Ok(())
    }

    /// Whether to take the fused form for tensors like this one.
    fn is_fused<const D: usize>(self, tensor: &Tensor<D>) -> bool {
        let precise = matches!(tensor.dtype(), DType::F32 | DType::F64);
        self != Form::Composed && precise && is_flex(&tensor.device())
    }

    /// K `[C, H, taps]`.
    pub(crate) fn kernel(self, params: &KernelParams, spec: &KernelSpec) -> Tensor<3> {
        if self.is_fused(&params.w) {
            fused::kernel(params, spec)
        } else {
            composed::kernel(params, spec)
        }
    }

    /// K `[C, H, taps]` of S4.
    pub(crate) fn s4_kernel(self, params: &S4Params, spec: &S4Spec) -> Tensor<3> {
        if self.is_fused(&params.c) {
            fused::s4_kernel(params, spec)
        } else {
            composed::s4_kernel(params, spec)
        }
    }

    /// K `[C, H, taps]` of S4D.
    pub(crate) fn s4d_kernel(self, params: &S4dParams, spec: &S4dSpec) -> Tensor<3> {
        if self.is_fused(&params.c) {
            fused::s4d_kernel(params, spec)
        } else {
            composed::s4d_kernel(params, spec)
        }
    }

    /// One block: `[B, L, H]` -> `[B, L, H]`.
    pub(crate) fn block(
        self,
        x: Tensor<3>,
        params: &BlockParams,
        spec: &BlockSpec,
    ) -> (Tensor<3>, Option<BatchStats>) {
        if self.is_fused(&x) && !matches!(spec.norm, NormMode::LayerScalar) {
            fused::block(x, params, spec)
        } else {
            composed::block(x, params, spec)
        }
    }

    /// Rows of the table: `[B, L]` -> `[B, L, H]`.
    pub(crate) fn embed(self, tokens: Tensor<2, Int>, table: Tensor<2>) -> Tensor<3> {
        if self.is_fused(&table) {
            fused::embed(tokens, table)
        } else {
            composed::embed(tokens, table)
        }
    }

    /// W·x + b: `[B, L, C]` -> `[B, L, H]`.
    pub(crate) fn encode(self, x: Tensor<3>, weight: Tensor<2>, bias: Tensor<1>) -> Tensor<3> {
        if self.is_fused(&x) {
            fused::encode(x, weight, bias)
        } else {
            composed::encode(x, weight, bias)
        }
    }

    /// A norm: `[B, L, H]` -> `[B, L, H]`.
    pub(crate) fn norm(
        self,
        x: Tensor<3>,
        gamma: Tensor<1>,
        beta: Tensor<1>,
        mode: &NormMode,
    ) -> (Tensor<3>, Option<BatchStats>) {
        if self.is_fused(&x) && !matches!(mode, NormMode::LayerScalar) {
            fused::norm(x, gamma, beta, mode)
        } else {
            composed::norm(x, gamma, beta, mode)
        }
    }

    /// `[B, L, H]` -> `[B, H]`.
    pub(crate) fn pool(self, x: Tensor<3>, pool: Pool, lengths: &[usize]) -> Tensor<2> {
        if self.is_fused(&x) {
            fused::pool(x, pool, lengths)
        } else {
            composed::pool(x, pool, lengths)
        }
    }
}

/// The device is the CPU backend, with or without autodiff.
fn is_flex(device: &Device) -> bool {
    matches!(device.clone().without_autodiff().as_dispatch(), DispatchDevice::Flex(_))
}
