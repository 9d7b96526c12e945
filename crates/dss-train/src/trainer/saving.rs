//! Writing a training to disk: all of it into `last/`, the model alone into `best.safetensors`.

use std::path::Path;

use dss_nn::Model;
use dss_nn::checkpoint::{self, CheckpointMeta};

use super::carry;
use super::events::{Event, Observer};
use super::restoring::CONFIG;
use super::session::Session;
use super::target_units;
use crate::bridge;
use crate::error::{Error, Result};
use crate::run_dir::{atomic, sums};
use dss_format::encoder::ENCODER;

impl Session<'_> {
    /// Replaces `last/` by the present state: rank 0 does.
    pub(super) fn save(&mut self, observer: &mut dyn Observer) -> Result<()> {
        self.check_finite()?;
        self.metrics.sync()?;
        self.state.metrics_lines = self.metrics.lines();
        self.state.schedule = self.rates.state().clone();
        let path = self.run.last();
        if self.group.is_first() {
            self.write_last(&path)?;
        }
        self.saved_step = Some(self.state.step);
        self.clock.saved();
        self.clock.resume_rate();
        observer.event(&Event::Checkpoint { step: self.state.step, path: &path });
        Ok(())
    }

    /// Saves the state before a step or an evaluation that failed: it is whole on every rank. This process may be the one
    /// whose disk is full, so it tries, and the error that ends the run is the first one.
    pub(super) fn save_before(&mut self, error: &Error, observer: &mut dyn Observer) {
        if !matches!(error, Error::Lost { .. }) && self.saved_step != Some(self.state.step) {
            let _ = self.save(observer);
        }
    }

    fn write_last(&self, path: &Path) -> Result<()> {
        atomic::write_dir(path, |dir| {
            self.save_to_resume(&dir.join("model.safetensors"), &self.model)?;
            if let Some(average) = &self.average {
                self.save_to_resume(&dir.join("average.safetensors"), average)?;
            }
            self.optimiser.save(&dir.join("optimiser.safetensors"))?;
            // The streams begin again with the next epoch.
            if let Some(carry) = self.carry.as_ref().filter(|_| !self.epoch_ends()) {
                carry::save(&dir.join(carry::FILE), carry)?;
            }
            self.state.save(&dir.join("state.json"))?;
            let settings = self.config.to_annotated_toml();
            atomic::write_file(&dir.join(CONFIG), settings.as_bytes())?;
            sums::write(dir)
        })
    }

    /// Saves a model in training: to others it is one that answers in the units of the targets.
    fn save_to_resume(&self, path: &Path, model: &Model) -> Result<()> {
        let Some(scaling) = &self.state.target_scaling else { return self.save_model(path, model) };
        let mut meta = self.meta(model);
        target_units::keep_trained_head(&mut meta, model);
        let model = target_units::in_units_of_targets(model.clone(), Some(scaling))?;
        checkpoint::save(path, &model, &meta).map_err(Error::writing)
    }

    /// Saves a model whose answers are in the units of the targets.
    pub(super) fn save_model(&self, path: &Path, model: &Model) -> Result<()> {
        checkpoint::save(path, model, &self.meta(model)).map_err(Error::writing)
    }

    fn meta(&self, model: &Model) -> CheckpointMeta {
        let encoder = serde_json::to_string(&self.task.encoder).expect("an encoder is plain data");
        CheckpointMeta {
            task: serde_json::to_value(&self.config.task).expect("a task is plain data"),
            labels: bridge::labels(&self.task.spec).to_vec(),
            // The one that the run began with: an earlier version may have computed it.
            split_hash: self.state.split_hash.clone(),
            seed: self.config.train.seed,
            step: self.state.step,
            // `dss predict` reads new files as the training read its own.
            extra: [(ENCODER.to_owned(), encoder)].into(),
            ..model.meta()
        }
    }
}
