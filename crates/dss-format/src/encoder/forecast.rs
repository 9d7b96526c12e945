//! The end of a table as a window, and the model's answer as values of its column.

use serde::{Deserialize, Serialize};

use super::Column;

/// How tables become windows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForecastEncoder {
    /// The column.
    pub column: Column,
    /// Known values of a window.
    pub input: usize,
    /// Values to forecast.
    pub horizon: usize,
    /// Mean of the training rows.
    pub mean: f64,
    /// Standard deviation of the training rows.
    pub deviation: f64,
    /// Whether the values of a window are relative to its last known one.
    pub relative: bool,
}

impl ForecastEncoder {
    /// The forecast, in the units of the column, out of the model's outputs at all positions of a window; `origin` was
    /// subtracted from its standardised values.
    pub fn forecast(&self, origin: f32, outputs: &[f64]) -> Vec<f64> {
        let asked = outputs.iter().skip(self.input).take(self.horizon);
        asked.map(|y| (y + f64::from(origin)) * self.deviation + self.mean).collect()
    }
}
