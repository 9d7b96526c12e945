//! FNet: a Fourier transform over positions and channels, of the training length.

use dss_format::MixerContext;
use dss_kernels::fourier::{Fourier, FourierConfig};

use super::{LengthLimit, MixerState, SequenceMixer, Workspace, own_workspace};
use crate::error::{Error, Result};

pub(super) struct FnetMixer {
    pub context: MixerContext,
}

impl SequenceMixer for FnetMixer {
    fn max_len(&self) -> Option<LengthLimit> {
        let why = "its Fourier transform has the training length".to_owned();
        Some(LengthLimit { length: self.context.len, why })
    }

    fn workspace(&self, _l: usize) -> Result<Workspace> {
        let config = FourierConfig { len: self.context.len, channels: self.context.h };
        Ok(Box::new(Fourier::<f32>::new(config)?))
    }

    fn mix(&self, _: &[f32], workspace: &mut Workspace, u: &[f32], v: &mut [f32]) -> Result<()> {
        let fourier: &mut Fourier<f32> = own_workspace(workspace);
        Ok(fourier.forward(u, [1, u.len() / self.context.h], None, v)?)
    }

    fn state(&self) -> Result<Box<dyn MixerState>> {
        Err(Error::cannot_stream("it transforms whole sequences (FNet)"))
    }
}
