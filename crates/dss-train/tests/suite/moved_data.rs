//! A run of own data continues, and is evaluated, whatever its files are called and in which order their rows are.

use std::fs;
use std::path::Path;

use burn::tensor::Device;
use dss_nn::checkpoint;
use dss_train::Config;
use dss_train::evaluate::evaluate_checkpoint;

use crate::common::{TempDir, config, metrics, run};

/// 40 rows: class up or down and three numbers that tell the row.
fn rows() -> Vec<String> {
    (0..40).map(|i| format!("{},{i},0.5,-{i}", ["up", "down"][i % 2])).collect()
}

fn write(path: &Path, rows: &[String]) {
    fs::write(path, format!("label,a,b,c\n{}\n", rows.join("\n"))).unwrap();
}

fn settings(path: &Path, epochs: usize) -> Config {
    let epochs = epochs.to_string();
    config(
        "files",
        &[
            ("task.path", path.to_str().unwrap()),
            ("task.val_fraction", "0.1"),
            ("task.test_fraction", "0.1"),
            ("model.layers", "1"),
            ("model.h", "4"),
            ("model.n", "4"),
            ("train.batch", "8"),
            ("train.epochs", &epochs),
            ("train.min_steps", "0"),
            ("train.early_stop", "0"),
            ("train.schedule", "constant"),
        ],
    )
}

/// What `dss eval` has to say about the data.
fn notes(config: &Config, out: &Path) -> Vec<String> {
    let task = config.task.load(None, &|_| {}).unwrap();
    let (best, device) = (out.join("best.safetensors"), Device::flex());
    evaluate_checkpoint(&best, &task, &task.test, 8, &device).unwrap().notes
}

/// The line of the test set.
fn result(out: &Path) -> serde_json::Value {
    metrics(out).pop().unwrap()
}

#[test]
fn renamed_and_reordered_data_resume_to_the_same_metrics() {
    let temp = TempDir::new("moved");
    let (table, moved) = (temp.join("x.csv"), temp.join("renamed.csv"));
    let mut rows = rows();
    write(&table, &rows);
    rows.reverse();
    write(&moved, &rows);
    let (whole, half) = (temp.join("whole"), temp.join("half"));
    run(&settings(&table, 2), &whole, false).unwrap();
    run(&settings(&table, 1), &half, false).unwrap();
    run(&settings(&moved, 2), &half, true).unwrap();
    assert_eq!(result(&whole), result(&half));
    assert_eq!(notes(&settings(&moved, 2), &half), [""; 0]);
    write(&moved, &rows[1..]);
    assert!(notes(&settings(&moved, 2), &half)[0].contains("split differently"));
}

/// What version 0.1 computed for this table as `x.csv`: the names of files were in it.
const HASH_OF_0_1: &str = "ffd75de6317309495029b48ab397acf7b1d81e0b53c44e6a5f79388a5953dc09";

/// Writes the hash of version 0.1 wherever a run has its own.
fn as_version_0_1(out: &Path) {
    let state = out.join("last/state.json");
    let text = fs::read_to_string(&state).unwrap();
    let mut json: serde_json::Value = serde_json::from_str(&text).unwrap();
    json["split_hash"] = HASH_OF_0_1.into();
    fs::write(&state, json.to_string()).unwrap();
    for path in ["last/model.safetensors", "best.safetensors"].map(|name| out.join(name)) {
        let (model, mut meta) = checkpoint::load(&path, &Device::flex()).unwrap();
        meta.split_hash = HASH_OF_0_1.to_owned();
        checkpoint::save(&path, &model, &meta).unwrap();
    }
    fs::remove_file(out.join("last/SHA256SUMS")).unwrap();
    fs::remove_dir_all(out.join("last.old")).unwrap();
}

#[test]
fn runs_of_version_0_1_resume_and_evaluate() {
    let temp = TempDir::new("hash-0-1");
    let table = temp.join("x.csv");
    write(&table, &rows());
    let (whole, old) = (temp.join("whole"), temp.join("old"));
    run(&settings(&table, 3), &whole, false).unwrap();
    run(&settings(&table, 1), &old, false).unwrap();
    as_version_0_1(&old);
    assert_eq!(notes(&settings(&table, 1), &old), [""; 0]);
    // Twice: what a resumed run saves must fit what it began with.
    for epochs in [2, 3] {
        run(&settings(&table, epochs), &old, true).unwrap();
    }
    assert_eq!(result(&whole), result(&old));
    assert_eq!(notes(&settings(&table, 3), &old), [""; 0]);
}

/// Several passes between two evaluations, where one is too short.
#[test]
fn a_small_set_is_trained_for_a_minimum_of_steps() {
    let temp = TempDir::new("min-steps");
    let table = temp.join("x.csv");
    write(&table, &rows());
    let mut config = settings(&table, 2);
    // 32 sequences in batches of 8.
    config.train.min_steps = 13;
    let summary = run(&config, &temp.join("run"), false).unwrap();
    assert_eq!((summary.steps, summary.epochs), (14, 4));
    let evaluated: Vec<_> = (metrics(&temp.join("run")).iter())
        .filter(|line| line["kind"] == "val")
        .map(|line| line["step"].as_u64().unwrap())
        .collect();
    assert_eq!(evaluated, [7, 14]);
}
