//! A training in progress: the model, its optimiser, how far the run is, and its directory.

use std::path::Path;
use std::time::Instant;

use burn::tensor::{DType, Device};
use dss_data::{Batch, Task};
use dss_nn::{Carry, DropoutKey, Model};

use super::clock::Clock;
use super::events::{Event, Observer, Stopped, Summary};
use super::restoring::{self, SavedTraining};
use super::shards::scaled_gradients;
use super::{average, step, transfer, watch};
use crate::bridge;
use crate::config::{Config, TrainConfig};
use crate::error::Result;
use crate::group::Group;
use crate::memory::peak_mb;
use crate::optimiser::{AdamW, Depth, Rates};
use crate::run_dir::{EvalRecord, Metrics, Record, RunDir, TrainRecord, TrainingState};
use crate::schedule::LearningRate;
use crate::scores::Measure;

/// Training lines of `metrics.jsonl` per epoch, if it has that many steps.
const LINES_PER_EPOCH: u64 = 100;

pub(super) struct Session<'a> {
    pub(super) config: &'a Config,
    pub(super) task: &'a Task,
    pub(super) run: &'a RunDir,
    pub(super) device: Device,
    pub(super) model: Model,
    pub(super) optimiser: AdamW,
    pub(super) rates: LearningRate,
    pub(super) state: TrainingState,
    pub(super) metrics: Metrics,
    pub(super) clock: Clock,
    /// The average of the weights; none unless `train.average`.
    pub(super) average: Option<Model>,
    /// What the streams left behind; none unless `train.carry`.
    pub(super) carry: Option<Carry>,
    /// Step of the state in `last/`.
    pub(super) saved_step: Option<u64>,
    /// The ranks that train together.
    pub(super) group: Group,
}

impl<'a> Session<'a> {
    /// A new run: fresh weights, and at once everything on disk.
    pub(super) fn start(
        config: &'a Config,
        task: &'a Task,
        run: &'a RunDir,
        device: &Device,
        clock: Clock,
        observer: &mut dyn Observer,
    ) -> Result<Self> {
        let mut session = Self::blank(config, task, run, device, clock)?;
        if !config.train.from.is_empty() {
            let from = Path::new(&config.train.from);
            session.model = transfer::started_from(session.model, from, task, device, observer)?;
            session.average = session.average.map(|_| session.model.clone());
        }
        session.metrics =
            Metrics::open(&run.metrics(), 0)?.with_events(config.train.tensorboard)?;
        run.write_config(config)?;
        session.save(&mut ())?;
        Ok(session)
    }

    /// A new run of which nothing is on disk, with random weights.
    pub(super) fn blank(
        config: &'a Config,
        task: &'a Task,
        run: &'a RunDir,
        device: &Device,
        clock: Clock,
    ) -> Result<Self> {
        let model = Model::new(&config.model, &bridge::io(&task.spec), config.train.seed, device)?;
        let state = TrainingState {
            steps_per_epoch: config.train.steps_per_epoch(task.train.len()),
            parameters: trained(&model),
            split_hash: task.split_hash.clone(),
            target_scaling: task.target_scaling.clone(),
            ..TrainingState::default()
        };
        Ok(Self {
            average: (config.train.average > 0.0).then(|| model.clone()),
            rates: rates(config, &state),
            optimiser: AdamW::default().with_depth(depth(config)),
            device: device.clone(),
            saved_step: None,
            config,
            task,
            run,
            model,
            state,
            metrics: Metrics::unwritten(0),
            clock,
            carry: None,
            group: Group::alone(),
        })
    }

    /// A run resumed from `last/`.
    pub(super) fn restore(
        config: &'a Config,
        task: &'a Task,
        run: &'a RunDir,
        device: &Device,
        mut clock: Clock,
        observer: &mut dyn Observer,
    ) -> Result<Self> {
        let SavedTraining { state, model, average, optimiser, carry } =
            SavedTraining::newest(config, task, run, device, observer)?;
        restoring::check_best(config, &state, &run.best(), device)?;
        let metrics = Metrics::open(&run.metrics(), state.metrics_lines)?
            .with_events(config.train.tensorboard)?;
        clock.continue_from(metrics.seconds());
        run.write_config(config)?;
        Ok(Self {
            rates: rates(config, &state).with_state(state.schedule.clone()),
            device: device.clone(),
            saved_step: Some(state.step),
            config,
            task,
            run,
            model,
            average,
            optimiser: optimiser.with_depth(depth(config)),
            state,
            metrics,
            clock,
            carry,
            group: Group::alone(),
        })
    }

    /// Optimiser steps of the whole run.
    pub(super) fn total_steps(&self) -> u64 {
        self.config.train.total_steps(self.state.steps_per_epoch)
    }

    /// One optimiser step on micro-batches that count as one batch, with `total` scored items; of several shards,
    /// `micro` are those of this rank.
    pub(super) fn step(
        &mut self,
        micro: &[Batch],
        total: u64,
        observer: &mut dyn Observer,
    ) -> Result<()> {
        let train = &self.config.train;
        let begin = Instant::now();
        if train.carry && self.epoch_ends() {
            self.carry = Some(Carry::new(&self.model, train.batch)?);
        }
        let (seed, step) = (train.seed, self.state.step);
        let (model, shards) = (&self.model, train.shards);
        let scaling = self.state.target_scaling.as_ref();
        let found = if shards == 1 {
            let first = DropoutKey { seed, step, micro: 0 };
            step::part_gradients(
                model,
                micro,
                first,
                total,
                DType::F32,
                scaling,
                self.carry.as_mut(),
            )?
        } else {
            let (of_shard, group) = (train.accumulate, &self.group);
            scaled_gradients(model, micro, shards, of_shard, total, seed, step, scaling, group)?
        };
        let loss = found.tally.mean_loss();
        if !loss.is_finite() {
            return Err(self.bad(self.state.step + 1, &format!("the loss is {loss}"), None));
        }
        if let Some(what) = watch::bad_statistic(&found.stats) {
            return Err(self.bad(self.state.step + 1, &what, None));
        }
        let norm = found.gradients.norm();
        if !norm.is_finite() {
            let what = format!("the loss is {loss}, but the gradient's norm is {norm}");
            return Err(self.bad(self.state.step + 1, &what, found.gradients.first_bad()));
        }
        let scale = if train.clip > 0.0 { (train.clip / (norm + 1e-6)).min(1.0) } else { 1.0 };
        let rate = |base| self.rates.rate(base, self.state.step);
        let rates = Rates {
            lambda: rate(train.lr_lambda),
            delta: rate(train.lr_delta),
            w: rate(train.lr_w),
            other: rate(train.lr),
            weight_decay: train.weight_decay,
            beta2: train.beta2,
            eps: train.eps,
        };
        let model = self.model.clone();
        let (mut model, update) =
            self.optimiser.step(model, &found.gradients, scale, &rates, train.delta_log_bound);
        for stats in &found.stats {
            model = model.update_stats(stats);
        }
        self.model = model;
        self.average = self
            .average
            .take()
            .map(|average| average::towards(average, &self.model, train.average, self.state.step));
        self.state.step += 1;
        self.state.window.add(&found.tally);
        self.clock.count(found.tally.examples);
        if let Some((name, count)) = update.bounded.first() {
            if self.state.bounded_steps == 0 {
                let bound = train.delta_log_bound;
                observer.event(&Event::Note(format!(
                    "step {}: {count} entries of `{name}` reached the bound |Δ_log| ≤ {bound}",
                    self.state.step
                )));
            }
            self.state.bounded_steps += 1;
        }
        observer.event(&Event::Step {
            step: self.state.step,
            epoch: self.state.epoch(),
            loss,
            accuracy: self.by_accuracy().then(|| found.tally.accuracy()),
            lr: rates.other,
            gradient_norm: norm,
            samples_per_s: found.tally.examples as f64 / begin.elapsed().as_secs_f64().max(1e-9),
        });
        let every = (self.state.steps_per_epoch / LINES_PER_EPOCH).max(1);
        if self.state.step.is_multiple_of(every) || self.evaluation_due() || self.epoch_ends() {
            self.log(rates.other)?;
        }
        Ok(())
    }

    /// Writes the training line of the steps since the last one.
    fn log(&mut self, lr: f64) -> Result<()> {
        let window = std::mem::take(&mut self.state.window);
        self.metrics.append(&Record::Train(TrainRecord {
            step: self.state.step,
            epoch: self.state.epoch(),
            loss: window.mean_loss(),
            accuracy: self.by_accuracy().then(|| window.accuracy()),
            lr,
            samples_per_s: self.clock.rate(),
            seconds: self.clock.seconds(),
            peak_mb: peak_mb(),
        }))
    }

    /// Whether the model as it is now must be evaluated before the next step.
    pub(super) fn evaluation_due(&self) -> bool {
        let step = self.state.step;
        let every = match self.config.train.eval_every {
            0 => self.config.train.steps_per_round(self.state.steps_per_epoch),
            every => every,
        };
        step > 0
            && self.state.evaluated_step != step
            && (step.is_multiple_of(every) || step >= self.total_steps())
    }

    /// Whether the last step was the last one of its epoch.
    pub(super) fn epoch_ends(&self) -> bool {
        self.state.step.is_multiple_of(self.state.steps_per_epoch)
    }

    /// Whether it is time to save: at the end of an epoch, or where epochs are so short that several count as one, of
    /// those.
    pub(super) fn save_due(&self) -> bool {
        let round = self.config.train.steps_per_round(self.state.steps_per_epoch);
        self.state.step.is_multiple_of(round)
            || self.clock.save_due(self.config.train.checkpoint_seconds)
    }

    /// Whether the validation score has not risen for `train.early_stop` rounds.
    pub(super) fn stalled(&self) -> bool {
        let train = &self.config.train;
        let round = train.steps_per_round(self.state.steps_per_epoch);
        let limit = (train.early_stop as u64).saturating_mul(round);
        let best = self.state.best.as_ref().map(|best| best.step);
        limit > 0
            && best.is_some_and(|step| self.state.evaluated_step >= step.saturating_add(limit))
    }

    /// Whether the share of right classes counts.
    fn by_accuracy(&self) -> bool {
        Measure::for_target(&self.task.spec.target) == Measure::Accuracy
    }

    /// Says that the training begins.
    pub(super) fn announce(&self, observer: &mut dyn Observer) {
        observer.event(&Event::Start {
            run: self.run.root(),
            task: &self.task.spec.name,
            parameters: self.state.parameters,
            examples: [self.task.train.len(), self.task.val.len(), self.task.test.len()],
            steps_per_epoch: self.state.steps_per_epoch,
            total_steps: self.total_steps(),
            done_steps: self.state.step,
        });
    }

    /// The result of the training; once there is a test, its time and memory are those that were stored with it.
    pub(super) fn summary(&self, stopped: Stopped, test: Option<EvalRecord>) -> Summary {
        let best = self.state.best.clone();
        let now = || (self.clock.seconds(), peak_mb());
        let (seconds, peak_mb) = test.as_ref().map_or_else(now, |t| (t.seconds, t.peak_mb));
        Summary {
            test: test.map(|record| record.scores),
            best_step: best.as_ref().map_or(0, |best| best.step),
            best_val: best.map(|best| best.scores),
            epochs: self.state.epoch(),
            steps: self.state.step,
            seconds,
            peak_mb,
            parameters: self.state.parameters,
            bounded_steps: self.state.bounded_steps,
            was_complete: false,
            stopped,
        }
    }
}

/// Which parameters are trained, and how fast.
fn depth(config: &Config) -> Depth {
    let TrainConfig { freeze: frozen, depth_factor: factor, .. } = config.train;
    Depth { layers: config.model.layers, frozen, factor }
}

/// Trained numbers of a model.
fn trained(model: &Model) -> usize {
    let all = model.parameters();
    all.iter().filter(|p| p.trained).map(|p| p.shape.iter().product::<usize>()).sum()
}

/// The schedule of the whole run, at its beginning.
fn rates(config: &Config, state: &TrainingState) -> LearningRate {
    LearningRate::new(&config.train, config.train.total_steps(state.steps_per_epoch))
}
