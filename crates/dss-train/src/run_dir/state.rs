//! `last/state.json`: how far a run is.

use std::path::Path;

use dss_data::TargetScaling;
use serde::{Deserialize, Serialize};

use super::atomic;
use crate::error::{Error, Result};
use crate::schedule::ScheduleState;
use crate::scores::{Scores, Tally};

/// Everything besides weights and moments that a run needs to be resumed.
///
/// There is no state of random numbers: the order of the examples follows from (seed, epoch), dropout from
/// (seed, step, micro-batch).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainingState {
    /// Optimiser steps done.
    pub step: u64,
    /// Optimiser steps of one pass over the training set.
    pub steps_per_epoch: u64,
    /// The best validation score so far.
    pub best: Option<BestResult>,
    /// Step of the last evaluation.
    pub evaluated_step: u64,
    /// What the learning-rate schedule remembers.
    pub schedule: ScheduleState,
    /// Sums since the last training line of `metrics.jsonl`.
    pub window: Tally,
    /// Lines of `metrics.jsonl` that belong to this state.
    pub metrics_lines: u64,
    /// Steps after which some Δ_log was held at its bound.
    pub bounded_steps: u64,
    /// Trained numbers of the model.
    pub parameters: usize,
    /// Hash of the data splits.
    pub split_hash: String,
    /// What the model learns to predict of the targets; none: the targets as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_scaling: Option<TargetScaling>,
}

/// A best validation result. Files of version 0.1 have a field more, which does not matter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BestResult {
    /// After how many optimiser steps.
    pub step: u64,
    /// What came out.
    pub scores: Scores,
}

impl BestResult {
    /// The new best after an evaluation at `step`, if there is one: a higher score, or the same one with a lower loss.
    pub(crate) fn beaten(best: Option<&Self>, step: u64, scores: &Scores) -> Option<Self> {
        let rank = |scores: &Scores| (scores.score(), -scores.loss);
        let is_best = best.is_none_or(|best| rank(scores) > rank(&best.scores));
        is_best.then(|| Self { step, scores: scores.clone() })
    }
}

impl TrainingState {
    /// Which pass over the training set the last step belongs to, from 1.
    pub fn epoch(&self) -> u64 {
        self.epoch_of(self.step)
    }

    /// Which pass over the training set step `step` (from 1) belongs to, from 1.
    pub fn epoch_of(&self, step: u64) -> u64 {
        step.saturating_sub(1) / self.steps_per_epoch.max(1) + 1
    }

    /// Reads `state.json`.
    pub fn load(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(Error::io("cannot read", path))?;
        serde_json::from_str(&text)
            .map_err(|error| Error::Damaged { path: path.into(), what: error.to_string() })
    }

    /// Writes `state.json`.
    pub(crate) fn save(&self, path: &Path) -> Result<()> {
        let mut text = serde_json::to_vec_pretty(self).expect("a state is plain data");
        text.push(b'\n');
        atomic::write_file(path, &text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(accuracy: f64, loss: f64) -> Scores {
        Scores { loss, accuracy: Some(accuracy), examples: 10, ..Scores::default() }
    }

    #[test]
    fn of_equal_scores_the_lower_loss_is_best() {
        let first = BestResult::beaten(None, 5, &scores(0.5, 2.0)).unwrap();
        assert_eq!(BestResult::beaten(Some(&first), 10, &scores(0.5, 2.0)), None);
        assert_eq!(BestResult::beaten(Some(&first), 10, &scores(0.4, 1.0)), None);
        let tied = BestResult::beaten(Some(&first), 10, &scores(0.5, 1.5)).unwrap();
        assert_eq!((tied.step, tied.scores.loss), (10, 1.5));
        assert_eq!(BestResult::beaten(Some(&tied), 15, &scores(0.5, 1.75)), None);
        let higher = BestResult::beaten(Some(&tied), 20, &scores(0.6, 3.0)).unwrap();
        assert_eq!(higher.step, 20);
        let mut stored = serde_json::to_value(&tied).unwrap();
        stored["first"] = 5.into();
        assert_eq!(serde_json::from_value::<BestResult>(stored).unwrap(), tied);
    }
}
