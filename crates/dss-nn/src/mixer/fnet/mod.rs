//! FNet (Lee-Thorp et al. 2021, Eq. 3): y = Re(F_N·u·F_H), Fourier transforms over positions and channels.
//!
//! N is the length that the model is made for: shorter sequences count as followed by zeros, so that an answer does not
//! depend on the batch. The composed form is the specification.

mod composed;
mod fused;

use burn::module::Module;
use burn::tensor::Tensor;
use dss_format::MixerContext;
use dss_format::mixer::{FnetConfig, MixerSettings};

use super::recurrent::check_len;
use super::state::MixerState;
use super::{Init, Mixer, Pass, SequenceMixer};
use crate::dispatch;
use crate::error::{Error, Result};
use crate::prepared::Prepared;

/// Fourier mixing; it has no parameters.
#[derive(Module, Debug)]
pub struct FnetLayer {
    #[module(skip)]
    config: FnetConfig,
    #[module(skip)]
    context: MixerContext,
}

impl FnetLayer {
    pub(super) fn init(config: &FnetConfig, context: MixerContext, _init: &Init) -> Result<Self> {
        Ok(Self { config: *config, context })
    }
}

impl SequenceMixer for FnetLayer {
    fn context(&self) -> &MixerContext {
        &self.context
    }

    fn check_len(&self, l: usize) -> Result<()> {
        check_len(l)?;
        let len = self.context.len;
        if l <= len {
            return Ok(());
        }
        let what = format!(
            "the transform of FNet is made for sequences of length up to {len}, but got {l}; shorten the sequence"
        );
        Err(Error::invalid("FnetLayer", what))
    }

    fn prepare(&self, l: usize) -> Result<Prepared> {
        self.check_len(l)?;
        Ok(Prepared::default())
    }

    fn mix(&self, u: Tensor<3>, _prepared: &Prepared, pass: &Pass) -> Tensor<3> {
        let lengths = pass.lengths.as_deref();
        match dispatch::is_fused(self.context.form, &u) {
            true => fused::fourier(u, self.context.len, lengths),
            false => composed::fourier(u, self.context.len, lengths),
        }
    }

    fn state(&self, _batch: usize) -> Result<MixerState> {
        let what = "FNet transforms the whole length, so that every position depends on all: such a layer takes whole \
                    sequences only";
        Err(Error::invalid("SequenceMixer::state", what))
    }

    fn step(&self, state: &mut MixerState, u: Tensor<2>) -> Result<Tensor<2>> {
        state.step(u)
    }

    fn at_step(&self, r: f64) -> Result<Mixer> {
        self.config.at_step(r)?;
        Ok(Mixer::Fnet(self.clone()))
    }

    fn past_end(&self) -> String {
        "the transform ends at the training length".to_owned()
    }
}
