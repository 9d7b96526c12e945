//! Evaluations of a training: on the validation set as it goes, on the test set at the end.

use dss_nn::{Model, checkpoint};

use super::events::{Event, Observer, Split};
use super::session::Session;
use crate::error::{Error, Result};
use crate::evaluate::evaluate_while;
use crate::memory::peak_mb;
use crate::run_dir::{Best, EvalRecord, Record};
use crate::scores::Scores;

impl Session<'_> {
    /// Evaluates on the validation set and keeps the best model. Returns false if `stop` ended it early.
    pub(super) fn validate(
        &mut self,
        observer: &mut dyn Observer,
        stop: &dyn Fn() -> bool,
    ) -> Result<bool> {
        self.check_finite()?;
        let Some(scores) = self.evaluate(Split::Val, &self.model, observer, stop)? else {
            return Ok(false);
        };
        if !scores.loss.is_finite() {
            let what = format!("the validation loss is {}", scores.loss);
            return Err(self.bad(self.state.step, &what, None));
        }
        let (step, score) = (self.state.step, scores.score());
        let beaten = Best::beaten(self.state.best.as_ref(), step, &scores);
        let best = beaten.is_some();
        self.metrics.append(&Record::Val(self.eval_record(step, &scores, best)))?;
        if self.rates.observe(score) {
            let lr = self.rates.rate(self.config.train.lr, step);
            observer.event(&Event::Note(format!("step {step}: learning rate lowered to {lr:.3e}")));
        }
        let epoch = self.state.epoch();
        observer.event(&Event::Eval { step, epoch, split: Split::Val, scores: &scores, best });
        if best {
            self.save_model(&self.run.best())?;
            self.state.best = beaten;
        }
        self.state.evaluated_step = step;
        self.clock.resume_rate();
        Ok(true)
    }

    /// Evaluates the best model on the test set. `None` if `stop` ended it early.
    pub(super) fn test(
        &mut self,
        observer: &mut dyn Observer,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Scores>> {
        let (model, meta) = checkpoint::load(self.run.best(), &self.device)?;
        // A newer one than the state knew of was not reached again, because settings have changed.
        if let Some(best) = self.state.best.as_ref().filter(|best| best.step != meta.step) {
            let what = format!("it is of step {}, but must be of step {}", meta.step, best.step);
            return Err(Error::NoBest { path: self.run.best(), what });
        }
        let Some(scores) = self.evaluate(Split::Test, &model, observer, stop)? else {
            return Ok(None);
        };
        let step = meta.step;
        if !scores.loss.is_finite() {
            return Err(self.bad(step, &format!("the test loss is {}", scores.loss), None));
        }
        let record = self.eval_record(step, &scores, true);
        let epoch = record.epoch;
        self.metrics.append(&Record::Test(record))?;
        self.metrics.sync()?;
        observer.event(&Event::Eval {
            step,
            epoch,
            split: Split::Test,
            scores: &scores,
            best: true,
        });
        Ok(Some(scores))
    }

    fn evaluate(
        &self,
        split: Split,
        model: &Model,
        observer: &mut dyn Observer,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Scores>> {
        let dataset = match split {
            Split::Val => &self.task.val,
            Split::Test => &self.task.test,
        };
        let batch = self.config.train.evaluation_batch();
        let of = dataset.len();
        evaluate_while(model, dataset, &self.task.spec, batch, &mut |done| {
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
