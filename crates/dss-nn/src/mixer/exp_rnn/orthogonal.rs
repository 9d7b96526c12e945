//! Qᵀ = exp(Aᵀ − A) of the strict upper triangle of A, in both forms.

use burn::backend::TensorMetadata;
use burn::tensor::{DType, Tensor};
use burn_flex::FlexTensor;
use dss_kernels::recurrent::orthogonal::{orthogonal, orthogonal_backward};

use crate::fused::{Float, Operation, SavedState, call, pooled_tensor, slice};

/// Halvings of the matrix before the series, and its terms: for norms up to 2⁸.
const SQUARINGS: i32 = 9;
const TERMS: usize = 14;

/// By scaling, the Taylor series and squaring, in f64 where the device has it.
pub(super) fn composed(a: Tensor<2>) -> Tensor<2> {
    let (dtype, [n, _], device) = (a.dtype(), a.dims(), a.device());
    let work = if device.supports_dtype(DType::F64) { DType::F64 } else { dtype };
    let upper = a.cast(work).triu(1);
    let x = (upper.clone().transpose() - upper) * 0.5f64.powi(SQUARINGS);
    let unit: Tensor<2> = Tensor::eye(n, &device);
    let mut term = unit.cast(work);
    let mut sum = term.clone();
    for k in 1..=TERMS {
        term = term.matmul(x.clone()) * (1.0 / k as f64);
        sum = sum + term.clone();
    }
    for _ in 0..SQUARINGS {
        sum = sum.clone().matmul(sum);
    }
    sum.cast(dtype)
}

/// The same as one operation, in f64 and rounded once.
pub(super) fn fused(a: Tensor<2>) -> Tensor<2> {
    call(OrthogonalOp, vec![(&a).into()], &a.device())
}

#[derive(Debug)]
struct OrthogonalOp;

/// A in f64, and n.
fn matrix<T: Float>(inputs: &[FlexTensor]) -> (Vec<f64>, usize) {
    let a = slice::<T>(&inputs[0]).iter().map(|x| x.to_f64()).collect();
    (a, inputs[0].shape()[0])
}

/// The transpose, in the precision of the operation.
fn transposed<T: Float>(x: &[f64], n: usize) -> FlexTensor {
    let mut out = T::buffers().take(n * n);
    out.iter_mut().enumerate().for_each(|(i, out)| *out = T::rounded(x[i % n * n + i / n]));
    pooled_tensor(out, [n, n])
}

impl Operation for OrthogonalOp {
    fn forward<T: Float>(&self, inputs: &[FlexTensor], _keep: bool) -> (FlexTensor, SavedState) {
        let (a, n) = matrix::<T>(inputs);
        (transposed::<T>(&orthogonal(&a, n), n), Box::new(()))
    }

    fn backward<T: Float>(
        &self,
        inputs: &[FlexTensor],
        _kept: SavedState,
        dy: FlexTensor,
    ) -> Vec<FlexTensor> {
        let (a, n) = matrix::<T>(inputs);
        let dy = slice::<T>(&dy);
        let dq: Vec<f64> = (0..n * n).map(|i| dy[i % n * n + i / n].to_f64()).collect();
        let mut da = T::buffers().take(n * n);
        let grad = orthogonal_backward(&a, n, &dq);
        da.iter_mut().zip(grad).for_each(|(da, grad)| *da = T::rounded(grad));
        vec![pooled_tensor(da, [n, n])]
    }
}
