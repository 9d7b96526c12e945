//! The end of a table as a window, and the model's answer as values of its column.

use std::path::Path;

use dss_format::encoder::ForecastEncoder;

use super::series::Series;
use super::windows::{origin, sequence};
use crate::encoder::{ReadFile, SequencePlace};
use crate::{Error, Input, Result, units};

/// The end of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// What the model reads.
    pub input: Input,
    /// The number that was subtracted from its (standardised) values.
    pub origin: f32,
    /// A short description of how the table was read.
    pub description: String,
}

/// The last rows of a table.
pub fn window(encoder: &ForecastEncoder, path: &Path) -> Result<Window> {
    let series = Series::read_again(path, &encoder.column)?;
    let rows = series.values.len();
    let Some(start) = rows.checked_sub(encoder.input) else {
        let rows = units::plural(rows as u64, "row");
        let what = format!("{rows}, but the model reads the last {}", encoder.input);
        return Err(Error::content(path, what));
    };
    let standardised = |&x: &f32| ((f64::from(x) - encoder.mean) / encoder.deviation) as f32;
    let known: Vec<f32> = series.values[start..].iter().map(standardised).collect();
    let origin = origin(&known, encoder.relative);
    let description =
        format!("{}, of which the last {} are known", series.description, encoder.input);
    Ok(Window { input: sequence(&known, origin, encoder.horizon), origin, description })
}

impl ReadFile for ForecastEncoder {
    /// The last rows of a table as one sequence.
    fn read(&self, path: &Path) -> Result<Vec<(SequencePlace, Input)>> {
        Ok(vec![(SequencePlace::File, window(self, path)?.input)])
    }
}
