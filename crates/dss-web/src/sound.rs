//! How sound becomes a model's input.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::engine::{Result, text};

/// x' = (x − mean) / divisor, at a rate.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Sound {
    /// Samples per second that the model takes.
    pub rate: f64,
    /// Samples per second that it was trained with.
    trained_rate: f64,
    #[serde(skip)]
    mean: f32,
    #[serde(skip)]
    divisor: f32,
}

impl Sound {
    pub(crate) fn new(encoder: Value, ratio: f64) -> Result<Self> {
        #[derive(Deserialize)]
        struct Raw {
            rate: u32,
            mean: Vec<f32>,
            divisor: Vec<f32>,
        }
        let raw: Raw = serde_json::from_value(encoder).map_err(text)?;
        let (&[mean], &[divisor]) = (raw.mean.as_slice(), raw.divisor.as_slice()) else {
            return Err("the file's scaling of sound is damaged".into());
        };
        if raw.rate == 0 || !mean.is_finite() || !(divisor > 0.0 && divisor.is_finite()) {
            return Err("the file's scaling of sound is damaged".into());
        }
        let trained_rate = f64::from(raw.rate);
        Ok(Self { rate: trained_rate / ratio, trained_rate, mean, divisor })
    }

    /// One sample as the model takes it.
    pub(crate) fn scaled(&self, x: f32) -> f32 {
        (x - self.mean) / self.divisor
    }
}
