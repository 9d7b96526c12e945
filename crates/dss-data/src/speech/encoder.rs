//! From samples to model input, in training and in prediction alike.

use std::path::Path;

use dss_format::encoder::speech::RATE;
use dss_format::encoder::{SoundForm, SpeechEncoder};
use dss_format::feed::SoundFeed;

use super::clips;
use super::form::unit_samples;
use super::mfcc::mfcc;
use crate::encoder::{ReadFile, SequencePlace};
use crate::{Error, Input, Result, audio, io};

/// Samples at 16 kHz; short clips are padded with silence.
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

/// A sound file as a model of the wave reads it in a stream, and its samples per second: those of the model, or of the
/// file where they differ. A model of every second sample leaves every second one out.
///
/// # Errors
/// A file that cannot be read, or that has more than a second of sound.
pub fn read_sound(encoder: &SpeechEncoder, path: &Path) -> Result<(Input, f64)> {
    clip(encoder, &io::read(path)?).map_err(|what| Error::content(path, what))
}

fn clip(encoder: &SpeechEncoder, bytes: &[u8]) -> std::result::Result<(Input, f64), String> {
    let feed = SoundFeed::new(encoder)?;
    let audio = audio::decode(bytes, clips::MOST)?;
    let (stride, rate) = match audio.rate {
        RATE => (encoder.stride(), feed.rate),
        rate => (1, f64::from(rate)),
    };
    let most = (encoder.steps() as f64 * rate / feed.rate) as usize * stride;
    match audio.samples.len() / audio.channels {
        0 => Err("no samples in this file".into()),
        n if n > most => Err(format!("{n} samples; a clip has at most {most}: cut the file")),
        _ => {
            let samples = audio.mono().into_iter().step_by(stride);
            Ok((Input::Values(samples.map(|x| feed.value(x)).collect()), rate))
        }
    }
}

impl ReadFile for SpeechEncoder {
    /// One clip of at most one second, at the model's rate. A model of the wave reads what `dss stream` reads: any bits
    /// and channels, which are averaged. Features are made of clips like those of the training.
    fn read(&self, path: &Path) -> Result<Vec<(SequencePlace, Input)>> {
        let fault = |what: String| Error::content(path, what);
        let bytes = io::read(path)?;
        let input = match self.form {
            SoundForm::Wave => match clip(self, &bytes).map_err(fault)? {
                (input, rate) if rate == f64::from(self.rate) => input,
                (_, rate) => {
                    return Err(fault(format!("{rate} Hz, but the model takes {} Hz", self.rate)));
                }
            },
            SoundForm::Mfcc if self.is_valid() => {
                let samples = clips::samples(&bytes).map_err(fault)?;
                features(self, mfcc(&unit_samples(&samples)).into_iter())
            }
            SoundForm::Mfcc => return Err(fault("the model's scaling of sound is damaged".into())),
        };
        Ok(vec![(SequencePlace::File, input)])
    }
}
