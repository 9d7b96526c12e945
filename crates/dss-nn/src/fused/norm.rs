//! A norm as one operation, and how norms are told to `dss-kernels`.

use burn::backend::TensorMetadata;
use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_flex::FlexTensor;
use dss_kernels::Real;
use dss_kernels::block::{BatchMoments, Norm, NormParams, NormStats, norm_backward, norm_forward};
use std::sync::{Arc, Mutex, PoisonError};

use super::op::{Operation, SavedState, call};
use super::slices::{Float, constants, pooled_tensor, rounded, slice, tensor};
use crate::ops::{BatchStats, NormMode};

/// The norm of x, and for [`NormMode::BatchTrain`] the statistics of this batch.
///
/// # Panics
/// If the shapes do not fit together, or for [`NormMode::LayerScalar`], which has no fused form.
pub fn norm(
    x: Tensor<3>,
    gamma: Tensor<1>,
    beta: Tensor<1>,
    mode: &NormMode,
) -> (Tensor<3>, Option<BatchStats>) {
    let norm = HostNorm::new(mode);
    let seen = ObservedMoments::default();
    let (device, dtype) = (x.device(), x.dtype());
    let operands = vec![(&x).into(), (&gamma).into(), (&beta).into()];
    let y = call(NormOp { norm, seen: seen.clone() }, operands, &device);
    (y, seen.take(&device, dtype))
}

/// A [`NormMode`] with its statistics on the host.
#[derive(Debug)]
pub(super) struct HostNorm {
    eps: f64,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Layer,
    BatchTrain(Option<Arc<[usize]>>),
    BatchEval(Vec<f64>, Vec<f64>),
}

impl HostNorm {
    pub(super) fn new(mode: &NormMode) -> Self {
        let (eps, kind) = match mode {
            NormMode::Layer { eps } => (*eps, Kind::Layer),
            NormMode::LayerScalar => panic!("the scalar LayerNorm has no fused form"),
            NormMode::BatchTrain { eps, lengths } => (*eps, Kind::BatchTrain(lengths.clone())),
            NormMode::BatchEval { eps, mean, var } => {
                (*eps, Kind::BatchEval(constants(mean), constants(var)))
            }
        };
        Self { eps, kind }
    }

    /// Calls `body` with the norm in the precision of the operation.
    pub(super) fn with<T: Real, R>(
        &self,
        gamma: &[T],
        beta: &[T],
        body: impl FnOnce(NormParams<'_, T>) -> R,
    ) -> R {
        let running: (Vec<T>, Vec<T>);
        let norm = match &self.kind {
            Kind::Layer => Norm::Layer,
            Kind::BatchTrain(lengths) => Norm::BatchTrain { counted: lengths.as_deref() },
            Kind::BatchEval(mean, var) => {
                running = (rounded(mean), rounded(var));
                Norm::BatchEval { mean: &running.0, var: &running.1 }
            }
        };
        body(NormParams { gamma, beta, eps: self.eps, norm })
    }
}

/// Where an operation leaves the moments of the batch that it saw.
#[derive(Debug, Clone, Default)]
pub(super) struct ObservedMoments(Arc<Mutex<Option<BatchMoments>>>);

impl ObservedMoments {
    pub(super) fn put(&self, moments: Option<BatchMoments>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = moments;
    }

    /// As tensors outside the graph.
    pub(super) fn take(&self, device: &Device, dtype: DType) -> Option<BatchStats> {
        let moments = self.0.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let tensor = |values: Vec<f64>| {
            let h = values.len();
            let options =
                burn::tensor::TensorCreationOptions::new(device.clone()).with_dtype(dtype);
            Tensor::from_data(TensorData::new(values, [h]), options)
        };
        Some(BatchStats { mean: tensor(moments.mean), var: tensor(moments.var) })
    }
}

#[derive(Debug)]
struct NormOp {
    norm: HostNorm,
    seen: ObservedMoments,
}

impl Operation for NormOp {
    fn forward<T: Float>(&self, inputs: &[FlexTensor], _keep: bool) -> (FlexTensor, SavedState) {
        let x = slice::<T>(&inputs[0]);
        let shape = inputs[0].shape();
        let mut y = T::buffers().take(x.len());
        let (stats, moments) = self.norm.with(slice(&inputs[1]), slice(&inputs[2]), |params| {
            norm_forward(x, shape[1], &params, &mut y)
        });
        self.seen.put(moments);
        (pooled_tensor(y, shape), Box::new(stats))
    }

    fn backward<T: Float>(
        &self,
        inputs: &[FlexTensor],
        kept: SavedState,
        dy: FlexTensor,
    ) -> Vec<FlexTensor> {
        let x = slice::<T>(&inputs[0]);
        let l = inputs[0].shape()[1];
        let stats = kept.downcast::<NormStats<T>>().expect("kept by this operation");
        let mut dx = dy;
        let (gamma, beta) = self.norm.with(slice(&inputs[1]), slice(&inputs[2]), |params| {
            norm_backward(x, l, &params, &stats, dx.storage_mut())
        });
        let h = gamma.len();
        vec![dx, tensor(gamma, [h]), tensor(beta, [h])]
    }
}
