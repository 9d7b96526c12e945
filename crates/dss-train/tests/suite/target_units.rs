//! Regression on a user's own data: targets of any size are learnt, and everything is said in their units.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use burn::tensor::Device;
use dss_data::Target;
use dss_nn::checkpoint;
use dss_train::evaluate::evaluate_checkpoint;
use dss_train::predict::{Query, predict};
use dss_train::{Config, Event, Observer, Stopped};
use serde_json::Value;

use crate::common::{TempDir, assert_same, config, remains, run, run_watched};

/// Rows whose slope tells the target, 10⁶ + i.
fn table(dir: &Path, offset: f64) -> String {
    let row = |i: usize| {
        let steps: String = (0..6).map(|t| format!(",{}", (i * t) as f64 / 60.0)).collect();
        format!("{}{steps}\n", offset + i as f64)
    };
    let path = dir.join("slopes.csv");
    let rows: String = (0..60).map(row).collect();
    fs::write(&path, format!("y,t0,t1,t2,t3,t4,t5\n{rows}")).unwrap();
    path.to_str().unwrap().to_owned()
}

fn regression(path: &str, steps: &str) -> Config {
    let sets = [
        ("task.path", path),
        ("task.target", "value"),
        ("model.layers", "1"),
        ("model.h", "16"),
        ("model.n", "8"),
        ("train.batch", "12"),
        ("train.epochs", "5"),
        ("train.min_steps", steps),
        ("train.lr", "0.01"),
        ("train.average", "0.9"),
    ];
    config("files", &sets)
}

/// The squared error of a checkpoint's answers to the test split.
fn error_of(config: &Config, file: &Path) -> f64 {
    let task = config.task.load(None, &|_| {}).unwrap();
    let (model, meta) = checkpoint::load(file, &Device::flex()).unwrap();
    let examples: Vec<_> = (0..task.test.len()).map(|i| task.test.example(i).unwrap()).collect();
    let queries: Vec<_> =
        examples.iter().map(|e| Query { input: e.input.clone(), second: None }).collect();
    let answers = predict(&model, &meta, &queries, 5).unwrap();
    let square = |(answer, example): (&dss_train::predict::Prediction, &dss_data::Example)| {
        let Target::Values(target) = &example.target else { unreachable!() };
        (answer.rows[0][0] - f64::from(target[0])).powi(2)
    };
    answers.iter().zip(&examples).map(square).sum::<f64>() / examples.len() as f64
}

#[test]
fn targets_far_from_zero_are_learnt() {
    let temp = TempDir::new("far");
    let config = regression(&table(&temp.0, 1e6), "200");
    let out = temp.join("run");
    let test = run(&config, &out, false).unwrap().test.unwrap();
    let (mse, mean) = (test.mse.unwrap(), test.baselines[0].mse.unwrap());
    assert!(100.0 < mean && mean < 1000.0, "{mean}");
    assert!(mse < mean / 4.0, "{mse}, the mean alone has {mean}");
    // The files say it in the same units: the best one, and the ones to resume from.
    let best = out.join("best.safetensors");
    assert!((error_of(&config, &best) - mse).abs() < 1e-3 * mean);
    for name in ["model", "average"] {
        let found = error_of(&config, &out.join(format!("last/{name}.safetensors")));
        assert!(found < mean, "{name}: {found}");
    }
    let task = config.task.load(None, &|_| {}).unwrap();
    let scores = evaluate_checkpoint(&best, &task, &task.test, 7, &Device::flex()).unwrap().scores;
    assert!((scores.mse.unwrap() - mse).abs() < 1e-3 * mean, "{scores:?}");
    // So do the training's own lines.
    let losses: Vec<f64> = crate::common::metrics(&out)
        .iter()
        .filter(|line| line["kind"] == "train")
        .map(|line| line["loss"].as_f64().unwrap())
        .collect();
    assert!(losses[0] > 50.0 && losses[0] < 5000.0, "{losses:?}");
    // Another run starts where this one ended.
    let mut next = regression(&table(&temp.0, 1e6), "5");
    (next.train.from, next.train.lr) = (out.to_str().unwrap().to_owned(), 1e-9);
    let again = run(&next, &temp.join("next"), false).unwrap().test.unwrap();
    assert!((again.mse.unwrap() - mse).abs() < 1e-2 * mean, "{again:?}, {mse}");
}

/// Raises the stop flag at a step.
struct StopAt<'a>(u64, &'a AtomicBool);

impl Observer for StopAt<'_> {
    fn event(&mut self, event: &Event<'_>) {
        if matches!(event, Event::Step { step, .. } if *step == self.0) {
            self.1.store(true, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_stopped_regression_ends_with_the_same_bits() {
    let temp = TempDir::new("stopped-regression");
    let config = regression(&table(&temp.0, 1e6), "20");
    let (whole, stopped) = (temp.join("whole"), temp.join("stopped"));
    run(&config, &whole, false).unwrap();
    let stop = AtomicBool::new(false);
    let first = run_watched(&config, &stopped, false, &mut StopAt(7, &stop), &stop).unwrap();
    assert_eq!((first.stopped, first.steps), (Stopped::Interrupted, 7));
    run(&config, &stopped, true).unwrap();
    assert_same(&remains(&whole), &remains(&stopped), "stopped after 7 steps");
}

/// A run of an earlier version learns the targets as they are, to its end.
#[test]
fn a_run_of_an_earlier_version_resumes() {
    let temp = TempDir::new("earlier-regression");
    let config = regression(&table(&temp.0, 0.0), "20");
    let out = temp.join("run");
    let stop = AtomicBool::new(false);
    run_watched(&config, &out, false, &mut StopAt(7, &stop), &stop).unwrap();
    let path = out.join("last/state.json");
    let mut state: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert!(state.as_object_mut().unwrap().remove("target_scaling").is_some());
    fs::write(&path, state.to_string()).unwrap();
    fs::remove_file(out.join("last/SHA256SUMS")).unwrap();
    let before = error_of(&config, &out.join("last/average.safetensors"));
    let end = run(&config, &out, true).unwrap();
    let after = end.best_val.unwrap().mse.unwrap();
    assert!(after < 10.0 * before, "{before}, then {after}");
    let state: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert!(state.get("target_scaling").is_none());
}
