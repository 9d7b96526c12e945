//! The same seed gives the same bits, whatever the number of threads.

use std::sync::atomic::AtomicBool;

use crate::common::{TempDir, assert_same, config, remains, small_listops};
use dss_train::{Config, TrainOptions, train};

fn check(name: &str, config: &Config) {
    let temp = TempDir::new(name);
    let left = [1, 2, 3].map(|threads| {
        let out = temp.join(&threads.to_string());
        let options = TrainOptions { threads: Some(threads), ..TrainOptions::default() };
        train(config, &out, options, &mut (), &AtomicBool::new(false)).unwrap();
        remains(&out)
    });
    assert_same(&left[0], &left[1], "1 and 2 threads");
    assert_same(&left[0], &left[2], "1 and 3 threads");
}

#[test]
fn softmax_with_batch_norm_and_accumulation() {
    check("threads-listops", &small_listops(2));
}

/// Large enough for every operation to be spread over threads.
#[test]
fn a_wide_model_by_position() {
    let sets = [
        ("task.d", "300"),
        ("task.train", "32"),
        ("task.val", "8"),
        ("task.test", "8"),
        ("model.layers", "2"),
        ("model.h", "96"),
        ("model.n", "32"),
        ("model.norm", "batch"),
        ("train.batch", "8"),
        ("train.accumulate", "1"),
        ("train.epochs", "1"),
    ];
    check("threads-delay", &config("delay", &sets));
}

#[test]
fn exp_both_ways_with_layer_norm_and_gates() {
    let sets = [
        ("task.length", "200"),
        ("task.train", "32"),
        ("task.val", "8"),
        ("task.test", "8"),
        ("model.layers", "2"),
        ("model.h", "24"),
        ("model.n", "16"),
        ("model.variant", "exp"),
        ("model.norm", "layer"),
        ("model.prenorm", "true"),
        ("model.bidirectional", "true"),
        ("model.glu", "true"),
        ("model.dropout", "0.2"),
        ("train.batch", "8"),
        ("train.accumulate", "2"),
        ("train.epochs", "2"),
    ];
    check("threads-adding", &config("adding", &sets));
}

/// With what they draw at random.
#[test]
fn attention_to_few_keys() {
    for (kind, sizes) in [
        ("bigbird", [("model.mixer.block", "8"), ("model.mixer.random_blocks", "2")]),
        ("reformer", [("model.mixer.chunk", "16"), ("model.mixer.rounds", "2")]),
        ("h-transformer-1d", [("model.mixer.block", "4"), ("model.mixer.heads", "2")]),
    ] {
        let mut sets = vec![
            ("task.length", "130"),
            ("task.train", "16"),
            ("task.val", "8"),
            ("task.test", "8"),
            ("model.layers", "2"),
            ("model.h", "16"),
            ("model.mixer.kind", kind),
            ("model.norm", "layer"),
            ("model.bidirectional", "true"),
            ("train.batch", "8"),
            ("train.epochs", "2"),
        ];
        sets.extend(sizes);
        check(&format!("threads-{kind}"), &config("adding", &sets));
    }
}
