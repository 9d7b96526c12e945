//! From samples to model input, in training and in prediction alike.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::clips;
use super::form::{Form, unit_samples};
use super::mfcc::mfcc;
use super::{HALF_RATE, RATE};
use crate::{Error, Input, Result, audio, io};

/// How a clip becomes input: x' = (x - mean) / divisor, by channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpeechEncoder {
    /// What the model reads.
    pub form: Form,
    /// Samples per second that it reads: 16000, or every second one of them.
    pub rate: u32,
    /// Mean of the training clips.
    pub mean: Vec<f32>,
    /// Standard deviation of the training clips, and a constant.
    pub divisor: Vec<f32>,
}

impl SpeechEncoder {
    /// Steps of an input.
    pub fn steps(&self) -> usize {
        self.form.steps().div_ceil(self.stride())
    }

    /// Samples per second; features have no rate that could be changed.
    pub(crate) fn rate(&self) -> Option<f64> {
        matches!(self.form, Form::Wave).then_some(self.rate.into())
    }

    fn stride(&self) -> usize {
        (RATE / self.rate.clamp(1, RATE)) as usize
    }

    /// Samples at 16 kHz; what is short is filled up with silence.
    pub(super) fn wave(&self, samples: impl Iterator<Item = i16>) -> Input {
        self.scaled_wave(samples.chain(std::iter::repeat(0)).step_by(self.stride()))
    }

    fn scaled_wave(&self, samples: impl Iterator<Item = i16>) -> Input {
        let (mean, divisor) = (self.mean[0], self.divisor[0]);
        let scaled = samples.map(|s| (f32::from(s) / 32768.0 - mean) / divisor);
        Input::Values(scaled.take(self.steps()).collect())
    }

    /// Features `[161, 20]`.
    pub(super) fn features(&self, features: impl Iterator<Item = f32>) -> Input {
        let scaling = self.mean.iter().zip(&self.divisor).cycle();
        Input::Values(
            features.zip(scaling).map(|(x, (mean, divisor))| (x - mean) / divisor).collect(),
        )
    }

    /// One clip of at most one second: WAV or FLAC, 16 kHz, mono, 16 bit; a model at half rate also takes 8 kHz.
    pub(crate) fn read(&self, path: &Path) -> Result<Vec<(String, Input)>> {
        let fault = |what: String| Error::content(path, what);
        let channels = self.form.channels();
        if ![RATE, HALF_RATE].contains(&self.rate)
            || [&self.mean, &self.divisor].iter().any(|scaling| scaling.len() != channels)
        {
            return Err(fault(
                "the model's scaling of sound is damaged; export the model again".into(),
            ));
        }
        let bytes = io::read(path)?;
        let input = if self.rate == HALF_RATE && rate(&bytes) == Some(HALF_RATE) {
            let samples = clips::samples(&bytes, HALF_RATE).map_err(fault)?;
            self.scaled_wave(samples.into_iter().chain(std::iter::repeat(0)))
        } else {
            let samples = clips::samples(&bytes, RATE).map_err(fault)?;
            match self.form {
                Form::Wave => self.wave(samples.into_iter()),
                Form::Mfcc => self.features(mfcc(&unit_samples(&samples)).into_iter()),
            }
        };
        Ok(vec![(io::file_name(path), input)])
    }
}

/// The rate of a sound file, if it can be read.
fn rate(bytes: &[u8]) -> Option<u32> {
    audio::decode(bytes, 1 << 20).ok().map(|audio| audio.rate)
}
