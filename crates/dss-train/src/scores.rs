//! Scores of a model, and the sums they are computed from.

use dss_data::{Baseline, TargetKind};
use serde::{Deserialize, Serialize};

/// A confusion matrix is kept for at most this many classes.
pub const MAX_CONFUSION: usize = 128;

/// The measure that a model is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// The share of right classes.
    Accuracy,
    /// The squared error.
    Error,
    /// The cross entropy of the next token.
    CrossEntropy,
}

impl Measure {
    /// The measure of a task.
    pub fn for_target(target: &TargetKind) -> Self {
        match target {
            TargetKind::Class { .. } | TargetKind::PositionClasses { .. } => Self::Accuracy,
            TargetKind::Values { .. } | TargetKind::PositionValues { .. } => Self::Error,
            TargetKind::NextToken { .. } => Self::CrossEntropy,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Accuracy => "accuracy",
            Self::Error => "mean squared error",
            Self::CrossEntropy => "cross entropy",
        }
    }

    /// A short form of its name.
    pub fn short_name(self) -> &'static str {
        match self {
            Self::Accuracy => "accuracy",
            Self::Error => "mse",
            Self::CrossEntropy => "loss",
        }
    }
}

/// How well a model does on a set of examples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    /// Mean loss of all scored items: cross entropy in nats, or squared error.
    pub loss: f64,
    /// Share of scored items whose largest output is the right class; `None` for regression and language models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<f64>,
    /// Mean squared error; `None` for classification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mse: Option<f64>,
    /// Mean absolute error; `None` for classification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mae: Option<f64>,
    /// Cross entropy in bits per token; only for language models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bits: Option<f64>,
    /// How many examples were seen.
    pub examples: usize,
    /// `confusion[true class][predicted class]`; `None` for regression, language models and many classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confusion: Option<Vec<Vec<u64>>>,
    /// What simple methods reach on the same examples.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub baselines: Vec<Baseline>,
}

impl Scores {
    /// The score that selects checkpoints and detects plateaus; larger is better: the accuracy, or the negated loss.
    pub fn score(&self) -> f64 {
        self.accuracy.unwrap_or(-self.loss)
    }

    /// The measure that counts.
    pub fn measure(&self) -> Measure {
        match (self.accuracy, self.bits) {
            (Some(_), _) => Measure::Accuracy,
            (None, Some(_)) => Measure::CrossEntropy,
            (None, None) => Measure::Error,
        }
    }

    /// The score that counts, and the same in another unit if there is one: `61.30 %`, `1.5 nats` and
    /// `2.164 bits per token`, or `0.0012`. `number` shows a number.
    pub fn in_words(&self, number: fn(f64) -> String) -> (String, Option<String>) {
        match (self.accuracy, self.bits) {
            (Some(accuracy), _) => (format!("{:.2} %", 100.0 * accuracy), None),
            (None, Some(bits)) => {
                let bits = format!("{} bits per token", number(bits));
                (format!("{} nats", number(self.loss)), Some(bits))
            }
            (None, None) => (number(self.loss), None),
        }
    }

    /// Share of the most frequent true class: the accuracy of always predicting it.
    pub fn majority(&self) -> Option<f64> {
        let classes = self.confusion.as_ref()?.iter().map(|row| row.iter().sum::<u64>());
        let all: u64 = classes.clone().sum();
        classes.max().filter(|_| all > 0).map(|most| most as f64 / all as f64)
    }

    /// Mean over the classes of F1, the harmonic mean of precision and recall: a class counts as much as any other, however
    /// rare it is. Classes that are neither true nor predicted anywhere are left out.
    pub fn macro_f1(&self) -> Option<f64> {
        let matrix = self.confusion.as_ref()?;
        let cell = |row: &Vec<u64>, class: usize| row.get(class).copied().unwrap_or(0);
        let f1 = |class: usize| {
            let is_true: u64 = matrix[class].iter().sum();
            let predicted: u64 = matrix.iter().map(|row| cell(row, class)).sum();
            let hits = cell(&matrix[class], class);
            (is_true + predicted > 0).then(|| 2.0 * hits as f64 / (is_true + predicted) as f64)
        };
        let classes: Vec<f64> = (0..matrix.len()).filter_map(f1).collect();
        (!classes.is_empty()).then(|| classes.iter().sum::<f64>() / classes.len() as f64)
    }

    /// The model's own scores, as `this model`, then the baselines; nothing if there are none.
    pub fn with_baselines(&self) -> Vec<Baseline> {
        let Self { accuracy, mse, mae, .. } = *self;
        let own = Baseline { name: "this model".into(), accuracy, mse, mae };
        let own = (!self.baselines.is_empty()).then_some(own);
        own.into_iter().chain(self.baselines.iter().cloned()).collect()
    }
}

/// The sums that [`Scores`] are computed from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tally {
    /// Sum of the losses of all scored items.
    pub loss: f64,
    /// Scored items: sequences, positions, or single numbers of a regression.
    pub scored: u64,
    /// Items whose class was found; stays 0 for regression.
    pub correct: u64,
    /// Sum of the absolute errors of a regression.
    #[serde(default)]
    pub absolute: f64,
    /// Sequences (or pairs of them).
    pub examples: u64,
}

impl Tally {
    /// Adds another tally to this one.
    pub fn add(&mut self, other: &Tally) {
        self.loss += other.loss;
        self.scored += other.scored;
        self.correct += other.correct;
        self.absolute += other.absolute;
        self.examples += other.examples;
    }

    /// Mean loss.
    pub fn mean_loss(&self) -> f64 {
        self.loss / self.scored.max(1) as f64
    }

    /// Share of items whose class was found.
    pub fn accuracy(&self) -> f64 {
        self.correct as f64 / self.scored.max(1) as f64
    }

    /// The scores that result from these sums.
    pub fn scores(&self, measure: Measure, confusion: Option<Vec<Vec<u64>>>) -> Scores {
        let loss = self.mean_loss();
        let error = measure == Measure::Error;
        Scores {
            loss,
            accuracy: (measure == Measure::Accuracy).then(|| self.accuracy()),
            mse: error.then_some(loss),
            mae: error.then(|| self.absolute / self.scored.max(1) as f64),
            bits: (measure == Measure::CrossEntropy).then_some(loss / std::f64::consts::LN_2),
            examples: self.examples as usize,
            confusion,
            baselines: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(scores: &Scores) -> (&'static str, String, Option<String>) {
        let (score, other) = scores.in_words(|x| x.to_string());
        (scores.measure().name(), score, other)
    }

    #[test]
    fn every_kind_of_score_has_its_words() {
        let scores = Scores { loss: 0.5, ..Scores::default() };
        assert_eq!(shown(&scores), ("mean squared error", "0.5".into(), None));
        let classes = Scores { accuracy: Some(0.613), ..scores.clone() };
        assert_eq!(shown(&classes), ("accuracy", "61.30 %".into(), None));
        let tokens = Scores { bits: Some(0.75), ..scores };
        let bits = Some("0.75 bits per token".into());
        assert_eq!(shown(&tokens), ("cross entropy", "0.5 nats".into(), bits));
    }

    #[test]
    fn the_most_frequent_class_counts_true_ones() {
        let scores = |confusion| Scores { confusion, ..Scores::default() };
        assert_eq!(scores(Some(vec![vec![3, 1], vec![0, 4]])).majority(), Some(0.5));
        assert_eq!(scores(Some(vec![vec![0, 0], vec![0, 0]])).majority(), None);
        assert_eq!(scores(None).majority(), None);
    }

    #[test]
    fn macro_f1_counts_rare_classes_fully() {
        let scores = |confusion| Scores { confusion, ..Scores::default() };
        // F1 of the first class: precision 3/3, recall 3/4; of the second: 4/5 and 4/4; the third does not occur.
        let matrix = vec![vec![3, 1, 0], vec![0, 4, 0], vec![0, 0, 0]];
        let f1 = scores(Some(matrix)).macro_f1().unwrap();
        assert!((f1 - 0.5 * (6.0 / 7.0 + 8.0 / 9.0)).abs() < 1e-12, "{f1}");
        // Always the most frequent class: 90 % right, but useless for the other.
        let f1 = scores(Some(vec![vec![90, 0], vec![10, 0]])).macro_f1().unwrap();
        assert!((f1 - 0.5 * 180.0 / 190.0).abs() < 1e-12, "{f1}");
        assert_eq!(scores(None).macro_f1(), None);
        assert_eq!(scores(Some(vec![vec![0]])).macro_f1(), None);
    }
}
