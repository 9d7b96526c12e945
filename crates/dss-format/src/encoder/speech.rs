//! How spoken words become input.

use serde::{Deserialize, Serialize};

/// Samples per second of the clips.
pub const RATE: u32 = 16_000;
/// Samples of a whole clip.
pub const SAMPLES: usize = 16_000;
/// MFCC features of a frame.
pub const COEFFICIENTS: usize = 20;
/// Frames of a whole clip.
pub const FRAMES: usize = 161;

/// What the model reads of a clip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SoundForm {
    /// The samples, from -1 to 1.
    Wave,
    /// 20 features of each of 161 frames.
    Mfcc,
}

impl SoundForm {
    /// Numbers per step.
    pub fn channels(self) -> usize {
        match self {
            Self::Wave => 1,
            Self::Mfcc => COEFFICIENTS,
        }
    }

    /// Steps of a clip of one second.
    pub fn steps(self) -> usize {
        match self {
            Self::Wave => SAMPLES,
            Self::Mfcc => FRAMES,
        }
    }
}

/// How a clip becomes input: x' = (x - mean) / divisor, by channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpeechEncoder {
    /// What the model reads.
    pub form: SoundForm,
    /// Samples per second that it reads: 16000, or every second one of them.
    pub rate: u32,
    /// Mean of the training clips.
    pub mean: Vec<f32>,
    /// Standard deviation of the training clips, and a constant.
    pub divisor: Vec<f32>,
}

impl SpeechEncoder {
    /// Of how many samples at 16 kHz one is read.
    pub fn stride(&self) -> usize {
        (RATE / self.rate.clamp(1, RATE)) as usize
    }

    /// Steps of an input.
    pub fn steps(&self) -> usize {
        self.form.steps().div_ceil(self.stride())
    }

    /// Samples per second; features have no rate that could be changed.
    pub fn sample_rate(&self) -> Option<f64> {
        matches!(self.form, SoundForm::Wave).then_some(self.rate.into())
    }

    /// Whether there is a scaling for every channel, and numbers to divide by.
    pub fn is_valid(&self) -> bool {
        let channels = self.form.channels();
        self.rate > 0
            && self.mean.len() == channels
            && self.divisor.len() == channels
            && self.mean.iter().all(|mean| mean.is_finite())
            && self.divisor.iter().all(|divisor| *divisor > 0.0 && divisor.is_finite())
    }
}
