//! Language models: judged by their cross entropy, trained on windows that change from epoch to epoch.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{TempDir, assert_same, config, remains, run, run_watched};
use burn::tensor::Device;
use dss_data::Encoder;
use dss_nn::checkpoint;
use dss_train::config::Setting;
use dss_train::evaluate::{evaluate, evaluate_checkpoint};
use dss_train::predict::encoder;
use dss_train::run_dir::{Record, read_metrics};
use dss_train::{Config, Event, Observer, Stopped};

/// A text in which the letter after `x` is that before it, and all others are random.
fn write_text(path: &Path) {
    let mut state = 1u32;
    let mut letter = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b'a' + (state >> 24) as u8 % 4)
    };
    let words = (0..2000).map(|_| {
        let (first, second) = (letter(), letter());
        format!("{second}{first}x{first}")
    });
    std::fs::write(path, words.collect::<String>()).unwrap();
}

fn small(text: &Path, epochs: &str) -> Config {
    config(
        "lm",
        &[
            ("task.path", text.to_str().unwrap()),
            ("task.len", "32"),
            ("task.val", "0.1"),
            ("task.test", "0.1"),
            ("model.layers", "2"),
            ("model.h", "16"),
            ("model.n", "8"),
            ("model.delta_min", "0.1"),
            ("model.delta_max", "1"),
            ("model.dropout", "0"),
            ("train.batch", "8"),
            ("train.epochs", epochs),
            ("train.lr", "0.02"),
            ("train.lr_w", "0.01"),
            ("train.lr_lambda", "0.01"),
            ("train.lr_delta", "0.01"),
            ("train.warmup_steps", "0"),
        ],
    )
}

#[test]
fn the_lowest_cross_entropy_is_the_best() {
    let temp = TempDir::new("lm");
    let (text, out) = (temp.join("a.txt"), temp.join("run"));
    write_text(&text);
    let config = small(&text, "20");
    let summary = run(&config, &out, false).unwrap();
    let test = summary.test.unwrap();
    // Of four letters two are free, `x` and the repetition are certain.
    assert!(test.loss < 0.75 && test.loss > 0.5 * 4f64.ln(), "{test:?}");
    assert_eq!((test.accuracy, test.mse, &test.confusion), (None, None, &None));
    assert!((test.bits.unwrap() - test.loss / 2f64.ln()).abs() < 1e-12);

    let records = read_metrics(&out.join("metrics.jsonl")).unwrap();
    let vals: Vec<_> = records
        .iter()
        .filter_map(|r| match r {
            Record::Val(record) => Some((record.step, record.scores.loss)),
            _ => None,
        })
        .collect();
    let least = vals.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
    assert_eq!(summary.best_step, least.0);
    assert_eq!(summary.best_val.unwrap().loss, least.1);
    let line = std::fs::read_to_string(out.join("metrics.jsonl")).unwrap();
    assert!(line.lines().last().unwrap().contains("\"bits\":"));

    // The checkpoint knows its letters, and scores a new text as it did the test part.
    let task = config.task.load(None, &|_| {}).unwrap();
    let (device, best) = (Device::flex(), out.join("best.safetensors"));
    let found = evaluate_checkpoint(&best, &task, &task.test, 7, &device).unwrap();
    assert!(found.notes.is_empty(), "{:?}", found.notes);
    assert!((found.scores.loss - test.loss).abs() < 1e-5);
    let (model, meta) = checkpoint::load(&best, &device).unwrap();
    assert_eq!(meta.labels, ["a", "b", "c", "d", "x"]);
    let Encoder::Lm(encoder) = encoder(&meta).unwrap() else { panic!() };
    let scored = dss_data::lm::score(&encoder, &text).unwrap();
    assert_eq!(scored.tokens, 7999);
    let all = evaluate(&model, &scored.windows, &scored.spec, 8).unwrap();
    assert!((all.loss - test.loss).abs() < 0.1, "{} {}", all.loss, test.loss);
}

struct StopAt<'a>(u64, &'a AtomicBool);

impl Observer for StopAt<'_> {
    fn event(&mut self, event: &Event<'_>) {
        if let Event::Step { step, .. } = event
            && *step == self.0
        {
            self.1.store(true, Ordering::Relaxed);
        }
    }
}

/// Raises the stop flag in the evaluation after a step.
struct StopInEvaluation<'a> {
    after: u64,
    step: u64,
    stop: &'a AtomicBool,
}

impl Observer for StopInEvaluation<'_> {
    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Step { step, .. } => self.step = *step,
            Event::Evaluating { .. } if self.step == self.after => {
                self.stop.store(true, Ordering::Relaxed);
            }
            _ => {}
        }
    }
}

#[test]
fn a_resumed_run_sees_the_same_windows() {
    let temp = TempDir::new("lm-resume");
    let text = temp.join("a.txt");
    write_text(&text);
    let config = small(&text, "3");
    let (whole, stopped) = (temp.join("whole"), temp.join("stopped"));
    let steps = run(&config, &whole, false).unwrap().steps;
    let stop = AtomicBool::new(false);
    // In the middle of the second epoch.
    let summary = run_watched(&config, &stopped, false, &mut StopAt(steps / 2, &stop), &stop);
    assert_eq!(summary.unwrap().stopped, Stopped::Interrupted);
    run(&config, &stopped, true).unwrap();
    assert_same(&remains(&whole), &remains(&stopped), "stopped in the second epoch");
}

#[test]
fn streams_carry_their_past_and_resume() {
    let temp = TempDir::new("lm-carry");
    let text = temp.join("a.txt");
    write_text(&text);
    let sets = [Setting::new("train.carry", true), Setting::new("variant", "exp")];
    let config = small(&text, "8").changed(&[], &sets).unwrap();
    let (whole, stopped) = (temp.join("whole"), temp.join("stopped"));
    let summary = run(&config, &whole, false).unwrap();
    assert!(summary.test.unwrap().loss < 0.9);
    let stop = AtomicBool::new(false);
    // In the middle of an epoch: the past is in the saved state.
    let at = summary.steps / 8 + 3;
    run_watched(&config, &stopped, false, &mut StopAt(at, &stop), &stop).unwrap();
    let carried = std::fs::read(stopped.join("last/carry.safetensors")).unwrap();
    run(&config, &stopped, true).unwrap();
    assert_same(&remains(&whole), &remains(&stopped), "stopped in the second epoch");
    assert!(!carried.is_empty());
    // In the evaluation after the last step.
    let stopped = temp.join("stopped-at-the-end");
    let mut last = StopInEvaluation { after: summary.steps, step: 0, stop: &stop };
    stop.store(false, Ordering::Relaxed);
    let cut = run_watched(&config, &stopped, false, &mut last, &stop).unwrap();
    assert_eq!((cut.steps, cut.stopped), (summary.steps, Stopped::Interrupted));
    run(&config, &stopped, true).unwrap();
    assert_same(&remains(&whole), &remains(&stopped), "stopped in the last evaluation");

    let wrong = |sets: &[(&str, &str)]| {
        let sets: Vec<_> = sets.iter().map(|(k, v)| Setting::typed(k, v)).collect();
        Config::resolve("lm", None, &[], &sets).unwrap_err().to_string()
    };
    let error = wrong(&[("train.carry", "true"), ("model.variant", "softmax")]);
    assert!(error.contains("train.carry") && error.contains("variant"), "{error}");
    let error = wrong(&[("carry", "true"), ("variant", "exp"), ("accumulate", "2")]);
    assert!(error.contains("accumulate"), "{error}");
}

#[test]
fn a_language_model_must_not_look_ahead() {
    let sets = [Setting::new("model.bidirectional", true)];
    let error = Config::resolve("lm", None, &[], &sets).unwrap_err().to_string();
    assert!(error.contains("model.bidirectional") && error.contains("look ahead"), "{error}");
}
