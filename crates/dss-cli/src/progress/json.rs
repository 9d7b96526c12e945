//! One JSON object per event on standard output.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dss_train::{Event, Observer, Split, Stopped, Summary};
use serde_json::{Value, json};

use super::WriteError;
use crate::output;

/// Writes events; asks for an orderly end when they cannot be written any more.
pub struct Json {
    stop: Arc<AtomicBool>,
    lost: WriteError,
}

impl Json {
    pub fn new(stop: Arc<AtomicBool>, lost: WriteError) -> Self {
        Self { stop, lost }
    }
}

impl Observer for Json {
    fn event(&mut self, event: &Event<'_>) {
        if let Some(value) = object(event)
            && let Err(error) = output::json(&value)
        {
            // The first failure is the one to report.
            let _ = self.lost.set(error);
            self.stop.store(true, Ordering::SeqCst);
        }
    }
}

fn object(event: &Event<'_>) -> Option<Value> {
    Some(match event {
        Event::Loading(text) => json!({"event": "loading", "text": text}),
        Event::Start {
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
        Event::Step { step, epoch, loss, accuracy, lr, gradient_norm, samples_per_s } => json!({
            "event": "step", "step": step, "epoch": epoch, "loss": loss, "accuracy": accuracy, "lr": lr,
            "gradient_norm": gradient_norm, "samples_per_s": samples_per_s,
        }),
        Event::Eval { step, epoch, split, scores, best } => json!({
            "event": "eval", "split": if *split == Split::Val { "val" } else { "test" },
            "step": step, "epoch": epoch, "scores": scores, "best": best,
        }),
        Event::Checkpoint { step, path } => {
            json!({"event": "checkpoint", "step": step, "path": path.display().to_string()})
        }
        Event::Note(text) => json!({"event": "note", "text": text}),
        Event::End(summary) => end(summary),
        Event::Evaluating { .. } => return None,
    })
}

fn end(summary: &Summary) -> Value {
    let stopped = match summary.stopped {
        Stopped::Finished => "finished",
        Stopped::Early => "early",
        Stopped::Interrupted => "interrupted",
    };
    json!({
        "event": "end", "stopped": stopped, "test": summary.test, "best_val": summary.best_val,
        "best_step": summary.best_step, "epochs": summary.epochs, "steps": summary.steps,
        "seconds": summary.seconds, "peak_mb": summary.peak_mb, "parameters": summary.parameters,
        "bounded_steps": summary.bounded_steps, "was_complete": summary.was_complete,
    })
}
