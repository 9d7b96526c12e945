//! FNet: a Fourier transform over positions and channels, of the training length.

use dss_format::MixerContext;
use dss_format::mixer::{FnetConfig, MixerSettings};
use dss_kernels::fourier::{Fourier, FourierConfig};

use super::recurrent::refused;
use super::{Limit, MixerState, SequenceMixer, Workspace};
use crate::error::{Error, Result};
use crate::state::{Bytes, State};

pub(super) struct FnetMixer {
    pub config: FnetConfig,
    pub context: MixerContext,
}

impl SequenceMixer for FnetMixer {
    fn max_len(&self) -> Option<Limit> {
        let why = "its Fourier transform has the training length".to_owned();
        Some(Limit { length: self.context.len, why })
    }

    fn prepare(&self, _l: usize) -> Result<Vec<f32>> {
        Ok(Vec::new())
    }

    fn workspace(&self, _l: usize) -> Result<Workspace> {
        let config = FourierConfig { len: self.context.len, channels: self.context.h };
        Ok(Box::new(Fourier::<f32>::new(config)?))
    }

    fn mix(
        &self,
        _prepared: &[f32],
        workspace: &mut Workspace,
        u: &[f32],
        v: &mut [f32],
    ) -> Result<()> {
        let fourier: &mut Fourier<f32> =
            workspace.downcast_mut().expect("a workspace of this mixer");
        Ok(fourier.forward(u, [1, u.len() / self.context.h], None, v)?)
    }

    fn state(&self) -> Result<Box<dyn MixerState>> {
        Err(Error::cannot_stream("it transforms whole sequences (FNet)"))
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
        self.config.at_step(r).map_err(refused).map(|_| ())
    }
}
