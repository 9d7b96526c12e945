//! The operations of [`crate::ops`] out of Burn tensor operations: the readable specification, for any backend.
//!
//! They work in the dtype of their tensors, f32 or f64, and are differentiable in every tensor argument.
//! Scalars multiply and never divide: Burn 0.22 differentiates x / scalar with a factor rounded to f32.

mod block;
pub(crate) mod complex;
mod conv;
pub(crate) mod dft;
mod embed;
mod encode;
mod kernel;
mod linear;
mod norm;
mod pool;
mod s4;
mod s4d;

pub use block::block;
pub(crate) use block::{activated, gelu, mix, project};
pub use conv::conv;
pub(crate) use conv::conv_mixture;
pub use embed::embed;
pub use encode::encode;
pub use kernel::kernel;
pub(crate) use kernel::{Modes, modes};
pub use linear::{feed_forward, linear};
pub use norm::norm;
pub use pool::pool;
pub use s4::s4_kernel;
pub use s4d::s4d_kernel;
pub(crate) use s4d::s4d_modes;

use burn::tensor::{DType, Device, Tensor, TensorData};

/// The precision to make powers and resolvents in: f64 where the device has it.
fn work_dtype<const D: usize>(x: &Tensor<D>) -> DType {
    if x.device().supports_dtype(DType::F64) { DType::F64 } else { x.dtype() }
}

/// A constant of shape `shape` from f64 numbers, in the wanted dtype.
pub(crate) fn constant<const D: usize>(
    values: Vec<f64>,
    shape: [usize; D],
    device: &Device,
    dtype: DType,
) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values, shape), (device, dtype))
}

/// `[B, L, 1]`: 1 at the first lengths\[b\] positions of each sequence, 0 beyond.
pub(crate) fn position_mask(
    lengths: &[usize],
    l: usize,
    device: &Device,
    dtype: DType,
) -> Tensor<3> {
    let of = |&len: &usize| (0..l).map(move |t| if t < len { 1.0 } else { 0.0 });
    constant(lengths.iter().flat_map(of).collect(), [lengths.len(), l, 1], device, dtype)
}
