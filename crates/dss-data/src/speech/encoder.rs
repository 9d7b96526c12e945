//! From samples to model input, in training and in prediction alike.

use std::path::Path;

use dss_format::encoder::speech::RATE;
use dss_format::encoder::{SoundForm, SpeechEncoder};
use dss_format::feed::SoundFeed;

use super::clips;
use super::form::unit_samples;
use super::mfcc::mfcc;
use crate::encoder::ReadFile;
use crate::{Error, Input, Result, audio, io};

/// Samples at 16 kHz; what is short is filled up with silence.
pub(super) fn wave(encoder: &SpeechEncoder, samples: impl Iterator<Item = i16>) -> Input {
    let (mean, divisor) = (encoder.mean[0], encoder.divisor[0]);
    let samples = samples.chain(std::iter::repeat(0)).step_by(encoder.stride());
    let scaled = samples.map(|s| (f32::from(s) / 32768.0 - mean) / divisor);
    Input::Values(scaled.take(encoder.steps()).collect())
}

/// Features `[161, 20]`.
pub(super) fn features(encoder: &SpeechEncoder, features: impl Iterator<Item = f32>) -> Input {
    let scaling = encoder.mean.iter().zip(&encoder.divisor).cycle();
    Input::Values(features.zip(scaling).map(|(x, (mean, divisor))| (x - mean) / divisor).collect())
}

/// A whole sound file as a model of the wave reads it in a stream; `Err` says why it does not fit.
fn clip(encoder: &SpeechEncoder, bytes: &[u8]) -> std::result::Result<Input, String> {
    let feed = SoundFeed::new(encoder)?;
    let audio = audio::decode(bytes, clips::MOST)?;
    let stride = match audio.rate {
        rate if rate == encoder.rate => 1,
        RATE => encoder.stride(),
        rate => {
            let expected = encoder.rate;
            return Err(format!(
                "{rate} Hz, but the model takes {expected} Hz: convert the file, or read it with `dss stream`, which \
                 changes the model's step"
            ));
        }
    };
    let (found, most) = (audio.samples.len() / audio.channels, encoder.steps() * stride);
    match found {
        0 => Err("no samples in this file".into()),
        n if n > most => Err(format!("{n} samples; a clip has at most {most}: cut the file")),
        _ => {
            let samples = audio.mono().into_iter().step_by(stride);
            Ok(Input::Values(samples.map(|x| feed.value(x)).collect()))
        }
    }
}

impl ReadFile for SpeechEncoder {
    /// One clip of at most one second. A model of the wave reads what `dss stream` reads: any bits and channels, which
    /// are averaged; a model of every second sample leaves every second one out. Features are made of clips like those
    /// of the training.
    fn read(&self, path: &Path) -> Result<Vec<(String, Input)>> {
        let fault = |what: String| Error::content(path, what);
        let bytes = io::read(path)?;
        let input = match self.form {
            SoundForm::Wave => clip(self, &bytes).map_err(fault)?,
            SoundForm::Mfcc if self.is_valid() => {
                let samples = clips::samples(&bytes).map_err(fault)?;
                features(self, mfcc(&unit_samples(&samples)).into_iter())
            }
            SoundForm::Mfcc => return Err(fault("the model's scaling of sound is damaged".into())),
        };
        Ok(vec![(io::file_name(path), input)])
    }
}
