//! Causal attention one position at a time: S += φ(k)·vᵀ, z += φ(k), then y.

use burn::tensor::{DType, Tensor};

use super::Heads;
use super::composed::{key_features, query_features};
use crate::error::Result;
use crate::mixer::state::Recurrent;

/// B streams through a layer.
#[derive(Debug, Clone)]
pub(super) struct HeadStreams {
    heads: Heads,
    /// \[S, z\] `[B, h, m, d + 1]`, in f64 where the device has it; `None` before the first step.
    sums: Option<Tensor<4>>,
    batch: usize,
}

impl HeadStreams {
    pub fn new(heads: Heads, batch: usize) -> Self {
        Self { heads, sums: None, batch }
    }
}

impl Recurrent for HeadStreams {
    fn step(&mut self, _k: usize, u: Tensor<2>) -> Result<Tensor<2>> {
        let Heads { spec, directions, .. } = &self.heads;
        let (dtype, device) = (u.dtype(), u.device());
        let work = if device.supports_dtype(DType::F64) { DType::F64 } else { dtype };
        let [q, k, v] = self.heads.qkv(u.detach());
        let [batch, width] = [self.batch, q.dims()[1]];
        let (heads, d) = (spec.heads, width / spec.heads);
        let split =
            |x: Tensor<2>| -> Tensor<4> { x.detach().cast(work).reshape([batch, heads, 1, d]) };
        let directions = directions.as_ref().map(|w| w.clone().detach().cast(work));
        let phi_q = query_features(split(q), directions.as_ref(), *spec);
        let phi_k = key_features(split(k), directions.as_ref(), None, *spec);
        let one = Tensor::ones([batch, heads, 1, 1], (&device, work));
        let mut sums = phi_k.swap_dims(2, 3).matmul(Tensor::cat(vec![split(v), one], 3));
        if let Some(before) = self.sums.take() {
            sums = sums + before;
        }
        let read = phi_q.matmul(sums.clone());
        let inverse = (read.clone().narrow(3, d, 1) + spec.eps).recip();
        let y = (read.narrow(3, 0, d) * inverse).reshape([batch, width]).cast(dtype);
        self.sums = Some(sums);
        Ok(self.heads.out(y).detach())
    }

    fn boxed_clone(&self) -> Box<dyn Recurrent> {
        Box::new(self.clone())
    }
}
