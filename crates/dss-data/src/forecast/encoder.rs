//! The end of a table as a window, and the model's answer as values of its column.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::series::Series;
use super::windows::{origin, sequence};
use crate::table::Column;
use crate::{Error, Input, Result, io};

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

/// The end of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// What the model reads.
    pub input: Input,
    /// What was subtracted from its (standardised) values.
    pub origin: f32,
}

impl ForecastEncoder {
    /// The last rows of a table.
    pub fn window(&self, path: &Path) -> Result<Window> {
        let series = Series::read_again(path, &self.column)?;
        let rows = series.values.len();
        let Some(start) = rows.checked_sub(self.input) else {
            let what = format!("{rows} rows, but the model reads the last {}", self.input);
            return Err(Error::content(path, what));
        };
        let standardised = |&x: &f32| ((f64::from(x) - self.mean) / self.deviation) as f32;
        let known: Vec<f32> = series.values[start..].iter().map(standardised).collect();
        let origin = origin(&known, self.relative);
        Ok(Window { input: sequence(&known, origin, self.horizon), origin })
    }

    /// The forecast, in the units of the column, out of the model's outputs at all positions of a window.
    pub fn forecast(&self, window: &Window, outputs: &[f64]) -> Vec<f64> {
        let asked = outputs.iter().skip(self.input).take(self.horizon);
        asked.map(|y| (y + f64::from(window.origin)) * self.deviation + self.mean).collect()
    }

    /// The last rows of a table as one sequence.
    pub(crate) fn read(&self, path: &Path) -> Result<Vec<(String, Input)>> {
        Ok(vec![(io::file_name(path), self.window(path)?.input)])
    }
}
