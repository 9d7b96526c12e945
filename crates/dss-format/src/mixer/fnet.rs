//! FNet (Lee-Thorp et al. 2021): the real part of a Fourier transform over positions and channels. No tensors.

use super::heads::validate_looks_ahead;
use super::settings::settings;
use super::{MixerContext, MixerSettings};
use crate::error::Result;
use crate::tensors::TensorSpec;

settings! {
    /// The settings of FNet: none. The transform has the length that the model is made for.
    FnetConfig {}
}

impl MixerSettings for FnetConfig {
    fn title(&self) -> &'static str {
        "FNet"
    }

    fn size(&self) -> String {
        "no parameters".to_owned()
    }

    fn validate(&self, context: &MixerContext) -> Result<()> {
        validate_looks_ahead("fnet", context)
    }

    fn tensors(&self, _context: &MixerContext) -> Vec<TensorSpec> {
        Vec::new()
    }
}
