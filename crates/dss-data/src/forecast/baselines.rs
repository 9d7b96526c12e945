//! Simple methods to compare with: the last value, the last season, and a linear map of the known values.

use super::windows::Windows;
use crate::ridge::{Ridge, RidgeMoments};
use crate::{Baseline, Dataset};

/// The linear map reads at most this many values before the forecast.
const REACH: usize = 1024;
/// Strengths of the penalty, relative to the number of windows; the best one in validation is taken.
const PENALTIES: [f64; 6] = [1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0];

/// The methods, fitted.
pub(super) struct Baselines {
    /// Rows of a season; 0 = none.
    season: usize,
    linear: Option<Ridge>,
}

impl Baselines {
    /// Least squares with a penalty that is chosen on `val`.
    pub(super) fn fit(train: &Windows, val: &Windows, season: usize) -> Self {
        let [input, horizon] = train.shape();
        // The map reads the last values of a window only: windows of that length in the same rows.
        let reach = input.min(REACH);
        let moments = RidgeMoments::of_windows(&train.series()[input - reach..], reach, horizon);
        let fitted = PENALTIES.iter().filter_map(|&penalty| {
            let ridge = moments.solve(penalty)?;
            let (mse, _) = errors(val, |known| ridge.forecast(known));
            Some((mse, ridge))
        });
        let best = fitted.min_by(|a, b| a.0.total_cmp(&b.0));
        let season = if season <= input { season } else { 0 };
        Self { season, linear: best.map(|(_, ridge)| ridge) }
    }

    /// Their errors on all windows.
    pub(super) fn score(&self, windows: &Windows) -> Vec<Baseline> {
        let [_, horizon] = windows.shape();
        let mut found = Vec::new();
        let mut add = |name: &str, (mse, mae)| {
            found.push(Baseline::errors(name, mse, mae));
        };
        if let Some(ridge) = &self.linear {
            add("linear least squares", errors(windows, |known| ridge.forecast(known)));
        }
        let last = |known: &[f32]| vec![f64::from(known[known.len() - 1]); horizon];
        add("last value", errors(windows, last));
        if self.season > 0 {
            let seasonal = |known: &[f32]| {
                let season = &known[known.len() - self.season..];
                season.iter().cycle().take(horizon).map(|&x| x.into()).collect()
            };
            add(&format!("value {} rows before", self.season), errors(windows, seasonal));
        }
        found
    }
}

/// Mean squared and mean absolute error of a method on all windows.
fn errors(windows: &Windows, method: impl Fn(&[f32]) -> Vec<f64>) -> (f64, f64) {
    let (mut square, mut absolute, mut count) = (0.0, 0.0, 0usize);
    for i in 0..windows.len() {
        let (known, targets) = windows.window(i);
        for (y, &target) in method(known).iter().zip(targets) {
            let error = y - f64::from(target);
            square += error * error;
            absolute += error.abs();
            count += 1;
        }
    }
    let n = count.max(1) as f64;
    (square / n, absolute / n)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn windows(values: &[f32]) -> Windows {
        Windows::new(Arc::from(values), 0..values.len(), [8, 4], false)
    }

    #[test]
    fn errors_by_hand() {
        // A ramp: the last value is 1, 2, 3, 4 too low; a season of 4 is 4 too low; a line is exact.
        let ramp: Vec<f32> = (0..40).map(|i| i as f32 / 16.0).collect();
        let all = windows(&ramp);
        let found = Baselines::fit(&all, &all, 4).score(&all);
        let names: Vec<&str> = found.iter().map(|b| b.name.as_str()).collect();
        assert_eq!(names, ["linear least squares", "last value", "value 4 rows before"]);
        assert!(found[0].mse.unwrap() < 1e-4, "{found:?}");
        assert!((found[1].mae.unwrap() - 2.5 / 16.0).abs() < 1e-12);
        assert!((found[1].mse.unwrap() - 7.5 / 256.0).abs() < 1e-12);
        assert!((found[2].mae.unwrap() - 4.0 / 16.0).abs() < 1e-12);
    }

    #[test]
    fn a_constant_and_a_long_season_are_handled() {
        let all = windows(&[0.0; 20]);
        let found = Baselines::fit(&all, &all, 9).score(&all);
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|b| b.mse == Some(0.0)));
    }
}
