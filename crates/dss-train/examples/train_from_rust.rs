//! Training from Rust: repeat symbols ten steps later, follow the progress, then score the best checkpoint again.
//!
//! `cargo run --release -p dss-train --example train_from_rust [-- DIR]`; DIR becomes the run directory and must not
//! hold a run yet.

use std::error::Error;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use burn_core::tensor::Device;
use dss_train::config::Setting;
use dss_train::evaluate::evaluate_checkpoint;
use dss_train::{Config, Event, Observer, TrainOptions, train};

/// What `dss train` does with a progress bar.
struct Lines;

impl Observer for Lines {
    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Start { task, parameters, total_steps, .. } => {
                println!("{task}: {parameters} parameters, {total_steps} steps");
            }
            Event::Step { step, loss, .. } if step.is_multiple_of(20) => {
                println!("step {step:4}  loss {loss:.4}");
            }
            Event::Eval { epoch, split, scores, .. } => {
                let (score, _) = scores.in_words(|x| format!("{x:.4}"));
                println!("epoch {epoch}  {split:?}: loss {:.4}, {score}", scores.loss);
            }
            Event::Note(text) => println!("note: {text}"),
            _ => {}
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let out = std::env::args_os().nth(1).map_or("runs/train-from-rust".into(), PathBuf::from);

    // The settings of `dss config show delay`, and over them what `--set` would change.
    let settings = [
        Setting::new("task.d", 10),
        Setting::new("task.length", 30),
        Setting::new("task.symbols", 4),
        Setting::new("task.train", 640),
        Setting::new("task.val", 50),
        Setting::new("task.test", 50),
        Setting::new("model.layers", 1),
        Setting::new("model.h", 32),
        Setting::new("model.mixer.n", 16),
        Setting::new("model.mixer.variant", "exp"),
        Setting::new("train.epochs", 8),
        Setting::new("train.lr", 0.01),
        Setting::new("train.lr_lambda", 0.01),
        Setting::new("train.lr_delta", 0.01),
        Setting::new("train.lr_w", 0.01),
    ];
    let config = Config::resolve("delay", None, &[], &settings)?;

    // Another thread may set this to true: the training then saves its state and returns.
    let stop = AtomicBool::new(false);
    let summary = train(&config, &out, TrainOptions::default(), &mut Lines, &stop)?;
    println!("{} steps in {:.1} s, in {}", summary.steps, summary.seconds, out.display());

    // The checkpoint describes its model completely; the data are made again from their seed.
    let task = config.task.load(None, &|_| {})?;
    let checkpoint = out.join("best.safetensors");
    let found = evaluate_checkpoint(&checkpoint, &task, &task.test, 50, &Device::flex())?;
    let (score, _) = found.scores.in_words(|x| format!("{x:.4}"));
    println!("best checkpoint (step {}) on the test set: {score}", found.meta.step);
    for note in &found.notes {
        println!("note: {note}");
    }
    Ok(())
}
