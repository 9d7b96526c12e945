//! What is counted while a model is scored.

use serde::{Deserialize, Serialize};

/// A confusion matrix is kept for at most this many classes.
pub const MAX_CONFUSION: usize = 128;

/// How well a model does on a set of examples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    /// Mean loss of all scored items: cross entropy in nats, or squared error.
    pub loss: f64,
    /// Share of scored items whose largest output is the right class; `None` for regression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<f64>,
    /// Mean squared error; `None` for classification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mse: Option<f64>,
    /// How many examples were seen.
    pub examples: usize,
    /// `confusion[true class][predicted class]`; `None` for regression and for many classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confusion: Option<Vec<Vec<u64>>>,
}

impl Scores {
    /// What checkpoints and plateaus are judged by, larger is better: the accuracy, or the negated error.
    pub fn score(&self) -> f64 {
        self.accuracy.unwrap_or(-self.loss)
    }
}

/// Sums from which [`Scores`] are made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tally {
    /// Sum of the losses of all scored items.
    pub loss: f64,
    /// Scored items: sequences, positions, or single numbers of a regression.
    pub scored: u64,
    /// Items whose class was found; stays 0 for regression.
    pub correct: u64,
    /// Sequences (or pairs of them).
    pub examples: u64,
}

impl Tally {
    /// Adds what another one counted.
    pub fn add(&mut self, other: &Tally) {
        self.loss += other.loss;
        self.scored += other.scored;
        self.correct += other.correct;
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

    /// The scores these sums mean.
    pub fn scores(&self, classes: bool, confusion: Option<Vec<Vec<u64>>>) -> Scores {
        let loss = self.mean_loss();
        Scores {
            loss,
            accuracy: classes.then(|| self.accuracy()),
            mse: (!classes).then_some(loss),
            examples: self.examples as usize,
            confusion,
        }
    }
}
