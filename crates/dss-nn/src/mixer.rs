//! What all sequence mixers share: a map of whole sequences, and the same map one step at a time.

use burn::tensor::Tensor;

use crate::error::Result;

/// A map of sequences `[B, L, H]` -> `[B, L, H]`.
pub trait SequenceMixer {
    /// What the past matters for, of B streams that move together.
    type State: Clone;

    /// Whole sequences: `[B, L, H]` -> `[B, L, H]`.
    fn forward(&self, u: Tensor<3>) -> Tensor<3>;

    /// The state of `batch` streams before their first step; an error if this mixer cannot go step by step.
    fn state(&self, batch: usize) -> Result<Self::State>;

    /// The next position of all streams: `[B, H]` -> `[B, H]`, equal to that position of [`Self::forward`]. Not
    /// differentiable.
    fn step(&self, state: &mut Self::State, u: Tensor<2>) -> Result<Tensor<2>>;
}
