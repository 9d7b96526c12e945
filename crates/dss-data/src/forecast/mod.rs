//! `forecast`: the next `horizon` values of a column of a table, from the `input` values before them.
//!
//! A sequence has `input` known values, then `horizon` zeros; the model's outputs at the zeros are the forecast. Values
//! are standardised with the mean and the standard deviation of the training rows. The rows are split by position:
//! training, validation, test; every window whose targets lie in a part belongs to it (its known values may reach back
//! into the part before). ETTh1 and ETTh2 are split as published: 8640, 2880 and 2880 rows.

mod baselines;
mod encoder;
mod series;
mod windows;

use std::path::Path;
use std::sync::Arc;

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

pub use dss_format::encoder::ForecastEncoder;

use self::baselines::Baselines;
pub use self::encoder::{Window, window};
use self::series::{Series, find};
use self::windows::Windows;
use crate::config::TaskSource;
use crate::hash::SplitHash;
use crate::note::coarse;
use crate::{Dataset, Encoder, Error, InputKind, Result, TargetKind, Task, TaskSpec, limits};

/// Settings of the task `forecast`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct ForecastConfig {
    /// CSV table with a header, plain or .gz; empty = the file given with --data, or ETTh1 in that folder.
    pub path: String,
    /// Column to forecast: its name, or its number counted from 1; empty = the last column.
    pub column: String,
    /// Known values at the start of a window.
    pub input: usize,
    /// Values to forecast.
    pub horizon: usize,
    /// Rows to train on; 0 = 8640 for ETTh1 and ETTh2, 60 % of other tables.
    pub train: usize,
    /// Validation rows, after the training rows; 0 = 2880 for ETTh1 and ETTh2, 20 % of other tables.
    pub val: usize,
    /// Test rows, after the validation rows; 0 = 2880 for ETTh1 and ETTh2, all remaining rows of other tables.
    pub test: usize,
    /// Rows per season, for the seasonal baseline; 0 = no seasonal baseline.
    pub season: usize,
    /// Whether the model reads and predicts differences from the last known value of the window.
    pub relative: bool,
}

impl Default for ForecastConfig {
    fn default() -> Self {
        Self {
            path: String::new(),
            column: String::new(),
            input: 384,
            horizon: 96,
            train: 0,
            val: 0,
            test: 0,
            season: 24,
            relative: false,
        }
    }
}

impl TaskSource for ForecastConfig {
    fn load(&self, name: &str, data_dir: Option<&Path>, progress: &dyn Fn(&str)) -> Result<Task> {
        self.check()?;
        let path = find(&self.path, data_dir)?;
        progress(&format!("reading {}", path.display()));
        let series = Series::read(&path, &self.column)?;
        let [train, val, test] = self.rows(&series, &path)?;

        let (mean, deviation) = moments(&series.values[..train]);
        let standardised = |&x: &f32| ((f64::from(x) - mean) / deviation) as f32;
        let values: Arc<[f32]> = series.values.iter().map(standardised).collect();
        let encoder = ForecastEncoder {
            column: series.column.clone(),
            input: self.input,
            horizon: self.horizon,
            mean,
            deviation,
            relative: self.relative,
        };

        let mut hash = SplitHash::new(name);
        hash.settings(&(self.input, self.horizon, [train, val, test]));
        hash.bytes("column", encoder.column.name.as_deref().unwrap_or_default().as_bytes());
        for x in &series.values[..train + val + test] {
            hash.bytes("value", &x.to_le_bytes());
        }
        let shape = [self.input, self.horizon];
        let first = |end| Windows::new(values.clone(), 0..end, shape, self.relative);
        let reaching_back = |start: usize, rows| {
            Windows::new(values.clone(), start - self.input..start + rows, shape, self.relative)
        };
        let (train_windows, val_windows) = (first(train), reaching_back(train, val));
        progress("fitting the linear baseline");
        let baselines = Baselines::fit(&train_windows, &val_windows, self.season);
        let test_windows = reaching_back(train + val, test);
        let scored = |windows: Windows| Arc::new(windows.scored_by(&baselines));
        let spec = TaskSpec {
            name: name.to_owned(),
            input: InputKind::Values { channels: 1 },
            target: TargetKind::PositionValues { outputs: 1 },
            len: self.input + self.horizon,
            pair: false,
        };
        let splits: [Arc<dyn Dataset>; 3] =
            [Arc::new(train_windows), scored(val_windows), scored(test_windows)];
        let mut notes = vec![series.description.into()];
        notes.extend(coarse("the values", mean, deviation));
        Ok(Task { notes, ..Task::new(spec, splits, hash, Encoder::Forecast(encoder)) })
    }
}

impl ForecastConfig {
    fn check(&self) -> Result<()> {
        for (key, value) in [("input", self.input), ("horizon", self.horizon)] {
            if value == 0 {
                return Err(Error::setting(key, value, "must be at least 1"));
            }
            limits::length(key, value)?;
        }
        limits::length("input", self.input + self.horizon)
    }

    /// Rows of the three parts, each long enough for a window.
    fn rows(&self, series: &Series, path: &Path) -> Result<[usize; 3]> {
        let n = series.values.len();
        let file = path.display();
        let automatic = match series.is_hourly_ett() {
            true => [8640, 2880, 2880],
            false => [n * 6 / 10, n * 2 / 10, n - n * 6 / 10 - n * 2 / 10],
        };
        let set = [self.train, self.val, self.test];
        let rows: [usize; 3] =
            std::array::from_fn(|i| if set[i] == 0 { automatic[i] } else { set[i] });
        let sum = rows.iter().fold(0usize, |sum, rows| sum.saturating_add(*rows));
        if sum > n {
            let what = format!("train, val and test are {sum} rows, but {file} has {n}");
            return Err(Error::setting("train", rows[0], what));
        }
        let needed = [self.input + self.horizon, self.horizon, self.horizon];
        for ((key, rows), needed) in ["train", "val", "test"].into_iter().zip(rows).zip(needed) {
            if rows < needed {
                let what = format!(
                    "a window needs {needed} rows of this part ({file} has {n} rows in all); \
                     give a longer table, or lower task.input or task.horizon"
                );
                return Err(Error::setting(key, rows, what));
            }
        }
        Ok(rows)
    }
}

/// Mean and standard deviation; a constant has deviation 1.
fn moments(values: &[f32]) -> (f64, f64) {
    let n = values.len().max(1) as f64;
    let mean = values.iter().map(|&x| f64::from(x)).sum::<f64>() / n;
    let variance = values.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / n;
    let deviation = variance.sqrt();
    (mean, if deviation > 0.0 { deviation } else { 1.0 })
}
