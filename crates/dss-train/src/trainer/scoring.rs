//! Evaluations of a training: on the validation set as it goes, on the test set at the end.

use dss_nn::{Model, checkpoint};

use super::events::{Event, Observer, Split};
use super::joining;
use super::recalibrate::recalibrated;
use super::session::Session;
use super::target_units;
use crate::answers::Collector;
use crate::error::{Error, Result};
use crate::evaluate::{ScoredBatch, evaluate_shared};
use crate::memory::peak_mb;
use crate::run_dir::{BestResult, EvalRecord, Record};
use crate::scores::Scores;

impl Session<'_> {
    /// Evaluates on the validation set and keeps the best model. Returns false if `stop` ended it early. An error of
    /// the measurement leaves the state as it was, and it is saved; after a NaN, which a resumed run would meet again,
    /// the save before it stays.
    pub(super) fn validate(
        &mut self,
        observer: &mut dyn Observer,
        stop: &dyn Fn() -> bool,
    ) -> Result<bool> {
        self.check_finite()?;
        joining::compare_weights(&self.group, &self.model)?;
        let measured = self.measured(observer, stop);
        let measured = measured.inspect_err(|error| self.save_before(error, observer))?;
        let Some((model, scores)) = measured else { return Ok(false) };
        let (epoch, step) = (self.state.epoch(), self.state.step);
        if !scores.loss.is_finite() {
            let what = format!("the validation loss is {}", scores.loss);
            return Err(self.bad(self.state.step, &what, None));
        }
        let score = scores.score();
        let beaten = BestResult::beaten(self.state.best.as_ref(), step, &scores);
        let best = beaten.is_some();
        self.metrics.append(&Record::Val(self.eval_record(step, &scores, best)))?;
        if self.rates.observe(score) {
            let lr = self.rates.rate(self.config.train.lr, step);
            observer.event(&Event::Note(format!("step {step}: learning rate lowered to {lr:.3e}")));
        }
        observer.event(&Event::Eval { step, epoch, split: Split::Val, scores: &scores, best });
        if best {
            if self.group.is_first() {
                self.save_model(&self.run.best(), &model)?;
            }
            self.state.best = beaten;
        }
        self.state.evaluated_step = step;
        self.clock.resume_rate();
        Ok(true)
    }

    /// The model as it is evaluated, and its scores on the validation set. `None` if `stop` ended it early.
    fn measured(
        &self,
        observer: &mut dyn Observer,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<(Model, Scores)>> {
        let weights = self.average.as_ref().unwrap_or(&self.model);
        let (train, epoch, step) = (&self.config.train, self.state.epoch() - 1, self.state.step);
        let model = recalibrated(weights, train, self.task, epoch, step, &self.group, stop)?;
        let Some(model) = model else { return Ok(None) };
        let model = target_units::in_units_of_targets(model, self.state.target_scaling.as_ref())?;
        let scores = self.evaluate(Split::Val, &model, &mut |_| {}, observer, stop)?;
        Ok(scores.map(|scores| (model, scores)))
    }

    /// Evaluates the best model on the test set. `None` if `stop` ended it early.
    pub(super) fn test(
        &mut self,
        observer: &mut dyn Observer,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<EvalRecord>> {
        let (model, step) = self.best_model()?;
        let mut answers = Collector::new(self.task);
        let mut look = |scored: &ScoredBatch<'_>| {
            answers.add_batch(scored.first, scored.batch, scored.outputs);
        };
        let Some(scores) = self.evaluate(Split::Test, &model, &mut look, observer, stop)? else {
            return Ok(None);
        };
        if !scores.loss.is_finite() {
            return Err(self.bad(step, &format!("the test loss is {}", scores.loss), None));
        }
        let answers = answers.gathered(&self.group)?;
        if self.group.is_first() {
            answers.finish(step)?.write(self.run.root())?;
        }
        let record = self.eval_record(step, &scores, true);
        let record = self.keep_test(record)?;
        observer.event(&Event::Eval {
            step,
            epoch: record.epoch,
            split: Split::Test,
            scores: &record.scores,
            best: true,
        });
        Ok(Some(record))
    }

    /// The best model and its step: rank 0 reads it for all.
    fn best_model(&self) -> Result<(Model, u64)> {
        let read = || {
            let (model, meta) = checkpoint::load(self.run.best(), &self.device)?;
            // A newer one than the state knew of was not reached again, because settings have changed.
            if let Some(best) = self.state.best.as_ref().filter(|best| best.step != meta.step) {
                let (found, best) = (meta.step, best.step);
                let what = format!("it is of step {found}, but must be of step {best}");
                return Err(Error::NoBest { path: self.run.best(), what });
            }
            Ok((model, meta.step))
        };
        if self.group.size() == 1 {
            return read();
        }
        let found = self.group.is_first().then(read).transpose();
        let agreed = self.group.agree_with(found, false, 0)?;
        let (model, step) = agreed.value.unwrap_or_else(|| (self.model.clone(), 0));
        let step = self.group.gather_lists(vec![step])?[0][0];
        Ok((joining::shared_model(&self.group, model)?, step))
    }

    /// Ends the metrics with a result on the test set.
    pub(super) fn keep_test(&mut self, record: EvalRecord) -> Result<EvalRecord> {
        self.metrics.append(&Record::Test(record.clone()))?;
        self.metrics.sync()?;
        Ok(record)
    }

    fn evaluate(
        &self,
        split: Split,
        model: &Model,
        look: &mut dyn FnMut(&ScoredBatch<'_>),
        observer: &mut dyn Observer,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Scores>> {
        let dataset = match split {
            Split::Val => &self.task.val,
            Split::Test => &self.task.test,
        };
        let batch = self.config.train.evaluation_batch();
        let of = dataset.len();
        evaluate_shared(model, dataset, &self.task.spec, batch, &self.group, &mut |scored| {
            look(scored);
            let done = scored.done;
            observer.event(&Event::Evaluating { split, done, of });
            done >= of || !stop()
        })
    }

    fn eval_record(&self, step: u64, scores: &Scores, best: bool) -> EvalRecord {
        EvalRecord {
            step,
            epoch: self.state.epoch_of(step),
            scores: scores.clone(),
            best,
            seconds: self.clock.seconds(),
            peak_mb: peak_mb(),
        }
    }
}
