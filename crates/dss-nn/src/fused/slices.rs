//! Between tensors of the Flex backend and plain slices, without copies.

use std::array::from_fn;

use burn::backend::TensorMetadata;
use burn::tensor::{Bytes, DType, Element, Shape, Tensor};
use burn_flex::{FlexTensor, Layout};
use burn_std::{AccessError, AccessPolicy, AllocationController, AllocationProperty};
use dss_kernels::Real;
use dss_kernels::block::Buffer;
use std::mem::MaybeUninit;

/// f32 or f64, as Burn and as `dss-kernels` know them.
pub(crate) trait Float:
    Real + Element + bytemuck::Pod + dss_kernels::plans::Planned
{
    /// Burn's name of it.
    const DTYPE: DType;
}

impl Float for f32 {
    const DTYPE: DType = DType::F32;
}

impl Float for f64 {
    const DTYPE: DType = DType::F64;
}

/// The elements of a contiguous tensor.
pub(crate) fn slice<T: Float>(tensor: &FlexTensor) -> &[T] {
    tensor.as_slice().expect("a contiguous tensor of one precision")
}

/// A tensor of these elements.
pub(super) fn tensor<T: Float>(elements: Vec<T>, shape: impl Into<Shape>) -> FlexTensor {
    FlexTensor::new(Bytes::from_elems(elements), Layout::contiguous(shape.into()), T::DTYPE)
}

/// A tensor made by `compute`; NaN throughout where there is nothing to compute.
pub(super) fn tensor_or_nan<T: Float>(
    shape: [usize; 3],
    compute: impl FnOnce(&mut [T]) -> dss_kernels::Result<dss_kernels::Result<()>>,
) -> FlexTensor {
    let mut elements = vec![T::ZERO; shape.iter().product()];
    if compute(&mut elements).and_then(|done| done).is_err() {
        elements.fill(T::rounded(f64::NAN));
    }
    tensor(elements, shape)
}

/// The gradients of `inputs`, to which `compute` adds; NaN throughout where there is nothing to compute.
pub(super) fn gradients_or_nan<T: Float, const N: usize>(
    inputs: &[FlexTensor],
    compute: impl FnOnce(&mut [Vec<T>; N]) -> dss_kernels::Result<dss_kernels::Result<()>>,
) -> Vec<FlexTensor> {
    let mut grads: [Vec<T>; N] = from_fn(|i| vec![T::ZERO; inputs[i].shape().num_elements()]);
    if compute(&mut grads).and_then(|done| done).is_err() {
        grads.iter_mut().for_each(|grad| grad.fill(T::rounded(f64::NAN)));
    }
    grads.into_iter().zip(inputs).map(|(grad, input)| tensor(grad, input.shape())).collect()
}

/// A tensor whose memory goes back to where it was taken from.
pub(crate) fn pooled_tensor<T: Float>(buffer: Buffer<T>, shape: impl Into<Shape>) -> FlexTensor {
    let len = size_of_val(&buffer[..]);
    // SAFETY: a buffer is initialised throughout.
    let bytes = unsafe { Bytes::from_controller(Box::new(Pooled(buffer)), len) };
    FlexTensor::new(bytes, Layout::contiguous(shape.into()), T::DTYPE)
}

/// A buffer as the memory of a tensor.
struct Pooled<T: Float>(Buffer<T>);

impl<T: Float> AllocationController for Pooled<T> {
    fn alloc_align(&self) -> usize {
        Buffer::<T>::ALIGN
    }

    fn property(&self) -> AllocationProperty {
        AllocationProperty::Other
    }

    unsafe fn memory_mut(
        &mut self,
        _policy: AccessPolicy,
    ) -> Result<&mut [MaybeUninit<u8>], AccessError> {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut self.0);
        // SAFETY: the same layout; the caller writes initialised data only.
        Ok(unsafe { &mut *(std::ptr::from_mut(bytes) as *mut [MaybeUninit<u8>]) })
    }

    fn memory(&self, _policy: AccessPolicy) -> Result<&[MaybeUninit<u8>], AccessError> {
        let bytes: &[u8] = bytemuck::cast_slice(&self.0);
        // SAFETY: the same layout, read only.
        Ok(unsafe { &*(std::ptr::from_ref(bytes) as *const [MaybeUninit<u8>]) })
    }
}

/// The elements of a small tensor that takes no part in the differentiation.
pub(super) fn constants<const D: usize>(tensor: &Tensor<D>) -> Vec<f64> {
    tensor.to_data().iter::<f64>().collect()
}

/// In the precision of the operation.
pub(super) fn rounded<T: Real>(elements: &[f64]) -> Vec<T> {
    elements.iter().map(|&x| T::from_f64(x)).collect()
}
