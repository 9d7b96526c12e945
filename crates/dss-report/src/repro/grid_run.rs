//! One run of a grid: a task, a model and a seed, in a run directory of its own.

use std::path::Path;

use dss_nn::checkpoint;
use dss_train::Scores;
use dss_train::config::Config;
use dss_train::run_dir::{self, Record, RunDir, TrainingState, read_metrics};

use super::models::GridModel;
use crate::error::Result;

/// A run of the grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GridRun {
    /// The task.
    pub task: String,
    /// The model.
    pub model: &'static GridModel,
    /// The seed.
    pub seed: u64,
}

impl GridRun {
    /// The name of its run directory.
    pub fn name(&self) -> String {
        format!("{}-{}-{}", self.task, self.model.name, self.seed)
    }
}

/// How far a run is.
#[derive(Clone, Debug, PartialEq)]
pub enum RunStatus {
    /// It has not begun.
    Waiting,
    /// It can be continued.
    Begun {
        /// Optimiser steps done, as far as they are saved.
        steps: u64,
    },
    /// It is complete.
    Done(Box<RunOutcome>),
    /// It ended with an error, or cannot be continued.
    Failed {
        /// What went wrong.
        error: String,
    },
}

impl RunStatus {
    /// In a word or two. `skipped`: whether the task has no data.
    pub fn name(&self, skipped: bool) -> &'static str {
        match self {
            Self::Done(_) => "done",
            Self::Failed { .. } => "failed",
            Self::Begun { .. } | Self::Waiting if skipped => "no data",
            Self::Begun { .. } => "begun",
            Self::Waiting => "waiting",
        }
    }
}

/// The result of a complete run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunOutcome {
    /// The best checkpoint on the test set.
    pub test: Scores,
    /// Optimiser steps.
    pub steps: u64,
    /// Seconds of work.
    pub seconds: f64,
    /// The most memory in MB while it ran, if the system tells.
    pub peak_mb: Option<f64>,
    /// Trained numbers of the model.
    pub parameters: usize,
    /// L, if the checkpoint is still there.
    pub length: Option<usize>,
}

/// What the directory of a run says. `config`: what the run should be, if that is known yet.
pub(super) fn read_status(dir: &Path, config: Option<&Config>) -> Result<RunStatus> {
    let run = RunDir::new(dir);
    if !run.config().exists() {
        return Ok(RunStatus::Waiting);
    }
    if let Some(config) = config {
        let keys = run_dir::differences(&Config::from_run(dir)?, config);
        if !keys.is_empty() {
            return Err(dss_train::Error::ConfigDiffers { dir: dir.into(), keys }.into());
        }
    }
    let file = run.last().join("state.json");
    if !file.exists() {
        return Ok(RunStatus::Begun { steps: 0 });
    }
    let state = TrainingState::load(&file)?;
    let records = if run.metrics().exists() { read_metrics(&run.metrics())? } else { Vec::new() };
    let peaks = records.iter().filter_map(|record| match record {
        Record::Train(record) => record.peak_mb,
        Record::Val(record) | Record::Test(record) => record.peak_mb,
    });
    let peak_mb = peaks.reduce(f64::max);
    let test = records.into_iter().find_map(|record| match record {
        Record::Test(record) => Some(record),
        Record::Train(_) | Record::Val(_) => None,
    });
    Ok(match test {
        Some(test) => RunStatus::Done(Box::new(RunOutcome {
            test: test.scores,
            steps: state.step,
            seconds: test.seconds,
            peak_mb,
            parameters: state.parameters,
            length: checkpoint::load_meta(run.best()).ok().map(|meta| meta.io.len),
        })),
        None => RunStatus::Begun { steps: state.step },
    })
}
