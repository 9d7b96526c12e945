//! Examines every example of a split.

use rayon::prelude::*;
use serde::Serialize;

use crate::note::TOLD;
use crate::{Dataset, Example, Input, InputKind, Target, TargetKind, TaskSpec};

/// Examples that are read at once.
const BLOCK: usize = 256;

/// The contents of a split.
#[derive(Clone, Debug, Serialize)]
pub struct SplitReport {
    /// Name of the split.
    pub name: &'static str,
    /// Number of examples.
    pub examples: usize,
    /// Lengths of the sequences.
    pub lengths: Option<Lengths>,
    /// How often each class occurs: over examples, or over the positions that have a target.
    pub labels: Vec<(String, u64)>,
    /// The numbers of the input.
    pub values: Option<ValueRange>,
    /// The numbers to predict.
    pub targets: Option<ValueRange>,
    /// Token ids that occur.
    pub tokens: Option<usize>,
    /// Share of the tokens that are not in the vocabulary, where there is an id for them.
    pub unknown: Option<f64>,
    /// Number of faulty examples.
    pub faulty: u64,
    /// Faults.
    pub faults: Vec<String>,
}

/// Lengths of sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Lengths {
    /// The shortest.
    pub min: u32,
    /// The middle one.
    pub median: u32,
    /// The longest.
    pub max: u32,
}

/// A summary of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ValueRange {
    /// The smallest.
    pub min: f32,
    /// The largest.
    pub max: f32,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation.
    pub deviation: f64,
}

impl SplitReport {
    /// `unknown`: the token id of what is not in the vocabulary, if there is one.
    pub(super) fn examine(
        name: &'static str,
        spec: &TaskSpec,
        unknown: Option<usize>,
        data: &dyn Dataset,
        progress: &dyn Fn(&str),
    ) -> Self {
        let mut seen = SplitCounts::new(spec);
        let count = data.len();
        for start in (0..count).step_by(BLOCK) {
            let end = count.min(start + BLOCK);
            let block: Vec<_> =
                (start..end).into_par_iter().map(|i| (i, data.example(i))).collect();
            block.into_iter().for_each(|(i, example)| seen.add(i, spec, example));
            progress(&format!("{name}: {end} of {count} examples"));
        }
        seen.report(name, spec, unknown, count)
    }
}

/// What has been counted so far.
#[derive(Default)]
struct SplitCounts {
    lengths: Vec<u32>,
    classes: Vec<u64>,
    tokens: Vec<u64>,
    values: RunningMoments,
    targets: RunningMoments,
    faulty: u64,
    faults: Vec<String>,
}

impl SplitCounts {
    fn new(spec: &TaskSpec) -> Self {
        let classes = match &spec.target {
            TargetKind::Class { labels } | TargetKind::PositionClasses { labels } => labels.len(),
            TargetKind::NextToken { symbols } => symbols.len(),
            _ => 0,
        };
        let tokens = if let InputKind::Tokens { vocab } = spec.input { vocab } else { 0 };
        Self { classes: vec![0; classes], tokens: vec![0; tokens], ..Self::default() }
    }

    fn add(&mut self, i: usize, spec: &TaskSpec, example: crate::Result<Example>) {
        let fault = match example {
            Err(error) => Some(error.to_string()),
            Ok(example) => {
                let inputs = std::iter::once(&example.input).chain(&example.second);
                let mut fault = None;
                for input in inputs {
                    fault = fault.or(self.input(spec, input));
                }
                if spec.pair != example.second.is_some() {
                    fault = fault.or(Some(
                        "expected a pair of sequences and found one, or vice versa".into(),
                    ));
                }
                fault.or(self.target(spec, &example.target))
            }
        };
        if let Some(what) = fault {
            self.faulty += 1;
            if self.faults.len() < TOLD {
                self.faults.push(format!("example {i}: {what}"));
            }
        }
    }

    /// The fault of an input, if it has one.
    fn input(&mut self, spec: &TaskSpec, input: &Input) -> Option<String> {
        let mut fault = None;
        let len = match (input, &spec.input) {
            (Input::Tokens(tokens), InputKind::Tokens { vocab }) => {
                for &token in tokens {
                    match self.tokens.get_mut(token as usize) {
                        Some(count) => *count += 1,
                        None => fault = Some(format!("token {token}, but there are only {vocab}")),
                    }
                }
                tokens.len()
            }
            (Input::Values(values), InputKind::Values { channels }) => {
                if !self.values.add(values) {
                    fault = Some("a number is NaN or infinite".into());
                }
                let channels = (*channels).max(1);
                if values.len() % channels != 0 {
                    fault = Some(format!("{} numbers in {channels} channels", values.len()));
                }
                values.len() / channels
            }
            _ => return Some("tokens where numbers should be, or vice versa".into()),
        };
        self.lengths.push(len as u32);
        if len > spec.len {
            fault = Some(format!("{len} positions, but the model takes {}", spec.len));
        }
        fault
    }

    /// The fault of a target, if it has one.
    fn target(&mut self, spec: &TaskSpec, target: &Target) -> Option<String> {
        let wrong = |class: i64| Some(format!("class {class} does not exist"));
        match (target, &spec.target) {
            (Target::Class(class), TargetKind::Class { .. }) => {
                let Some(count) = self.classes.get_mut(*class as usize) else {
                    return wrong((*class).into());
                };
                *count += 1;
            }
            (
                Target::PositionClasses(classes),
                TargetKind::PositionClasses { .. } | TargetKind::NextToken { .. },
            ) => {
                for &class in classes.iter().filter(|&&class| class != -1) {
                    let place = usize::try_from(class).ok();
                    let Some(count) = place.and_then(|c| self.classes.get_mut(c)) else {
                        return wrong(class.into());
                    };
                    *count += 1;
                }
            }
            (Target::Values(values), TargetKind::Values { .. }) => {
                if !self.targets.add(values) {
                    return Some("the target is NaN or infinite".into());
                }
            }
            // NaN: no target.
            (Target::PositionValues(values), TargetKind::PositionValues { .. }) => {
                let asked: Vec<f32> = values.iter().copied().filter(|v| !v.is_nan()).collect();
                if !self.targets.add(&asked) {
                    return Some("a target is infinite".into());
                }
            }
            _ => return Some("a target that is not of the task's kind".into()),
        }
        None
    }

    fn report(
        mut self,
        name: &'static str,
        spec: &TaskSpec,
        unknown: Option<usize>,
        examples: usize,
    ) -> SplitReport {
        self.lengths.sort_unstable();
        let lengths = self.lengths.last().map(|&max| Lengths {
            min: self.lengths[0],
            median: self.lengths[self.lengths.len() / 2],
            max,
        });
        let labels = match &spec.target {
            TargetKind::Class { labels } | TargetKind::PositionClasses { labels } => {
                labels.iter().cloned().zip(self.classes).collect()
            }
            _ => Vec::new(),
        };
        let is_tokens = matches!(spec.input, InputKind::Tokens { .. });
        let sum: u64 = self.tokens.iter().sum();
        let mut faults = self.faults;
        if examples == 0 {
            faults.push("no examples".into());
        }
        if self.faulty > faults.len() as u64 {
            faults.push(format!("{} faulty examples altogether", self.faulty));
        }
        SplitReport {
            name,
            examples,
            lengths,
            labels,
            values: self.values.range(),
            targets: self.targets.range(),
            tokens: is_tokens.then(|| self.tokens.iter().filter(|&&n| n > 0).count()),
            unknown: unknown
                .and_then(|id| self.tokens.get(id))
                .map(|&unknown| unknown as f64 / sum.max(1) as f64),
            faulty: self.faulty,
            faults,
        }
    }
}

/// Count, sum and sum of squares of many numbers, and their range.
#[derive(Default)]
struct RunningMoments {
    count: u64,
    sum: f64,
    squares: f64,
    range: Option<(f32, f32)>,
}

impl RunningMoments {
    /// Whether all were finite; the others are left out.
    fn add(&mut self, values: &[f32]) -> bool {
        let finite = || values.iter().copied().filter(|v| v.is_finite());
        for value in finite() {
            self.count += 1;
            self.sum += f64::from(value);
            self.squares += f64::from(value) * f64::from(value);
            let (low, high) = self.range.unwrap_or((value, value));
            self.range = Some((low.min(value), high.max(value)));
        }
        finite().count() == values.len()
    }

    fn range(&self) -> Option<ValueRange> {
        let (min, max) = self.range?;
        let mean = self.sum / self.count as f64;
        let variance = (self.squares / self.count as f64 - mean * mean).max(0.0);
        Some(ValueRange { min, max, mean, deviation: variance.sqrt() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Error, Result};

    struct Examples(Vec<fn() -> Result<Example>>);

    impl Dataset for Examples {
        fn len(&self) -> usize {
            self.0.len()
        }

        fn example(&self, i: usize) -> Result<Example> {
            self.0[i]()
        }
    }

    fn report(
        input: InputKind,
        target: TargetKind,
        given: Vec<fn() -> Result<Example>>,
    ) -> SplitReport {
        let spec = TaskSpec { name: "test".into(), input, target, len: 4, pair: false };
        SplitReport::examine("train", &spec, Some(1), &Examples(given), &|_| {})
    }

    fn two_classes() -> TargetKind {
        TargetKind::Class { labels: vec!["a".into(), "b".into()] }
    }

    fn tokens(tokens: &[u32], class: u32) -> Result<Example> {
        let input = Input::Tokens(tokens.to_vec());
        Ok(Example { input, second: None, target: Target::Class(class) })
    }

    fn values(values: &[f32], target: f32) -> Result<Example> {
        let input = Input::Values(values.to_vec());
        Ok(Example { input, second: None, target: Target::Values(vec![target]) })
    }

    #[test]
    fn tokens_are_counted() {
        let given: Vec<fn() -> _> =
            vec![|| tokens(&[3, 1], 0), || tokens(&[3], 0), || tokens(&[3, 3, 2, 4], 1)];
        let report = report(InputKind::Tokens { vocab: 5 }, two_classes(), given);
        assert_eq!(report.labels, [("a".to_owned(), 2), ("b".to_owned(), 1)]);
        assert_eq!(report.lengths.unwrap(), Lengths { min: 1, median: 2, max: 4 });
        assert_eq!((report.tokens, report.unknown), (Some(4), Some(1.0 / 7.0)));
        assert!(report.faults.is_empty() && report.values.is_none());
    }

    #[test]
    fn numbers_are_measured() {
        let given: Vec<fn() -> _> = vec![|| values(&[1.0, -3.0], 5.0), || values(&[2.0, 0.0], 7.0)];
        let target = TargetKind::Values { outputs: 1 };
        let report = report(InputKind::Values { channels: 2 }, target, given);
        let range = report.values.unwrap();
        assert_eq!((range.min, range.max, range.mean), (-3.0, 2.0, 0.0));
        assert!((range.deviation - 3.5f64.sqrt()).abs() < 1e-12);
        assert_eq!(report.targets.unwrap().mean, 6.0);
        assert_eq!(report.lengths.unwrap(), Lengths { min: 1, median: 1, max: 1 });
    }

    #[test]
    fn faults_are_told() {
        let given: Vec<fn() -> _> = vec![
            || tokens(&[3], 0),
            || tokens(&[9], 0),
            || tokens(&[1; 5], 1),
            || tokens(&[1], 2),
            || values(&[1.0], 1.0),
            || Err(Error::content(std::path::Path::new("a.wav"), "cut short")),
        ];
        let report = report(InputKind::Tokens { vocab: 5 }, two_classes(), given);
        let expected = [
            "example 1: token 9, but there are only 5",
            "example 2: 5 positions, but the model takes 4",
            "example 3: class 2 does not exist",
            "example 4: tokens where numbers should be, or vice versa",
            "example 5: a.wav: cut short",
        ];
        assert_eq!(report.faults, expected);
        assert_eq!(report.faulty, 5);
    }

    #[test]
    fn many_faults_are_counted() {
        let given: Vec<fn() -> _> = vec![|| values(&[f32::NAN], 0.0); 5000];
        let target = TargetKind::Values { outputs: 1 };
        let report = report(InputKind::Values { channels: 1 }, target, given);
        assert_eq!((report.faulty, report.faults.len()), (5000, TOLD + 1));
        assert_eq!(report.faults[TOLD], "5000 faulty examples altogether");
        assert_eq!(report.faults[1], "example 1: a number is NaN or infinite");
        assert!(report.values.is_none());
    }

    #[test]
    fn an_empty_split_is_a_fault() {
        let report = report(InputKind::Tokens { vocab: 5 }, two_classes(), Vec::new());
        assert_eq!(report.faults, ["no examples"]);
        assert_eq!(report.lengths, None);
    }
}
