//! A layer's kernels as a recurrence (§3.4): one position at a time, in constant time and memory.

mod modes;
mod s4;

use std::fmt::Debug;

use burn::tensor::Tensor;

use crate::error::{Error, Result};

pub(crate) use modes::ModesState;
pub(crate) use s4::S4State;

/// Where B streams through an [`SsmLayer`](crate::SsmLayer) stand.
#[derive(Debug, Clone)]
pub struct SsmState {
    streams: Box<dyn Recurrent>,
    /// \[B, H\].
    shape: [usize; 2],
    position: usize,
}

/// The state of one kind of layer.
pub(crate) trait Recurrent: Debug + Send + Sync {
    /// K * u at position k, the next one: u `[B, H]` -> `[B, H]`. Nothing changes if there is an error.
    fn step(&mut self, k: usize, u: Tensor<2>) -> Result<Tensor<2>>;

    fn boxed_clone(&self) -> Box<dyn Recurrent>;
}

impl Clone for Box<dyn Recurrent> {
    fn clone(&self) -> Self {
        self.boxed_clone()
    }
}

impl SsmState {
    pub(crate) fn new(streams: Box<dyn Recurrent>, shape: [usize; 2]) -> Self {
        Self { streams, shape, position: 0 }
    }

    /// Steps taken.
    pub fn position(&self) -> usize {
        self.position
    }

    /// K * u at the next position: u `[B, H]` -> `[B, H]`.
    pub(crate) fn step(&mut self, u: Tensor<2>) -> Result<Tensor<2>> {
        if u.dims() != self.shape {
            let [batch, h] = self.shape;
            let what = format!("u must be [B, H] = [{batch}, {h}], but is {:?}", u.dims());
            return Err(Error::invalid("SsmLayer::step", what));
        }
        let y = self.streams.step(self.position, u)?;
        self.position += 1;
        Ok(y)
    }
}
