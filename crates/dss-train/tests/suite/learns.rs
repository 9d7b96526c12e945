//! Small tasks are solved within seconds, and evaluation and prediction agree with the training's own result.

use std::sync::atomic::AtomicBool;

use crate::common;
use crate::common::{TempDir, config, run};
use burn::tensor::Device;
use dss_nn::checkpoint;
use dss_train::evaluate::{evaluate, evaluate_checkpoint};
use dss_train::predict::{Query, predict};
use dss_train::{Event, Observer, Stopped, run_dir};

#[test]
fn delay_is_learnt_and_the_checkpoint_can_be_used() {
    let temp = TempDir::new("delay");
    let out = temp.join("run");
    let sets = [
        ("task.d", "10"),
        ("task.length", "30"),
        ("task.symbols", "4"),
        ("task.train", "640"),
        ("task.val", "50"),
        ("task.test", "50"),
        ("model.layers", "1"),
        ("model.h", "32"),
        ("model.n", "16"),
        ("model.variant", "exp"),
        ("train.batch", "16"),
        ("train.epochs", "8"),
        ("train.lr", "0.01"),
        ("train.lr_w", "0.01"),
        ("train.lr_lambda", "0.01"),
        ("train.lr_delta", "0.01"),
    ];
    let config = config("delay", &sets);
    let summary = run(&config, &out, false).unwrap();
    let test = summary.test.unwrap();
    assert_eq!(summary.stopped, Stopped::Finished);
    assert!(test.accuracy.unwrap() > 0.95, "{test:?}");
    let confusion = test.confusion.as_ref().unwrap();
    assert_eq!(confusion.iter().flatten().sum::<u64>(), 50 * 20);

    // The same result from the file, in batches of another size.
    let task = config.task.load(None, &|_| {}).unwrap();
    let (device, best) = (Device::flex(), out.join("best.safetensors"));
    let found = evaluate_checkpoint(&best, &task, &task.test, 7, &device).unwrap();
    assert!(found.notes.is_empty(), "{:?}", found.notes);
    assert_eq!(found.scores.confusion, test.confusion);
    assert!((found.scores.loss - test.loss).abs() < 1e-5);

    // Other data: it works, and it says so.
    let mut other = config.clone();
    let dss_data::TaskConfig::Delay(delay) = &mut other.task else { unreachable!() };
    delay.seed += 1;
    delay.length = 40;
    let other = other.task.load(None, &|_| {}).unwrap();
    let (model, meta) = checkpoint::load(&best, &device).unwrap();
    let found = evaluate_checkpoint(&best, &other, &other.test, 7, &device).unwrap();
    assert_eq!(found.notes.len(), 2, "{:?}", found.notes);
    assert_eq!(found.scores.examples, 50);

    // Predictions by position are the confusion matrix's columns.
    let queries: Vec<Query> = (0..50)
        .map(|i| Query { input: task.test.example(i).unwrap().input, second: None })
        .collect();
    let predictions = predict(&model, &meta, &queries, 8).unwrap();
    assert_eq!(predictions.len(), 50);
    let mut columns = vec![0; 4];
    for prediction in &predictions {
        assert_eq!(prediction.rows.len(), 30);
        for (class, p) in prediction.classes().skip(10) {
            assert!((0.25..=1.0).contains(&p));
            columns[class] += 1;
        }
    }
    let expected: Vec<u64> = (0..4).map(|j| confusion.iter().map(|row| row[j]).sum()).collect();
    assert_eq!(columns, expected);

    let wrong = Query { input: dss_data::Input::Tokens(vec![2, 99]), second: None };
    let error = predict(&model, &meta, &[wrong], 8).unwrap_err().to_string();
    assert!(error.contains("token 99"), "{error}");

    // Metrics: a validation line per epoch and one test line, at the end.
    let records = run_dir::read_metrics(&out.join("metrics.jsonl")).unwrap();
    let vals = records.iter().filter(|r| matches!(r, run_dir::Record::Val(_))).count();
    assert_eq!(vals, 8);
    assert!(matches!(records.last().unwrap(), run_dir::Record::Test(r) if r.scores == test));
}

#[test]
fn adding_regresses_better_than_the_mean() {
    let temp = TempDir::new("adding");
    let sets = [
        ("task.length", "20"),
        ("task.train", "1600"),
        ("task.val", "100"),
        ("task.test", "100"),
        ("model.layers", "2"),
        ("model.h", "16"),
        ("model.n", "8"),
        ("train.batch", "16"),
        ("train.epochs", "6"),
        ("train.lr", "0.01"),
        ("train.schedule", "cosine"),
    ];
    let config = config("adding", &sets);
    let summary = run(&config, &temp.join("run"), false).unwrap();
    let test = summary.test.unwrap();
    // The variance of a sum of two numbers from U(0, 1) is 1/6.
    assert!(test.mse.unwrap() < 0.04, "{test:?}");
    assert_eq!((test.accuracy, test.examples), (None, 100));
    let task = config.task.load(None, &|_| {}).unwrap();
    let (model, meta) =
        checkpoint::load(temp.join("run/best.safetensors"), &Device::flex()).unwrap();
    let again = evaluate(&model, &task.test, &task.spec, 100).unwrap();
    assert!((again.loss - test.loss).abs() < 1e-5);

    // Predicted values have that error too.
    let examples: Vec<_> = (0..100).map(|i| task.test.example(i).unwrap()).collect();
    let queries: Vec<_> =
        examples.iter().map(|e| Query { input: e.input.clone(), second: None }).collect();
    let errors = predict(&model, &meta, &queries, 9).unwrap().into_iter().zip(&examples).map(
        |(prediction, example)| {
            let dss_data::Target::Values(target) = &example.target else { unreachable!() };
            (prediction.rows[0][0] - f64::from(target[0])).powi(2)
        },
    );
    assert!((errors.sum::<f64>() / 100.0 - test.loss).abs() < 1e-5);
}

/// Passes over a few sequences are grouped into rounds: saving after each of them would take longer than they do.
#[test]
fn rounds_are_saved_and_not_the_passes_within() {
    #[derive(Default)]
    struct Saves(Vec<u64>);
    impl Observer for Saves {
        fn event(&mut self, event: &Event<'_>) {
            if let Event::Checkpoint { step, .. } = event {
                self.0.push(*step);
            }
        }
    }
    let temp = TempDir::new("rounds");
    let mut config = common::small_listops(2);
    (config.train.batch, config.train.eval_every) = (48, 0);
    (config.train.min_steps, config.train.checkpoint_seconds) = (20, 0);
    let mut saves = Saves::default();
    let stop = AtomicBool::new(false);
    let out = temp.join("run");
    let summary = common::run_watched(&config, &out, false, &mut saves, &stop).unwrap();
    assert_eq!((summary.steps, summary.epochs), (20, 20));
    assert_eq!(saves.0, [10, 20]);
}

#[test]
fn early_stopping_counts_epochs() {
    let temp = TempDir::new("early");
    let mut config = common::small_listops(50);
    config.train.eval_every = 0;
    config.train.early_stop = 2;
    config.train.lr = 1e-12;
    for rate in [&mut config.train.lr_lambda, &mut config.train.lr_delta, &mut config.train.lr_w] {
        *rate = 0.0;
    }
    config.model.norm = dss_nn::config::NormKind::Layer;
    let summary = run(&config, &temp.join("run"), false).unwrap();
    assert_eq!(summary.stopped, Stopped::Early);
    assert_eq!((summary.epochs, summary.steps), (3, 18));
    assert!(summary.test.is_some());
}
