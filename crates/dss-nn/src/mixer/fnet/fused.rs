//! Fourier mixing as one operation on the CPU backend Flex. It is its own adjoint.

use std::sync::Arc;

use burn::backend::TensorMetadata;
use burn::tensor::Tensor;
use burn_flex::FlexTensor;
use dss_kernels::fourier::{Fourier, FourierConfig};

use crate::fused::{Float, Operation, SavedState, call, pooled_tensor, slice};

/// As the composed form, by fast transforms.
pub(super) fn fourier(u: Tensor<3>, n: usize, lengths: Option<&[usize]>) -> Tensor<3> {
    let config = FourierConfig { len: n, channels: u.dims()[2] };
    let op = FourierOp { config, lengths: lengths.map(Into::into) };
    call(op, vec![(&u).into()], &u.device())
}

#[derive(Debug)]
struct FourierOp {
    config: FourierConfig,
    lengths: Option<Arc<[usize]>>,
}

impl FourierOp {
    fn apply<T: Float>(&self, u: &FlexTensor) -> FlexTensor {
        let (shape, u) = (u.shape(), slice::<T>(u));
        let mut y = T::buffers().take(u.len());
        let size = [shape[0], shape[1]];
        let make = || Fourier::new(self.config);
        let done = T::fouriers()
            .with(self.config, make, |plan| plan.forward(u, size, self.lengths.as_deref(), &mut y));
        done.flatten().unwrap_or_else(|error| panic!("{error}"));
        pooled_tensor(y, shape)
    }
}

impl Operation for FourierOp {
    fn forward<T: Float>(&self, inputs: &[FlexTensor], _keep: bool) -> (FlexTensor, SavedState) {
        (self.apply::<T>(&inputs[0]), Box::new(()))
    }

    fn backward<T: Float>(
        &self,
        _inputs: &[FlexTensor],
        _kept: SavedState,
        dy: FlexTensor,
    ) -> Vec<FlexTensor> {
        vec![self.apply::<T>(&dy)]
    }

    fn needs_inputs(&self) -> bool {
        false
    }
}
