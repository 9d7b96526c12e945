//! Mixers one position at a time (§3.4).

mod modes;
mod s4;

use std::fmt::Debug;

use burn::tensor::Tensor;

use crate::error::{Error, Result};

pub(crate) use modes::ModesState;
pub(crate) use s4::S4Streams;

/// All that B streams through a mixer remember.
#[derive(Debug, Clone)]
pub struct MixerState {
    streams: Box<dyn Recurrent>,
    /// \[B, H\].
    shape: [usize; 2],
    position: usize,
}

/// The state of one kind of mixer.
pub(crate) trait Recurrent: Debug + Send + Sync {
    /// The map at position k, the next one: u `[B, H]` -> `[B, H]`. Nothing changes if there is an error.
    fn step(&mut self, k: usize, u: Tensor<2>) -> Result<Tensor<2>>;

    fn boxed_clone(&self) -> Box<dyn Recurrent>;
}

impl Clone for Box<dyn Recurrent> {
    fn clone(&self) -> Self {
        self.boxed_clone()
    }
}

impl MixerState {
    pub(crate) fn new(streams: Box<dyn Recurrent>, shape: [usize; 2]) -> Self {
        Self { streams, shape, position: 0 }
    }

    /// Steps taken.
    pub fn position(&self) -> usize {
        self.position
    }

    /// The map at the next position: u `[B, H]` -> `[B, H]`.
    pub(crate) fn step(&mut self, u: Tensor<2>) -> Result<Tensor<2>> {
        if u.dims() != self.shape {
            let [batch, h] = self.shape;
            let what = format!("u must be [B, H] = [{batch}, {h}], but is {:?}", u.dims());
            return Err(Error::invalid("SequenceMixer::step", what));
        }
        let y = self.streams.step(self.position, u)?;
        self.position += 1;
        Ok(y)
    }
}
