//! Simple methods to compare with: the most frequent class (or the mean), and a linear map of plain statistics.

use rayon::prelude::*;

use super::statistics::statistics;
use crate::ridge::{Ridge, RidgeMoments};
use crate::{Baseline, Dataset, Result, Target, TargetKind, TaskSpec};

/// The map is fitted to at most this many training sequences.
const MOST: usize = 5000;
/// Strengths of the penalty, relative to the number of sequences; the best one in validation is taken.
const PENALTIES: [f64; 6] = [1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0];

/// The methods, fitted to the training sequences.
pub(super) struct Baselines<'a> {
    spec: &'a TaskSpec,
    /// Mean of the targets; for classes, their shares.
    mean: Vec<f64>,
    linear: Option<Linear>,
}

/// A linear map of standardised statistics.
struct Linear {
    /// Mean and standard deviation of every statistic.
    scale: Vec<(f64, f64)>,
    ridge: Ridge,
}

/// Statistics and target of a sequence; a class is a vector of zeros and a one.
type Row = (Vec<f64>, Vec<f64>);

impl<'a> Baselines<'a> {
    /// Least squares on `train`, with a penalty that is chosen on `val`.
    pub(super) fn fit(spec: &'a TaskSpec, train: &dyn Dataset, val: &dyn Dataset) -> Result<Self> {
        let (train, val) = (rows(spec, train, MOST)?, rows(spec, val, usize::MAX)?);
        let outputs = train[0].1.len();
        let mean = |k: usize| train.iter().map(|(_, y)| y[k]).sum::<f64>() / train.len() as f64;
        let mean: Vec<f64> = (0..outputs).map(mean).collect();
        let scale = scale(&train);
        let standardised: Vec<Vec<f64>> =
            train.iter().map(|(x, y)| [standardise(&scale, x), y.clone()].concat()).collect();
        let moments = RidgeMoments::of_rows(&standardised, scale.len());
        let fitted = PENALTIES.iter().filter_map(|&penalty| {
            let linear = Linear { scale: scale.clone(), ridge: moments.solve(penalty)? };
            Some((score_method(spec, &val, |x| linear.predict(x)), linear))
        });
        // The highest accuracy (none in a regression), then the least error.
        let best = fitted.min_by(|(a, _), (b, _)| {
            let wrong = |b: &Baseline| 1.0 - b.accuracy.unwrap_or(0.0);
            let error = |b: &Baseline| b.mse.unwrap_or(0.0);
            wrong(a).total_cmp(&wrong(b)).then(error(a).total_cmp(&error(b)))
        });
        Ok(Self { spec, mean, linear: best.map(|(_, linear)| linear) })
    }

    /// Their scores on all sequences of a split.
    pub(super) fn score(&self, data: &dyn Dataset) -> Result<Vec<Baseline>> {
        let rows = rows(self.spec, data, usize::MAX)?;
        let simplest = match &self.spec.target {
            TargetKind::Class { labels } => {
                let class = largest(&self.mean);
                format!("always {}", labels.get(class).map_or("", String::as_str))
            }
            _ => "mean of the training".to_owned(),
        };
        let mut found = vec![Baseline {
            name: simplest,
            ..score_method(self.spec, &rows, |_| self.mean.clone())
        }];
        if let Some(linear) = &self.linear {
            let name = "linear map of plain statistics".to_owned();
            found.push(Baseline { name, ..score_method(self.spec, &rows, |x| linear.predict(x)) });
        }
        Ok(found)
    }
}

impl Linear {
    fn predict(&self, x: &[f64]) -> Vec<f64> {
        self.ridge.apply(&standardise(&self.scale, x))
    }
}

/// The first `most` sequences of a split.
fn rows(spec: &TaskSpec, data: &dyn Dataset, most: usize) -> Result<Vec<Row>> {
    let row = |i| {
        let example = data.example(i)?;
        let target = match (&example.target, &spec.target) {
            (Target::Class(class), TargetKind::Class { labels }) => {
                (0..labels.len()).map(|k| f64::from(u8::from(k == *class as usize))).collect()
            }
            (Target::Values(values), _) => values.iter().map(|&x| x.into()).collect(),
            _ => Vec::new(),
        };
        Ok((statistics(&example.input, &spec.input), target))
    };
    (0..data.len().min(most)).into_par_iter().map(row).collect()
}

fn scale(rows: &[Row]) -> Vec<(f64, f64)> {
    let n = rows.len() as f64;
    let moments = |i: usize| {
        let mean = rows.iter().map(|(x, _)| x[i]).sum::<f64>() / n;
        let variance = rows.iter().map(|(x, _)| (x[i] - mean).powi(2)).sum::<f64>() / n;
        (mean, if variance > 0.0 { variance.sqrt() } else { 1.0 })
    };
    (0..rows[0].0.len()).map(moments).collect()
}

fn standardise(scale: &[(f64, f64)], x: &[f64]) -> Vec<f64> {
    x.iter().zip(scale).map(|(x, (mean, sd))| (x - mean) / sd).collect()
}

/// How good a method is: the accuracy for classes, the errors for values.
fn score_method(spec: &TaskSpec, rows: &[Row], method: impl Fn(&[f64]) -> Vec<f64>) -> Baseline {
    let (mut right, mut square, mut absolute, mut count) = (0, 0.0, 0.0, 0);
    for (x, target) in rows {
        let answer = method(x);
        right += usize::from(largest(&answer) == largest(target));
        for error in answer.iter().zip(target).map(|(a, b)| a - b) {
            square += error * error;
            absolute += error.abs();
            count += 1;
        }
    }
    let n = f64::from(count.max(1));
    match spec.target {
        TargetKind::Class { .. } => {
            let accuracy = Some(right as f64 / rows.len().max(1) as f64);
            Baseline { accuracy, ..Baseline::default() }
        }
        _ => Baseline::errors("", square / n, absolute / n),
    }
}

/// The place of the largest number, the first of equal ones.
fn largest(numbers: &[f64]) -> usize {
    let places = numbers.iter().enumerate().rev();
    places.max_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |(i, _)| i)
}
