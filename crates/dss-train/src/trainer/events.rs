//! The events of a training, for progress bars, logs and programs.

use std::path::Path;

use serde::Serialize;
use serde_json::{Value, json};

use crate::scores::Scores;

/// Receives the events of a training: a progress bar, plain lines, JSON.
pub trait Observer: Send {
    /// Called for everything that happens.
    fn event(&mut self, event: &Event<'_>);
}

/// Nobody watches.
impl Observer for () {
    fn event(&mut self, _: &Event<'_>) {}
}

/// Which part of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// Chooses the checkpoint.
    Val,
    /// Gives the reported result.
    Test,
}

/// Something that happened in a training.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// The data are being generated or read; the text says how far it is.
    Loading(String),
    /// The data are loaded and the model is created or restored.
    Start {
        /// The run directory.
        run: &'a Path,
        /// The task's name.
        task: &'a str,
        /// Trained numbers of the model.
        parameters: usize,
        /// Examples of the training, validation and test sets.
        examples: [usize; 3],
        /// Optimiser steps of one pass over the training set.
        steps_per_epoch: u64,
        /// Optimiser steps of the whole run.
        total_steps: u64,
        /// Steps done before this process: not 0 if the run was resumed.
        done_steps: u64,
    },
    /// An optimiser step was made.
    Step {
        /// How many are done now.
        step: u64,
        /// Pass over the training set, from 1.
        epoch: u64,
        /// Mean loss of this step.
        loss: f64,
        /// Share of right classes of this step.
        accuracy: Option<f64>,
        /// Learning rate of everything but Λ, Δ and W.
        lr: f64,
        /// Global norm of the gradient before clipping.
        gradient_norm: f64,
        /// Sequences per second of this step.
        samples_per_s: f64,
    },
    /// A batch of an evaluation was scored.
    Evaluating {
        /// Of which set.
        split: Split,
        /// Examples done.
        done: usize,
        /// Examples in all.
        of: usize,
    },
    /// An evaluation ended.
    Eval {
        /// Step of the model that was evaluated.
        step: u64,
        /// Its pass over the training set, from 1.
        epoch: u64,
        /// On which set.
        split: Split,
        /// The scores.
        scores: &'a Scores,
        /// Whether it is the best one so far.
        best: bool,
    },
    /// The state was saved.
    Checkpoint {
        /// Step of the saved state.
        step: u64,
        /// Where.
        path: &'a Path,
    },
    /// Something worth a line.
    Note(String),
    /// The training ended.
    End(&'a Summary),
}

impl Event<'_> {
    /// As a JSON object, whose key `event` says what happened.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Loading(text) => json!({"event": "loading", "text": text}),
            Self::Start {
                run,
                task,
                parameters,
                examples,
                steps_per_epoch,
                total_steps,
                done_steps,
            } => json!({
                "event": "start", "run": run.display().to_string(), "task": task, "parameters": parameters,
                "examples": {"train": examples[0], "val": examples[1], "test": examples[2]},
                "steps_per_epoch": steps_per_epoch, "total_steps": total_steps, "done_steps": done_steps,
            }),
            Self::Step { step, epoch, loss, accuracy, lr, gradient_norm, samples_per_s } => json!({
                "event": "step", "step": step, "epoch": epoch, "loss": loss, "accuracy": accuracy, "lr": lr,
                "gradient_norm": gradient_norm, "samples_per_s": samples_per_s,
            }),
            Self::Evaluating { split, done, of } => {
                json!({"event": "evaluating", "split": split, "done": done, "of": of})
            }
            Self::Eval { step, epoch, split, scores, best } => json!({
                "event": "eval", "split": split, "step": step, "epoch": epoch, "scores": scores, "best": best,
            }),
            Self::Checkpoint { step, path } => {
                json!({"event": "checkpoint", "step": step, "path": path.display().to_string()})
            }
            Self::Note(text) => json!({"event": "note", "text": text}),
            Self::End(summary) => summary.to_json(),
        }
    }
}

/// How a training ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stopped {
    /// All steps were made.
    Finished,
    /// No better checkpoint for `early_stop` epochs.
    Early,
    /// The stop flag was set; `--resume` continues.
    Interrupted,
}

/// The result of a training.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The best checkpoint on the test set; `None` if the run was interrupted before.
    pub test: Option<Scores>,
    /// The best checkpoint on the validation set; `None` before the first evaluation.
    pub best_val: Option<Scores>,
    /// Its step.
    pub best_step: u64,
    /// Passes over the training set, the last one perhaps in part.
    pub epochs: u64,
    /// Optimiser steps.
    pub steps: u64,
    /// Seconds of work, those before a resume included.
    pub seconds: f64,
    /// Peak memory of this process in MB, where it is known.
    pub peak_mb: Option<f64>,
    /// Trained numbers of the model.
    pub parameters: usize,
    /// Steps after which some Δ_log was held at its bound.
    pub bounded_steps: u64,
    /// Whether the run was complete before it was resumed: nothing was trained, and the result is the stored one.
    pub was_complete: bool,
    /// How it ended.
    pub stopped: Stopped,
}

impl Summary {
    /// As the JSON object of [`Event::End`].
    pub fn to_json(&self) -> Value {
        let mut object = json!(self);
        object["event"] = "end".into();
        object
    }
}
