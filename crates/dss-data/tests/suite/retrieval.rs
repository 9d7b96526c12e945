//! The task `retrieval`: AAN's files and the stand-in, pairs of documents that are kept once, faults with their place.

use crate::common;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::Path;

use dss_data::characters::Level;
use dss_data::{
    Dataset, Encoder, Example, Input, InputKind, Padding, ReadFile, RetrievalConfig, SequencePlace,
    Target, TargetKind, Task, TaskConfig, collate,
};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use tempfile::TempDir;

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(bytes).unwrap();
    gz.finish().unwrap()
}

fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, if name.ends_with(".gz") { gz(bytes) } else { bytes.to_vec() }).unwrap();
    }
    dir
}

/// Paper i, with quotation marks that must not quote anything.
fn paper(i: usize) -> String {
    format!("\"Paper {i} on é, {}", "abc ".repeat(i % 5))
}

/// n pairs of papers with the label as a float.
fn papers(n: usize, from: usize) -> String {
    let row = |i: usize| {
        let (a, b) = (from + i % 7, from + (3 * i + 1) % 7);
        format!("{}.0\tP{a}\tP{b}\t{}\t{}\n", i % 2, paper(a), paper(b))
    };
    (0..n).map(row).collect()
}

fn aan() -> TempDir {
    folder(&[
        ("aan/new_aan_pairs.train.tsv", papers(20, 0).as_bytes()),
        ("aan/new_aan_pairs.eval.tsv.gz", papers(6, 3).as_bytes()),
        ("aan/new_aan_pairs.test.tsv", papers(8, 10).replace('\n', "\r\n").as_bytes()),
    ])
}

fn config(dir: &Path) -> RetrievalConfig {
    common::own_cache();
    let dir = dir.to_str().unwrap().to_owned();
    RetrievalConfig { dir, len: 60, ..RetrievalConfig::default() }
}

fn load(config: RetrievalConfig) -> Task {
    TaskConfig::Retrieval(config).load(None, &|_| {}).unwrap_or_else(|e| panic!("{e}"))
}

fn error(config: RetrievalConfig) -> String {
    TaskConfig::Retrieval(config)
        .load(None, &|_| {})
        .err()
        .expect("must be refused")
        .message_and_hint()
}

fn sizes(task: &Task) -> [usize; 3] {
    [task.train.len(), task.val.len(), task.test.len()]
}

fn decode(task: &Task, input: &Input) -> String {
    let Input::Tokens(ids) = input else { panic!() };
    let symbols = task.vocabulary.as_ref().unwrap();
    assert_eq!(ids.last(), Some(&2));
    ids[..ids.len() - 1].iter().map(|&id| &*symbols[id as usize]).collect()
}

/// Class and both texts.
fn pair(task: &Task, data: &dyn Dataset, i: usize) -> (u32, String, String) {
    match data.example(i).unwrap() {
        Example { input, second: Some(second), target: Target::Class(class) } => {
            (class, decode(task, &input), decode(task, &second))
        }
        other => panic!("{other:?}"),
    }
}

fn classes(data: &dyn Dataset) -> [usize; 2] {
    let mut counts = [0; 2];
    for i in 0..data.len() {
        let Target::Class(class) = data.example(i).unwrap().target else { panic!() };
        counts[class as usize] += 1;
    }
    counts
}

fn labels(task: &Task) -> Vec<String> {
    match &task.spec.target {
        TargetKind::Class { labels } => labels.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn pairs_of_papers() {
    let dir = aan();
    let task = load(config(dir.path()));
    assert_eq!(sizes(&task), [20, 6, 8]);
    assert!(task.spec.pair && task.notes.is_empty(), "{:?}", task.notes);
    assert_eq!(labels(&task), ["unrelated", "related"]);
    let mut found: Vec<_> = (0..20).map(|i| pair(&task, &*task.train, i)).collect();
    let mut expected: Vec<_> =
        (0..20).map(|i| ((i % 2) as u32, paper(i % 7), paper((3 * i + 1) % 7))).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    let batch =
        collate(&task.spec, (0..4).map(|i| task.val.example(i).unwrap()).collect(), Padding::Full);
    assert_eq!((batch.rows, batch.examples, batch.l), (8, 4, 60));

    let fewer = load(RetrievalConfig { train: 6, ..config(dir.path()) });
    assert_eq!((fewer.train.len(), classes(&*fewer.train)), (6, [3, 3]));
    (0..6)
        .for_each(|i| assert_eq!(fewer.train.example(i).unwrap(), task.train.example(i).unwrap()));
    assert_ne!(fewer.split_hash, task.split_hash);
}

#[test]
fn the_order_of_rows_does_not_matter() {
    let dir = aan();
    let first = load(RetrievalConfig { train: 10, ..config(dir.path()) });
    let path = dir.path().join("aan/new_aan_pairs.train.tsv");
    let rows = fs::read_to_string(&path).unwrap();
    let reversed: String = rows.lines().rev().flat_map(|row| [row, "\n"]).collect();
    fs::write(&path, reversed).unwrap();
    let again = load(RetrievalConfig { train: 10, ..config(dir.path()) });
    assert_eq!(again.split_hash, first.split_hash);
    (0..10)
        .for_each(|i| assert_eq!(again.train.example(i).unwrap(), first.train.example(i).unwrap()));
}

#[test]
fn the_vocabulary_counts_both_texts_of_training_pairs() {
    let train = "1.0\ta\tb\tccc\tb\n0.0\ta\tc\tccc\tddqqq\n".as_bytes();
    let other = "1.0\ta\tb\tzz\tc\n".as_bytes();
    let dir = folder(&[
        ("new_aan_pairs.train.tsv", train),
        ("new_aan_pairs.eval.tsv", other),
        ("new_aan_pairs.test.tsv", other),
    ]);
    let base = RetrievalConfig { len: 3, ..config(dir.path()) };
    let task = load(base.clone());
    assert_eq!(task.vocabulary.as_deref().unwrap()[3..], ["c", "d", "b"]);
    let Example { input, second, .. } = task.test.example(0).unwrap();
    assert_eq!((input, second), (Input::Tokens(vec![1, 1, 2]), Some(Input::Tokens(vec![3, 2]))));
    let rare = load(RetrievalConfig { min_count: 2, ..base.clone() });
    assert_eq!(rare.vocabulary.unwrap()[3..], ["c", "d"]);
    let bytes = load(RetrievalConfig { level: Level::Bytes, ..base });
    assert_eq!(bytes.spec.input, InputKind::Tokens { vocab: 259 });
}

/// Reviews i of both classes, as tables of the task `text`; the test set is other reviews.
fn reviews(split: &str) -> String {
    let row = |i: usize| {
        let class = i % 2;
        format!(
            "{class}\t{}\t{}\ttt{}\t{split} {i}: film {}\n",
            [1, 10][class],
            i / 2,
            i / 4,
            i / 4
        )
    };
    (0..24).map(row).collect()
}

fn films(extra: &str) -> TempDir {
    let pairs = "1\tneg_0\tpos_0\n0\tneg_1\tpos_7\n1\tpos_4\tneg_5\n0\tpos_4\tneg_11\n";
    folder(&[
        ("pairs/imdb_pairs_train.tsv.gz", pairs.as_bytes()),
        ("pairs/imdb_pairs_val.tsv", b"1\tneg_8\tneg_9\n"),
        (
            "pairs/imdb_pairs_test.tsv",
            format!("0\tpos_0\tpos_6\n1\tpos_2\tneg_3\n{extra}").as_bytes(),
        ),
        ("imdb/imdb_train.tsv.gz", reviews("train").as_bytes()),
        ("imdb/imdb_test.tsv", reviews("test").as_bytes()),
    ])
}

#[test]
fn pairs_of_reviews() {
    let dir = films("");
    let task = load(config(&dir.path().join("pairs")));
    assert_eq!(sizes(&task), [4, 1, 2]);
    assert_eq!(labels(&task), ["different", "same"]);
    assert!(task.notes[0].to_string().contains("stand-in"), "{:?}", task.notes);
    // Characters that no training pair has are <unk>.
    let known = |c: char| task.vocabulary.as_ref().unwrap().contains(&c.to_string());
    let seen = |c: char| if known(c) { c.to_string() } else { "<unk>".into() };
    let expected = |class: u32, split: &str, a: usize, b: usize| {
        let [a, b] = [a, b].map(|i| format!("{split} {i}: film {}", i / 4));
        (class, a.chars().map(seen).collect::<String>(), b.chars().map(seen).collect::<String>())
    };
    let val = pair(&task, &*task.val, 0);
    assert_eq!(val, expected(1, "train", 16, 18), "val names training reviews");
    let found: BTreeSet<_> = (0..2).map(|i| pair(&task, &*task.test, i)).collect();
    assert_eq!(found, BTreeSet::from([expected(0, "test", 1, 13), expected(1, "test", 5, 6)]));
    let elsewhere = RetrievalConfig {
        reviews: dir.path().join("imdb").to_str().unwrap().to_owned(),
        ..config(&dir.path().join("pairs"))
    };
    assert_eq!(load(elsewhere).split_hash, task.split_hash);
}

#[test]
fn faults_name_file_and_row_or_are_skipped() {
    let good = papers(4, 0);
    let cases: [(&[u8], &str); 7] = [
        (b"1.0\ta\tb\ttext\n", "line 5: expected 5 columns, found 4"),
        (b"1.0\ta\tb\ttext\ttext\tmore\n", "line 5: expected 5 columns, found 6 or more"),
        (b"2.0\ta\tb\tx\ty\n", "line 5, column 1: expected a label 0.0 or 1.0, found \"2.0\""),
        (b"NaN\ta\tb\tx\ty\n", "found \"NaN\""),
        (b"0.5\ta\tb\tx\ty\n", "found \"0.5\""),
        (b"\ta\tb\tx\ty\n", "found \"\""),
        (b"1.0\ta\tb\tx\t\xff\n", "line 5, column 5: not UTF-8"),
    ];
    for (row, part) in cases {
        let dir = folder(&[
            ("new_aan_pairs.train.tsv", good.as_bytes()),
            ("new_aan_pairs.eval.tsv", &[good.as_bytes(), row].concat()),
            ("new_aan_pairs.test.tsv", good.as_bytes()),
        ]);
        let told = error(config(dir.path()));
        assert!(told.contains(part) && told.contains("new_aan_pairs.eval.tsv"), "{told}");
        let task = load(RetrievalConfig { skip_bad: true, ..config(dir.path()) });
        assert_eq!(sizes(&task), [4, 4, 4]);
        assert!(task.notes[0].to_string().contains(part), "{:?}", task.notes);
    }
    for (row, part) in [
        ("1\tpos_0\tpos_99\n", "imdb_pairs_test.tsv, line 3: there is no review test/pos_99"),
        ("1\tpos_0\n", "line 3: expected 3 columns"),
        (
            "1\tpos_0\tbest_1\n",
            "line 3, column 3: expected an id such as pos_123, found \"best_1\"",
        ),
        ("x\tpos_0\tpos_1\n", "line 3, column 1: expected a label"),
    ] {
        let dir = films(row);
        let told = error(config(&dir.path().join("pairs")));
        assert!(told.contains(part), "{told}");
        let task = load(RetrievalConfig { skip_bad: true, ..config(&dir.path().join("pairs")) });
        assert_eq!(sizes(&task), [4, 1, 2]);
    }
}

#[test]
fn settings_and_missing_files_are_explained() {
    let dir = aan();
    for (config, part) in [
        (RetrievalConfig { len: 0, ..config(dir.path()) }, "task.len = 0"),
        (RetrievalConfig { val: 7, ..config(dir.path()) }, "task.val = 7: there are only 6"),
    ] {
        let told = error(config);
        assert!(told.contains(part), "{told}");
    }
    let empty = tempfile::tempdir().unwrap();
    let told = error(config(empty.path()));
    for part in
        ["new_aan_pairs.eval.tsv", "imdb_pairs_val.tsv", "lra_release", "dss data get retrieval"]
    {
        assert!(told.contains(part), "{told}");
    }
    let dir = films("");
    fs::remove_dir_all(dir.path().join("imdb")).unwrap();
    let told = error(config(&dir.path().join("pairs")));
    assert!(told.contains("the IMDB reviews that") && told.contains("task.reviews"), "{told}");
}

#[test]
fn prediction_reads_tables_of_pairs_and_single_texts() {
    let dir = aan();
    let task = load(config(dir.path()));
    assert!(matches!(task.encoder, Encoder::TextPairs(_)));
    let read = |name: &str, content: String| {
        let path = dir.path().join(name);
        fs::write(&path, content).unwrap();
        task.encoder.read(&path)
    };
    let (_, a, b) = pair(&task, &*task.val, 0);
    let Example { input, second, .. } = task.val.example(0).unwrap();
    let second = second.unwrap();
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    for (name, content, columns) in [
        ("two.tsv", format!("{a}\t{b}\n"), [1, 2]),
        ("five.tsv", format!("1.0\tx\ty\t{a}\t{b}\n"), [4, 5]),
        ("two.csv", format!("{},{}\n", quoted(&a), quoted(&b)), [1, 2]),
    ] {
        let [x, y] = columns.map(|column| SequencePlace::Cell(1, column));
        let expected = [(x, input.clone()), (y, second.clone())];
        assert_eq!(read(name, content).unwrap(), expected);
    }
    assert_eq!(read("a.txt", a).unwrap(), [(SequencePlace::File, input)]);
    for (name, content, part) in [
        ("one.tsv", "text\n", "line 1: expected two texts"),
        ("six.tsv", "1\t2\t3\t4\t5\t6\n", "line 1: expected two texts"),
        ("empty.tsv", "", "no sequences"),
    ] {
        let told = read(name, content.to_owned()).unwrap_err().to_string();
        assert!(told.contains(part) && told.contains(name), "{told}");
    }
}

/// Loads whatever the training pairs are: an error or a task, but no panic.
fn try_all(papers: bool, bytes: &[u8], skip_bad: bool) {
    let names = match papers {
        true => ["train", "eval", "test"].map(|part| format!("new_aan_pairs.{part}.tsv")),
        false => ["train", "val", "test"].map(|part| format!("pairs/imdb_pairs_{part}.tsv")),
    };
    let dir = films("");
    for name in &names {
        fs::write(dir.path().join(name), bytes).unwrap();
    }
    let inside = dir.path().join(if papers { "" } else { "pairs" });
    let config = RetrievalConfig { skip_bad, ..config(&inside) };
    if let Ok(task) = TaskConfig::Retrieval(config).load(None, &|_| {}) {
        for data in [&task.train, &task.val, &task.test] {
            (0..data.len()).for_each(|i| drop(data.example(i).unwrap()));
        }
        let _ = task.encoder.read(&dir.path().join(&names[0]));
    }
}

fn cases(cases: u32) -> ProptestConfig {
    let seeds = FileFailurePersistence::Direct("proptest-regressions/retrieval.txt");
    ProptestConfig {
        cases,
        failure_persistence: Some(Box::new(seeds)),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn no_bytes_make_it_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..300), papers: bool, skip_bad: bool,
    ) {
        try_all(papers, &bytes, skip_bad);
    }

    #[test]
    fn no_damage_makes_it_panic(
        papers_form: bool, at: prop::sample::Index, bit in 0u8..8, cut: bool, zipped: bool, skip_bad: bool,
    ) {
        let rows = if papers_form { papers(9, 0) } else { "1\tneg_0\tpos_0\n0\tneg_1\tpos_7\n".into() };
        let mut bytes = if zipped { gz(rows.as_bytes()) } else { rows.into_bytes() };
        let at = at.index(bytes.len());
        if cut {
            bytes.truncate(at);
        } else {
            bytes[at] ^= 1 << bit;
        }
        try_all(papers_form, &bytes, skip_bad);
    }
}

#[test]
fn the_real_stand_in() {
    let Some(dir) = common::data("retrieval_imdb_pairs") else { return };
    if common::data("imdb").is_none() {
        return;
    }
    let task = load(RetrievalConfig { len: 4000, ..config(&dir) });
    assert_eq!(sizes(&task), [43_079, 4_650, 47_429]);
    let counts = [&task.train, &task.val, &task.test].map(|data| classes(&**data));
    assert_eq!(counts, [[21_542, 21_537], [2_326, 2_324], [23_724, 23_705]]);
    // Counted with Python: characters of the training pairs, and how many are read, <eos> included.
    let vocabulary = task.vocabulary.as_ref().unwrap();
    assert_eq!((vocabulary.len(), &*vocabulary[3..15].concat()), (180, " etaoisnrhld"));
    let length = |input: &Input| match input {
        Input::Tokens(ids) => ids.len(),
        Input::Values(_) => panic!(),
    };
    let read = (0..task.train.len()).map(|i| task.train.example(i).unwrap());
    let read = read.map(|e| length(&e.input) + e.second.as_ref().map_or(0, length));
    assert_eq!(read.sum::<usize>(), 111_719_836);
}
