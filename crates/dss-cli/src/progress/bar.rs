//! A progress bar on a terminal.

use std::time::Duration;

use dss_train::{Event, Observer, Split};
use indicatif::ProgressBar;

use super::{RunningMean, style};
use crate::text;

/// The bar, and the means it shows.
pub struct Bar {
    bar: ProgressBar,
    epochs: u64,
    loss: RunningMean,
    accuracy: RunningMean,
    speed: RunningMean,
}

impl Bar {
    pub fn new() -> Self {
        let bar = super::loading();
        bar.enable_steady_tick(Duration::from_millis(200));
        Self {
            bar,
            epochs: 0,
            loss: RunningMean::default(),
            accuracy: RunningMean::default(),
            speed: RunningMean::default(),
        }
    }
}

impl Observer for Bar {
    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Loading(what) => self.bar.set_message(text::printable(what).into_owned()),
            Event::Start {
                task,
                parameters,
                examples,
                steps_per_epoch,
                total_steps,
                done_steps,
                ..
            } => {
                self.bar.println(super::start(
                    task,
                    *parameters,
                    *examples,
                    *total_steps,
                    *done_steps,
                ));
                self.epochs = total_steps.div_ceil((*steps_per_epoch).max(1));
                self.bar.set_style(style("{bar:8} {pos}/{len}  {eta} left  {wide_msg}"));
                self.bar.set_length(*total_steps);
                self.bar.set_position(*done_steps);
                self.bar.reset_eta();
            }
            Event::Step { step, epoch, loss, accuracy, samples_per_s, .. } => {
                let loss = text::number(self.loss.add(*loss));
                let speed = self.speed.add(*samples_per_s);
                let accuracy = match accuracy {
                    Some(value) => format!("  acc {:.1} %", 100.0 * self.accuracy.add(*value)),
                    None => String::new(),
                };
                let epochs = self.epochs;
                self.bar.set_message(format!(
                    "epoch {epoch}/{epochs}  loss {loss}{accuracy}  {speed:.0} seq/s"
                ));
                self.bar.set_position(*step);
            }
            Event::Evaluating { split, done, of } => {
                let name = if *split == Split::Val { "validating" } else { "testing" };
                self.bar.set_message(format!("{name} {done}/{of}"));
            }
            Event::Eval { step, epoch, split, scores, best } => {
                self.bar.println(super::evaluation(*epoch, *step, *split, scores, *best));
            }
            Event::Note(note) => self.bar.println(text::printable(note)),
            Event::Checkpoint { .. } => {}
            Event::End(_) => self.bar.finish_and_clear(),
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
