//! The ListOps task as a whole: real rows, splits, vocabulary, cache, official files.

use crate::common;
use std::fs;
use std::path::{Path, PathBuf};

use dss_data::listops::{Expressions, evaluate, generate, read_tsv, symbols};
use dss_data::{
    Dataset, Encoder, Input, InputKind, ListopsConfig, ReadFile, SequencePlace, Target, Task,
    TaskConfig,
};
use proptest::prelude::*;

fn excerpt(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn small() -> ListopsConfig {
    let base = ListopsConfig { train: 200, val: 30, test: 30, ..ListopsConfig::default() };
    ListopsConfig { min_length: 10, max_length: 60, max_depth: 6, max_args: 5, ..base }
}

fn load(config: &ListopsConfig) -> Task {
    TaskConfig::Listops(config.clone()).load(None, &|_| {}).unwrap()
}

fn error(config: ListopsConfig) -> String {
    TaskConfig::Listops(config).load(None, &|_| {}).err().unwrap().message_and_hint()
}

fn tokens(data: &dyn Dataset, i: usize) -> (Vec<u32>, u32) {
    match data.example(i).unwrap() {
        dss_data::Example { input: Input::Tokens(x), target: Target::Class(y), .. } => (x, y),
        other => panic!("{other:?}"),
    }
}

// `read_tsv` checks every label against the evaluator.
#[test]
fn excerpts_of_the_real_files_agree_with_the_evaluator() {
    let lra = read_tsv(&excerpt("lra_basic_rows.tsv")).unwrap();
    assert_eq!(lra.len(), 10);
    assert!((0..10).all(|i| (501..2000).contains(&lra.codes(i).len())));
    assert_eq!(read_tsv(&excerpt("listops_original_rows.tsv")).unwrap().len(), 10);
}

#[test]
fn all_real_rows_agree_with_the_evaluator_and_the_written_form() {
    let files =
        [("lra_basic_sample_2000.tsv.gz", 2000), ("listops_d20s_test_first4000.tsv.gz", 4000)];
    for (name, count) in files {
        let Some(path) = common::data(&format!("listops/{name}")) else { continue };
        assert_eq!(read_tsv(&path).unwrap().len(), count);
    }
}

#[test]
fn the_written_tree_is_the_official_one() {
    let path = excerpt("lra_basic_rows.tsv");
    let mut written = Vec::new();
    dss_data::listops::write_tsv(&mut written, &read_tsv(&path).unwrap()).unwrap();
    assert!(written == fs::read(path).unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn both_written_forms_can_be_read_back(seed in 0u64..1000) {
        let grammar = small().grammar();
        let rows: Expressions = generate(&grammar, 1, seed, &|_| {});
        let codes = rows.codes(0);
        prop_assert_eq!(evaluate(codes).unwrap(), rows.labels()[0]);
        prop_assert_eq!(symbols::parse(&symbols::to_tree(codes)).unwrap(), codes);
        prop_assert_eq!(symbols::parse(&symbols::to_tokens(codes)).unwrap(), codes);
    }
}

#[test]
fn eighteen_ids_with_the_close_most_frequent_and_eos_last() {
    let task = load(&small());
    let vocabulary = task.vocabulary.clone().unwrap();
    assert_eq!(vocabulary.len(), 18);
    assert_eq!(vocabulary[..4], ["<pad>", "<unk>", "<eos>", "X"]);
    assert_eq!(task.spec.input, InputKind::Tokens { vocab: 18 });
    assert_eq!(task.spec.len, 60);
    for i in 0..200 {
        let (x, y) = tokens(&*task.train, i);
        assert_eq!(x.iter().position(|&id| id == 2), Some(x.len() - 1));
        assert!(x.len() <= 60 && x[..x.len() - 1].iter().all(|id| (3..18).contains(id)));
        let text: Vec<&str> =
            x[..x.len() - 1].iter().map(|&id| vocabulary[id as usize].as_str()).collect();
        let value = evaluate(&symbols::parse(&text.join(" ")).unwrap()).unwrap();
        assert_eq!(u32::from(value), y);
    }
}

#[test]
fn splits_are_disjoint_and_their_hash_follows_the_settings() {
    let task = load(&small());
    let all = [&task.train, &task.val, &task.test];
    let mut seen = std::collections::HashSet::new();
    for data in all {
        assert!((0..data.len()).all(|i| seen.insert(tokens(&**data, i).0)));
    }
    assert_eq!(seen.len(), 260);
    assert_eq!(task.split_hash, load(&ListopsConfig { len: 100, ..small() }).split_hash);
    assert_ne!(task.split_hash, load(&ListopsConfig { seed: 1, ..small() }).split_hash);
    assert_eq!(task.split_hash.len(), 64);
}

// Runs are compared by this hash, so the generator must not change unnoticed. Written down from the first run.
#[test]
fn the_generated_data_are_pinned() {
    assert_eq!(
        load(&small()).split_hash,
        "363c52281aa1810edf003520336d39159c3ba523eaf112512d1f5a4ad2816e9c"
    );
}

/// The only test that uses the cache folder: the setting is one of the whole process.
#[test]
fn kept_data_are_the_same_and_survive_damage() {
    let dir = tempfile::tempdir().unwrap();
    let cache = dir.path().join("cache");
    // SAFETY: the standard library alone reads the environment here, behind its lock.
    unsafe { std::env::set_var("DSS_CACHE", &cache) };
    let many = ListopsConfig { train: 9_000, val: 500, test: 500, max_length: 200, ..small() };
    let first = load(&many);
    let file = fs::read_dir(&cache).unwrap().next().unwrap().unwrap().path();
    let same = |task: &Task| {
        assert_eq!((&task.split_hash, &task.vocabulary), (&first.split_hash, &first.vocabulary));
        for i in [0, 77, 499] {
            assert_eq!(tokens(&*task.test, i), tokens(&*first.test, i));
        }
    };
    let written = fs::metadata(&file).unwrap().modified().unwrap();
    same(&load(&many));
    assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), written, "read, not made again");
    let bytes = fs::read(&file).unwrap();
    for at in [0, bytes.len() / 2, bytes.len() - 20] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        fs::write(&file, damaged).unwrap();
        same(&load(&many));
    }
    // A cache folder that cannot be: a remark.
    fs::remove_dir_all(&cache).unwrap();
    fs::write(&cache, "").unwrap();
    let task = load(&many);
    same(&task);
    assert!(task.notes[0].to_string().contains("used but cannot be cached"), "{:?}", task.notes);
    assert!(load(&small()).notes.is_empty());
}

/// What an older version, without a cache folder of all tasks, gave for the same settings.
#[test]
fn the_split_hash_stays() {
    let old = serde_json::json!({"name": "listops", "train": 200, "val": 30, "test": 30, "min_length": 10,
        "max_length": 60, "max_depth": 6, "max_args": 5, "cache": "somewhere"});
    let config: TaskConfig = serde_json::from_value(old).unwrap();
    let task = config.load(None, &|_| {}).unwrap();
    assert_eq!(task.split_hash, load(&small()).split_hash);
    assert_eq!(task.split_hash, "363c52281aa1810edf003520336d39159c3ba523eaf112512d1f5a4ad2816e9c");
}

#[test]
fn official_files_are_read_from_a_folder() {
    let dir = tempfile::tempdir().unwrap();
    let config = ListopsConfig {
        dir: dir.path().to_str().unwrap().into(),
        val: 4,
        ..ListopsConfig::default()
    };
    let missing = error(config.clone());
    assert!(missing.contains("basic_train.tsv") && missing.contains("generate"), "{missing}");
    for split in ["train", "val", "test"] {
        fs::copy(excerpt("lra_basic_rows.tsv"), dir.path().join(format!("basic_{split}.tsv")))
            .unwrap();
    }
    let task = load(&config);
    assert_eq!((task.train.len(), task.val.len(), task.test.len()), (10, 4, 10));
    assert_eq!(task.vocabulary.as_ref().unwrap().len(), 18);
    assert!((502..560).contains(&task.spec.len));
    assert_eq!(load(&ListopsConfig { len: 2048, ..config.clone() }).spec.len, 2048);
    assert!(error(ListopsConfig { len: 100, ..config }).contains("task.len = 100: too short"));
}

#[test]
fn settings_are_checked() {
    let cases = [
        (ListopsConfig { max_length: 11, ..small() }, "task.max_length = 11"),
        (ListopsConfig { max_args: 1, ..small() }, "task.max_args = 1"),
        (ListopsConfig { val: 0, ..small() }, "task.val = 0"),
        (ListopsConfig { len: 59, ..small() }, "at least 60"),
        (
            ListopsConfig {
                min_length: 3,
                max_length: 5,
                max_depth: 2,
                max_args: 2,
                train: 999,
                ..small()
            },
            "only 400 of",
        ),
    ];
    for (config, part) in cases {
        let message = error(config);
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn prediction_encodes_like_training() {
    let task = load(&small());
    let vocabulary = task.vocabulary.clone().unwrap();
    let (x, _) = tokens(&*task.test, 0);
    let text: Vec<&str> =
        x[..x.len() - 1].iter().map(|&id| vocabulary[id as usize].as_str()).collect();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mine.txt");
    fs::write(&path, format!("{}\n[SM 1 2 ]\n", text.join(" "))).unwrap();
    let json = serde_json::to_string(&task.encoder).unwrap();
    let encoder: Encoder = serde_json::from_str(&json).unwrap();
    assert_eq!(encoder, task.encoder);
    let read = encoder.read(&path).unwrap();
    assert_eq!(read[0], (SequencePlace::Line(1), Input::Tokens(x)));
    assert_eq!(read.len(), 2);
    fs::write(&path, format!("[MAX {} ]", "1 ".repeat(60))).unwrap();
    assert!(encoder.read(&path).unwrap_err().to_string().contains("takes 60"));
    fs::write(&path, "\n").unwrap();
    assert!(encoder.read(&path).unwrap_err().to_string().contains("no sequences"));
}
