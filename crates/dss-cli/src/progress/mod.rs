//! The progress of a training, for people and for programs.

mod bar;
mod json;
mod lines;
mod terminal;

use std::io::{self, IsTerminal, stderr};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use dss_train::text::plural;
use dss_train::{Event, Observer, Scores, Split};
use indicatif::{ProgressBar, ProgressStyle};

use crate::{interrupt, output, text};

/// Why events could not be written, if they could not.
pub type WriteError = Arc<OnceLock<io::Error>>;

/// JSON if asked for, a bar on a terminal, plain lines elsewhere; nothing if `quiet`.
///
/// JSON that cannot be written raises `stop` and leaves the reason in `lost`.
pub fn observer(
    json: bool,
    quiet: bool,
    stop: &Arc<AtomicBool>,
    lost: &WriteError,
) -> Box<dyn Observer> {
    let shown: Box<dyn Observer> = match (json, quiet) {
        (true, _) => Box::new(json::Json::new(stop.clone(), lost.clone())),
        (_, true) => Box::new(()),
        _ if stderr().is_terminal() => Box::new(bar::Bar::new()),
        _ => Box::new(lines::Lines::new()),
    };
    Box::new(Phases { stop: stop.clone(), shown })
}

/// Tells [`interrupt`] when data are being read.
struct Phases {
    stop: Arc<AtomicBool>,
    shown: Box<dyn Observer>,
}

impl Observer for Phases {
    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Loading(_) => interrupt::loading(true, &self.stop),
            Event::Start { .. } => interrupt::loading(false, &self.stop),
            _ => {}
        }
        self.shown.event(event);
    }
}

/// A line on a terminal that says how far the loading of data is; nothing elsewhere.
pub fn loading() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, terminal::target());
    bar.set_style(style("{spinner} {wide_msg}"));
    output::set_bar(&bar);
    bar
}

/// The look of a bar; `wide_msg` is cut where the terminal ends, with room for a `^C`.
pub fn style(template: &str) -> ProgressStyle {
    let template = format!("{template}   ");
    ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// `epoch   3  step   1200  val loss 0.5123  accuracy 72.10 %  best`
fn evaluation(epoch: u64, step: u64, split: Split, scores: &Scores, best: bool) -> String {
    let name = match split {
        Split::Val => "val",
        Split::Test => "test",
    };
    let loss = text::number(scores.loss);
    let mut line = format!("epoch {epoch:>3}  step {step:>6}  {name} loss {loss}");
    if scores.accuracy.is_some() {
        line += &format!("  accuracy {}", text::score(scores));
    }
    if let Some(bits) = scores.bits {
        line += &format!("  {} bits/token", text::number(bits));
    }
    if let Some(mae) = scores.mae {
        line += &format!("  mae {}", text::number(mae));
    }
    if best && split == Split::Val {
        line += "  best";
    }
    line
}

/// The model and the data of a training, in one line.
fn start(task: &str, parameters: usize, examples: [usize; 3], steps: u64, done: u64) -> String {
    let [train, val, test] = examples;
    let from = if done > 0 { format!(", resumed after step {done}") } else { String::new() };
    let steps = plural(steps, "step");
    format!(
        "{task}: {parameters} parameters, {train} / {val} / {test} examples (train / val / test), {steps}{from}"
    )
}

/// A mean in which the last few dozen steps count.
#[derive(Default)]
struct RunningMean {
    sum: f64,
    weight: f64,
}

impl RunningMean {
    fn add(&mut self, value: f64) -> f64 {
        const KEEP: f64 = 0.96;
        self.sum = KEEP * self.sum + value;
        self.weight = KEEP * self.weight + 1.0;
        self.sum / self.weight
    }
}
