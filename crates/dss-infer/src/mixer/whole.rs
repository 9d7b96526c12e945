//! Mixers that take whole sequences only, and no other rate.

use dss_format::MixerConfig;

use super::recurrent::refused;
use super::{Limit, MixerState, SequenceMixer, Workspace};
use crate::error::{Error, Result};
use crate::state::{Bytes, State};

/// A map of whole sequences `[L, H]` -> `[L, H]`.
pub(super) trait WholeMap: Send + Sync {
    /// The most positions; `None`: any number.
    fn max_len(&self) -> Option<Limit>;

    /// Buffers for sequences of length l, which the layers of a model share.
    fn workspace(&self, l: usize) -> Result<Workspace>;

    /// u -> v.
    fn mix(&self, workspace: &mut Workspace, u: &[f32], v: &mut [f32]) -> Result<()>;

    /// The second stream before the first layer, for mixers that have one.
    fn set_side(&self, _workspace: &mut Workspace, _p: &[f32]) {}

    /// Why it cannot stream.
    fn why_whole(&self) -> &'static str;

    /// The same at another rate: an error.
    fn at_step(&self, r: f64) -> dss_format::Result<MixerConfig>;
}

/// The seam of such a map.
pub(super) struct Whole<M>(pub M);

impl<M: WholeMap> SequenceMixer for Whole<M> {
    fn max_len(&self) -> Option<Limit> {
        self.0.max_len()
    }

    fn prepare(&self, _l: usize) -> Result<Vec<f32>> {
        Ok(Vec::new())
    }

    fn workspace(&self, l: usize) -> Result<Workspace> {
        self.0.workspace(l)
    }

    fn mix(&self, _: &[f32], workspace: &mut Workspace, u: &[f32], v: &mut [f32]) -> Result<()> {
        self.0.mix(workspace, u, v)
    }

    fn set_side(&self, workspace: &mut Workspace, p: &[f32]) {
        self.0.set_side(workspace, p);
    }

    fn state(&self) -> Result<Box<dyn MixerState>> {
        Err(Error::cannot_stream(self.0.why_whole()))
    }

    fn step(&self, _: &mut [State], _: usize, _: &[f32], _: &mut [f32]) -> Result<()> {
        self.state().map(|_| ())
    }

    fn run(&self, _: &mut dyn MixerState, _: &[f32], _: &mut [f32]) -> Result<()> {
        self.state().map(|_| ())
    }

    fn write_state(&self, _: &dyn MixerState, _: &mut Vec<u8>) -> Result<()> {
        self.state().map(|_| ())
    }

    fn read_state(&self, _: usize, _: &mut Bytes<'_>) -> Result<Box<dyn MixerState>> {
        self.state()
    }

    fn set_step(&mut self, r: f64) -> Result<()> {
        self.0.at_step(r).map_err(refused).map(|_| ())
    }
}
