//! Sound while it arrives.

use crate::encoder::SpeechEncoder;

/// Sound of one channel.
#[derive(Clone, Debug, PartialEq)]
pub struct SoundFeed {
    /// Positions per second.
    pub rate: f64,
    mean: f32,
    divisor: f32,
}

impl SoundFeed {
    /// `Err` says why the model does not read samples.
    pub fn new(encoder: &SpeechEncoder) -> Result<Self, String> {
        let rate =
            encoder.sample_rate().ok_or("this model reads features (MFCC) of whole clips")?;
        match encoder.is_valid() {
            true => Ok(Self { rate, mean: encoder.mean[0], divisor: encoder.divisor[0] }),
            false => Err("the model's scaling of sound is damaged; export the model again".into()),
        }
    }

    /// The model's input of a sample from -1 to 1.
    pub fn value(&self, sample: f32) -> f32 {
        (sample - self.mean) / self.divisor
    }
}
