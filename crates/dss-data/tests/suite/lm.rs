//! The task `lm`: finding the text, splitting it, and what is asked for.

use crate::common;
use std::fs;
use std::path::Path;

use dss_data::lm::{self, Unit};
use dss_data::{
    Dataset, Encoder, Input, InputKind, LmConfig, ReadFile, Target, TargetKind, Task, TaskConfig,
};
use proptest::prelude::*;

fn load(config: LmConfig, data: Option<&Path>) -> Result<Task, String> {
    TaskConfig::Lm(config).load(data, &|_| {}).map_err(|error| error.message_and_hint())
}

fn scored(data: &dyn Dataset) -> Vec<i32> {
    let targets = (0..data.len()).flat_map(|i| match data.example(i).unwrap().target {
        Target::PositionClasses(classes) => classes,
        _ => panic!(),
    });
    targets.filter(|&class| class >= 0).collect()
}

#[test]
fn the_three_parts_make_the_whole_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.txt");
    let text: String = (0..1000u32).map(|i| char::from(b'a' + (i * i % 26) as u8)).collect();
    fs::write(&path, &text).unwrap();
    let config = LmConfig { len: 32, val: 0.1, test: 0.2, ..LmConfig::default() };
    let task = load(config.clone(), Some(&path)).unwrap();
    let Encoder::Lm(encoder) = &task.encoder else { panic!() };
    assert_eq!(task.spec.input, InputKind::Tokens { vocab: encoder.vocab() });
    let TargetKind::NextToken { symbols } = &task.spec.target else { panic!() };
    assert_eq!(Some(symbols), task.vocabulary.as_ref());

    let ids: Vec<i32> =
        encoder.encode(text.as_bytes()).unwrap().iter().map(|&id| id as i32).collect();
    assert_eq!(scored(&*task.val), ids[700..800]);
    assert_eq!(scored(&*task.test), ids[800..]);
    assert_eq!(scored(&*task.train), ids[1..=21 * 32], "21 whole windows of 700 characters");
    let shifted = task.train.in_epoch(1, 2).unwrap();
    assert_eq!(shifted.len(), task.train.len());
    assert_ne!(shifted.example(3).unwrap(), task.train.example(3).unwrap());

    // No test part: the validation part is both, and the user is told.
    let both = load(LmConfig { test: 0.0, ..config.clone() }, Some(&path)).unwrap();
    assert_eq!(scored(&*both.val), ids[900..]);
    assert_eq!(scored(&*both.test), ids[900..]);
    assert_eq!(both.notes.len(), 1);

    // The splits are those of the text and the shares, not of the windows.
    let longer = load(LmConfig { len: 64, context: 0.0, ..config.clone() }, Some(&path)).unwrap();
    assert_eq!(longer.split_hash, task.split_hash);
    assert_eq!(scored(&*longer.test), ids[800..]);
    assert_ne!(both.split_hash, task.split_hash);
}

#[test]
fn a_text_is_found_by_file_or_folder() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let short = LmConfig { len: 4, ..LmConfig::default() };
    let error = load(short.clone(), None).err().unwrap();
    assert!(error.contains("--data FILE") && error.contains("dss data get lm"), "{error}");
    let error = load(short.clone(), Some(root)).err().unwrap();
    assert!(error.contains("text_lm"), "{error}");

    fs::create_dir(root.join("text_lm")).unwrap();
    fs::write(root.join("text_lm/mine.txt"), "ab".repeat(100)).unwrap();
    assert!(load(short.clone(), Some(root)).is_ok(), "the only text");
    fs::write(root.join("text_lm/other.txt"), "cd".repeat(100)).unwrap();
    let error = load(short.clone(), Some(root)).err().unwrap();
    assert!(error.contains("mine.txt, other.txt"), "{error}");
    fs::write(root.join("text_lm/tinyshakespeare_input.txt"), "xyz".repeat(100)).unwrap();
    assert_eq!(load(short.clone(), Some(root)).unwrap().vocabulary.unwrap(), ["x", "y", "z"]);

    let named = LmConfig { path: "text_lm/mine.txt".into(), ..short.clone() };
    assert_eq!(load(named, Some(root)).unwrap().vocabulary.unwrap(), ["a", "b"]);
    // A file that --data names is remembered.
    let file = root.join("text_lm/other.txt");
    let TaskConfig::Lm(located) = TaskConfig::Lm(short).located(Some(&file)) else { panic!() };
    assert_eq!(load(located, None).unwrap().vocabulary.unwrap(), ["c", "d"]);
}

#[test]
fn bad_texts_and_settings_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.txt");
    fs::write(&path, b"first\nsecond \xff\n").unwrap();
    let chars = LmConfig { len: 4, ..LmConfig::default() };
    let error = load(chars.clone(), Some(&path)).err().unwrap();
    assert!(error.contains("line 2") && error.contains("byte"), "{error}");
    let bytes = LmConfig { unit: Unit::Byte, val: 0.2, test: 0.2, ..chars.clone() };
    let task = load(bytes, Some(&path)).unwrap();
    assert_eq!(task.spec.input, InputKind::Tokens { vocab: 256 });

    fs::write(&path, "a".repeat(100)).unwrap();
    let refused = |config: LmConfig| load(config, Some(&path)).err().unwrap();
    let error = refused(LmConfig { len: 90, ..chars.clone() });
    assert!(error.contains("task.len = 90") && error.contains("100 characters"), "{error}");
    for (key, config) in [
        ("len", LmConfig { len: 1, ..chars.clone() }),
        ("len", LmConfig { len: usize::MAX, ..chars.clone() }),
        ("context", LmConfig { context: 1.0, ..chars.clone() }),
        ("context", LmConfig { context: f64::NAN, ..chars.clone() }),
        ("val", LmConfig { val: 0.0, ..chars.clone() }),
        ("val", LmConfig { val: 0.001, ..chars.clone() }),
        ("test", LmConfig { test: -0.1, ..chars.clone() }),
        ("test", LmConfig { test: 0.001, ..chars.clone() }),
        ("len", LmConfig { val: 0.9, test: 0.9, ..chars }),
    ] {
        let error = refused(config);
        assert!(error.starts_with(&format!("task.{key} = ")), "{error}");
    }
}

#[test]
fn a_new_text_is_scored_but_for_its_first_token() {
    let folder = tempfile::tempdir().unwrap();
    let (path, new) = (folder.path().join("a.txt"), folder.path().join("new.txt"));
    fs::write(&path, "abcd".repeat(50)).unwrap();
    let task = load(LmConfig { len: 8, ..LmConfig::default() }, Some(&path)).unwrap();
    let Encoder::Lm(encoder) = &task.encoder else { panic!() };
    fs::write(&new, "dcbadcbadcbadcba").unwrap();
    let text = lm::score(encoder, &new).unwrap();
    assert_eq!(text.tokens, 15);
    assert_eq!(scored(&*text.windows), [2, 1, 0, 3, 2, 1, 0, 3, 2, 1, 0, 3, 2, 1, 0]);
    assert_eq!(text.spec, task.spec);
    let read = task.encoder.read(&new).unwrap();
    assert!(matches!(&read[0].1, Input::Tokens(ids) if ids.len() == 16));

    fs::write(&new, "abcd\nab").unwrap();
    let error = lm::score(encoder, &new).err().unwrap().to_string();
    assert!(error.contains("line 1") && error.contains(r"'\n'"), "{error}");
    fs::write(&new, "a").unwrap();
    assert!(lm::score(encoder, &new).is_err());
}

#[test]
fn tiny_shakespeare() {
    let Some(dir) = common::data("text_lm") else { return };
    let task = load(LmConfig::default(), dir.parent()).unwrap();
    assert_eq!(task.vocabulary.as_ref().unwrap().len(), 65);
    let counts = [&task.train, &task.val, &task.test].map(|split| scored(&**split).len());
    assert_eq!(counts, [1_003_520, 55_770, 55_770], "of 1,115,394; training in whole windows");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn no_bytes_make_it_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        len in 0usize..20, context in -0.5f64..1.5, val in -0.5f64..1.5, test in -0.5f64..1.5,
        byte in any::<bool>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        fs::write(&path, bytes).unwrap();
        let unit = if byte { Unit::Byte } else { Unit::Char };
        let config = LmConfig { len, context, val, test, unit, ..LmConfig::default() };
        if let Ok(task) = load(config, Some(&path)) {
            for split in [&task.train, &task.val, &task.test] {
                prop_assert!(!split.is_empty());
                let _ = scored(&**split);
            }
        }
    }
}
