//! Plain lines on standard error, for logs.

use std::time::{Duration, Instant};

use dss_train::text::duration;
use dss_train::{Event, Observer};

use super::RunningMean;
use crate::{output, text};

/// A line every so often, besides those of evaluations.
const EVERY: Duration = Duration::from_secs(10);

pub struct Lines {
    last: Instant,
    /// When the training began, after how many steps, and how many there will be.
    start: Instant,
    done: u64,
    total: u64,
    loss: RunningMean,
    accuracy: RunningMean,
    speed: RunningMean,
}

impl Lines {
    pub fn new() -> Self {
        Self {
            last: Instant::now(),
            start: Instant::now(),
            done: 0,
            total: 0,
            loss: RunningMean::default(),
            accuracy: RunningMean::default(),
            speed: RunningMean::default(),
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
                (self.start, self.done, self.total) = (Instant::now(), *done_steps, *total_steps);
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
                    "epoch {epoch:>3}  step {step:>6}/{}  loss {}{}  {speed:.1} sequences/s  {} left{}",
                    self.total,
                    text::number(loss),
                    accuracy.unwrap_or_default(),
                    duration(self.seconds_left(*step)),
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

impl Lines {
    /// As long as it took so far, evaluations included, for the steps that are left.
    fn seconds_left(&self, step: u64) -> f64 {
        let per_step = self.start.elapsed().as_secs_f64() / (step - self.done).max(1) as f64;
        per_step * self.total.saturating_sub(step) as f64
    }
}

fn peak() -> String {
    dss_train::memory::peak_mb().map(|mb| format!("  peak {mb:.0} MB")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_by_the_steps_of_this_process() {
        let mut lines = Lines::new();
        lines.start -= Duration::from_secs(10);
        (lines.done, lines.total) = (100, 200);
        let left = lines.seconds_left(120);
        assert!((40.0..41.0).contains(&left), "{left}");
        assert_eq!(lines.seconds_left(200), 0.0);
    }
}
