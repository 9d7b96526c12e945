//! Plain lines on standard error, for logs.

use std::time::{Duration, Instant};

use dss_train::{Event, Observer};

use super::Smoothed;
use crate::{output, text};

/// A line every so often, besides those of evaluations.
const EVERY: Duration = Duration::from_secs(10);

pub struct Lines {
    last: Instant,
    total: u64,
    loss: Smoothed,
    accuracy: Smoothed,
    speed: Smoothed,
}

impl Lines {
    pub fn new() -> Self {
        Self {
            last: Instant::now(),
            total: 0,
            loss: Smoothed::default(),
            accuracy: Smoothed::default(),
            speed: Smoothed::default(),
        }
    }
}

impl Observer for Lines {
    fn event(&mut self, event: &Event<'_>) {
        let line = match event {
            Event::Loading(text) => {
                if self.last.elapsed() < EVERY {
                    return;
                }
                self.last = Instant::now();
                text.clone()
            }
            Event::Start { task, parameters, examples, total_steps, done_steps, .. } => {
                self.total = *total_steps;
                super::start(task, *parameters, *examples, *total_steps, *done_steps)
            }
            Event::Step { step, epoch, loss, accuracy, samples_per_s, .. } => {
                let loss = self.loss.add(*loss);
                let accuracy = accuracy.map(|value| self.accuracy.add(value));
                let speed = self.speed.add(*samples_per_s);
                if self.last.elapsed() < EVERY {
                    return;
                }
                self.last = Instant::now();
                let accuracy = accuracy.map(|a| format!("  accuracy {:.1} %", 100.0 * a));
                format!(
                    "epoch {epoch:>3}  step {step:>6}/{}  loss {}{}  {speed:.1} sequences/s{}",
                    self.total,
                    text::number(loss),
                    accuracy.unwrap_or_default(),
                    peak(),
                )
            }
            Event::Eval { step, epoch, split, scores, best } => {
                super::evaluation(*epoch, *step, *split, scores, *best)
            }
            Event::Note(text) => text.clone(),
            Event::Evaluating { .. } | Event::Checkpoint { .. } | Event::End(_) => return,
        };
        output::log_line(line);
    }
}

fn peak() -> String {
    dss_train::memory::peak_mb().map(|mb| format!("  peak {mb:.0} MB")).unwrap_or_default()
}
