//! What is known about a run, read from its directory.

use std::path::{Path, PathBuf};

use dss_format::TensorSpec;
use dss_nn::checkpoint::{self, CheckpointMeta};
use dss_train::answers::Answers;
use dss_train::config::Config;
use dss_train::environment::Environment;
use dss_train::run_dir::{EvalRecord, Record, RunDir, TrainRecord, TrainingState, read_metrics};

use crate::error::Result;

/// Everything the report shows.
pub(super) struct Run {
    /// The directory, as it was given.
    pub dir: String,
    /// Its own name.
    pub name: String,
    pub config: Config,
    pub train: Vec<TrainRecord>,
    pub val: Vec<EvalRecord>,
    pub test: Option<EvalRecord>,
    /// Those of the test that is shown.
    pub answers: Option<Answers>,
    pub state: Option<TrainingState>,
    pub environment: Option<Environment>,
    pub tensors: Vec<TensorSpec>,
    /// What the checkpoint says of itself.
    pub meta: Option<CheckpointMeta>,
    /// The model: the best one, or the last if there is no best one yet.
    pub checkpoint: Option<PathBuf>,
}

impl Run {
    /// Reads what is there; only `config.toml` must be.
    pub fn read(dir: &Path) -> Result<Self> {
        let files = RunDir::new(dir);
        let config = Config::from_run(dir)?;
        let mut run = Self {
            dir: dir.display().to_string(),
            name: dir
                .canonicalize()
                .ok()
                .and_then(|d| d.file_name().map(|n| n.to_string_lossy().into_owned()))
                .unwrap_or_else(|| dir.display().to_string()),
            config,
            train: Vec::new(),
            val: Vec::new(),
            test: None,
            answers: None,
            state: None,
            environment: Environment::read(dir)?,
            tensors: Vec::new(),
            meta: None,
            checkpoint: None,
        };
        if files.metrics().exists() {
            for record in read_metrics(&files.metrics())? {
                match record {
                    Record::Train(record) => run.train.push(record),
                    Record::Val(record) => run.val.push(record),
                    Record::Test(record) => run.test = Some(record),
                }
            }
        }
        // A resumed run is past the test that the answers are of.
        let tested = run.test.as_ref().map(|test| test.step);
        run.answers = Answers::read(dir)?.filter(|answers| Some(answers.step) == tested);
        let state = files.last().join("state.json");
        if state.exists() {
            run.state = Some(TrainingState::load(&state)?);
        }
        let checkpoints = [files.best(), files.last().join("model.safetensors")];
        if let Some(path) = checkpoints.iter().find(|p| p.exists()) {
            run.read_checkpoint(path);
        }
        Ok(run)
    }

    /// What the checkpoint says of its model.
    fn read_checkpoint(&mut self, path: &Path) {
        // A report of the curves does not fail for metadata that cannot be read.
        self.meta = checkpoint::load_meta(path).ok();
        if let Some(meta) = &self.meta {
            self.tensors = meta.model.tensors(&meta.io);
            self.tensors.sort_by(|a, b| natural(&a.name).cmp(&natural(&b.name)));
        }
        self.checkpoint = Some(path.to_owned());
    }

    /// Optimiser steps done, as far as the files tell.
    pub fn steps(&self) -> u64 {
        let of_train = self.train.last().map_or(0, |r| r.step);
        let of_val = self.val.last().map_or(0, |r| r.step);
        of_train.max(of_val).max(self.state.as_ref().map_or(0, |s| s.step))
    }

    /// The evaluation whose checkpoint is kept.
    pub fn best(&self) -> Option<&EvalRecord> {
        self.val.iter().rev().find(|r| r.best)
    }

    /// Seconds of work.
    pub fn seconds(&self) -> f64 {
        let train = self.train.last().map_or(0.0, |r| r.seconds);
        let val = self.val.last().map_or(0.0, |r| r.seconds);
        let test = self.test.as_ref().map_or(0.0, |r| r.seconds);
        train.max(val).max(test)
    }

    /// Peak memory in MB.
    pub fn peak_mb(&self) -> Option<f64> {
        let train = self.train.iter().filter_map(|r| r.peak_mb);
        let evals = self.val.iter().chain(&self.test).filter_map(|r| r.peak_mb);
        train.chain(evals).reduce(f64::max)
    }
}

/// A name with its numbers as numbers: `layers.10` comes after `layers.9`.
fn natural(name: &str) -> Vec<(u64, &str)> {
    name.split('.').map(|part| (part.parse().unwrap_or(u64::MAX), part)).collect()
}
