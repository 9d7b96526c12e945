//! The task `text`: every form of the data gives the same splits, faults are named, the real reviews give the known
//! figures.

use crate::common;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use dss_data::characters::Level;
use dss_data::text::Validation;
use dss_data::{
    Dataset, Encoder, Input, InputKind, ReadFile, SequencePlace, Target, TargetKind, Task,
    TaskConfig, TextConfig,
};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use tempfile::TempDir;

/// Review i of a split; the digit is its index.
fn text(split: &str, class: usize, i: usize) -> String {
    let word = ["bad", "good"][class];
    format!("A {word} film,\t{split} {i}<br />\"é\" {}", "x".repeat(i % 7))
}

fn reviews() -> impl Iterator<Item = (&'static str, usize, usize)> {
    ["train", "test"].into_iter().flat_map(|split| {
        let n = if split == "train" { 20 } else { 10 };
        [0, 1].into_iter().flat_map(move |class| (0..n).map(move |i| (split, class, i)))
    })
}

fn official_names() -> impl Iterator<Item = (String, String)> {
    reviews().map(|(split, class, i)| {
        let folder = ["neg", "pos"][class];
        (format!("aclImdb/{split}/{folder}/{i}_{}.txt", [2, 9][class]), text(split, class, i))
    })
}

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(bytes).unwrap();
    gz.finish().unwrap()
}

fn official_folder() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in official_names() {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    fs::create_dir_all(dir.path().join("aclImdb/train/unsup")).unwrap();
    fs::write(dir.path().join("aclImdb/train/unsup/0_0.txt"), "no label").unwrap();
    fs::write(dir.path().join("aclImdb/test/urls_pos.txt"), "http").unwrap();
    dir
}

fn archive() -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (name, text) in official_names().collect::<Vec<_>>().into_iter().rev() {
        let mut header = tar::Header::new_ustar();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, text.as_bytes()).unwrap();
    }
    gz(&tar.into_inner().unwrap())
}

fn one_file(name: &str, bytes: &[u8]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(name), bytes).unwrap();
    dir
}

/// Two tables of these names; `row` writes one review.
fn tables(names: [&str; 2], header: &str, row: impl Fn(usize, usize, &str) -> String) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, wanted) in names.into_iter().zip(["train", "test"]) {
        let rows = reviews().filter(|(split, _, _)| *split == wanted);
        let rows: String = rows.map(|(split, c, i)| row(c, i, &text(split, c, i)) + "\n").collect();
        let content = format!("{header}{rows}");
        let zipped = name.ends_with(".gz");
        let bytes = if zipped { gz(content.as_bytes()) } else { content.into_bytes() };
        fs::write(dir.path().join(name), bytes).unwrap();
    }
    dir
}

fn numbered() -> TempDir {
    tables(["imdb_train.tsv.gz", "imdb_test.tsv.gz"], "", |class, i, text| {
        format!("{class}\t{}\t{i}\ttt01\t{text}", [1, 10][class])
    })
}

fn config(dir: &Path) -> TextConfig {
    common::own_cache();
    let dir = dir.to_str().unwrap().to_owned();
    TextConfig { dir, val: 10, min_count: 1, len: 40, ..TextConfig::default() }
}

fn load(config: TextConfig) -> Task {
    TaskConfig::Text(config).load(None, &|_| {}).unwrap_or_else(|e| panic!("{e}"))
}

fn error(config: TextConfig) -> String {
    TaskConfig::Text(config).load(None, &|_| {}).err().expect("must be refused").message_and_hint()
}

fn sizes(task: &Task) -> [usize; 3] {
    [task.train.len(), task.val.len(), task.test.len()]
}

fn tokens(data: &dyn Dataset, i: usize) -> (Vec<u32>, u32) {
    match data.example(i).unwrap() {
        dss_data::Example { input: Input::Tokens(ids), second: None, target: Target::Class(c) } => {
            (ids, c)
        }
        other => panic!("{other:?}"),
    }
}

/// The text of an example, `<eos>` left out.
fn decoded(task: &Task, data: &dyn Dataset, i: usize) -> (String, u32) {
    let (ids, class) = tokens(data, i);
    let symbols = task.vocabulary.as_ref().unwrap();
    assert_eq!(ids.last(), Some(&2));
    (ids[..ids.len() - 1].iter().map(|&id| &*symbols[id as usize]).collect(), class)
}

fn classes(data: &dyn Dataset) -> [usize; 2] {
    let mut counts = [0; 2];
    (0..data.len()).for_each(|i| counts[tokens(data, i).1 as usize] += 1);
    counts
}

#[test]
fn every_form_gives_the_same_splits() {
    let folder = official_folder();
    let first = load(config(folder.path()));
    assert_eq!(sizes(&first), [30, 10, 20]);
    assert_eq!(
        first.spec.target,
        TargetKind::Class { labels: vec!["negative".into(), "positive".into()] }
    );
    for data in [&first.train, &first.val, &first.test] {
        let [negative, positive] = classes(&**data);
        assert_eq!(negative, positive, "the classes are balanced");
    }
    assert!(
        first.notes[0].to_string().contains("40 training and 20 test reviews"),
        "{:?}",
        first.notes
    );
    let whole = archive();
    let quoted = |class: usize, _: usize, text: &str| {
        format!("\"{}\",{}", text.replace('"', "\"\""), ["negative", "Positive"][class])
    };
    let plain = |class: usize, _: usize, text: &str| format!("{class}\t{text}\r");
    let forms = [
        one_file("aclImdb_v1.tar.gz", &whole),
        numbered(),
        tables(["train.tsv", "test.tsv"], "", plain),
        tables(["train.tsv.gz", "test.tsv"], "Label\ttext\n", plain),
        tables(["train.csv", "test.csv.gz"], "review,sentiment\n", quoted),
    ];
    for form in &forms {
        let task = load(config(form.path()));
        assert_eq!(task.split_hash, first.split_hash);
        assert_eq!(task.encoder, first.encoder);
        for (a, b) in
            [(&first.train, &task.train), (&first.val, &task.val), (&first.test, &task.test)]
        {
            (0..a.len()).for_each(|i| assert_eq!(a.example(i).unwrap(), b.example(i).unwrap()));
        }
    }
    let archive = one_file("mine.tgz", &whole);
    assert_eq!(load(config(&archive.path().join("mine.tgz"))).split_hash, first.split_hash);
    assert_eq!(load(config(&folder.path().join("aclImdb"))).split_hash, first.split_hash);
}

#[test]
fn texts_come_back_and_splits_do_not_depend_on_the_length() {
    let dir = numbered();
    let long = load(TextConfig { len: 100, ..config(dir.path()) });
    let short = load(TextConfig { len: 9, ..config(dir.path()) });
    assert_eq!(long.spec.len, 100);
    let mut seen = Vec::new();
    for (a, b) in [(&long.train, &short.train), (&long.val, &short.val)] {
        for i in 0..a.len() {
            let (whole, class) = decoded(&long, &**a, i);
            let (start, same) = decoded(&short, &**b, i);
            assert_eq!((whole.chars().take(8).collect::<String>(), class), (start, same));
            seen.push((class as usize, whole));
        }
    }
    seen.sort();
    let mut all: Vec<_> =
        reviews().filter(|r| r.0 == "train").map(|(s, c, i)| (c, text(s, c, i))).collect();
    all.sort();
    assert_eq!(seen, all, "train and val together are the training set");
}

#[test]
fn limits_seeds_and_the_authors_way() {
    let dir = numbered();
    let all = load(config(dir.path()));
    let some = load(TextConfig { train: 6, test: 4, ..config(dir.path()) });
    assert_eq!(sizes(&some), [6, 10, 4]);
    assert_eq!((classes(&*some.train), classes(&*some.test)), ([3, 3], [2, 2]));
    (0..6).for_each(|i| assert_eq!(some.train.example(i).unwrap(), all.train.example(i).unwrap()));
    assert_ne!(some.split_hash, all.split_hash);
    assert_eq!(some.vocabulary, all.vocabulary, "counted on all training reviews");

    let other = load(TextConfig { split_seed: 1, ..config(dir.path()) });
    assert_ne!(other.split_hash, all.split_hash);

    let test = load(TextConfig { validation: Validation::Test, ..config(dir.path()) });
    assert_eq!(sizes(&test), [40, 20, 20]);
    (0..20).for_each(|i| assert_eq!(test.val.example(i).unwrap(), test.test.example(i).unwrap()));
    assert!(
        test.notes.iter().any(|note| note.to_string().contains("same reviews")),
        "{:?}",
        test.notes
    );
}

#[test]
fn the_vocabulary_counts_training_texts_as_far_as_they_are_read() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("train.tsv"), "0\tbaab\n1\tcazz\n1\tbac\n").unwrap();
    fs::write(dir.path().join("test.tsv"), "0\tqqqq\n").unwrap();
    let base = TextConfig { len: 3, val: 1, ..config(dir.path()) };
    let task = load(base.clone());
    assert_eq!(task.vocabulary.as_deref().unwrap()[3..], ["a", "b", "c"]);
    assert_eq!(task.spec.input, InputKind::Tokens { vocab: 6 });
    assert_eq!(tokens(&*task.test, 0).0, [1, 1, 2], "unknown characters are <unk>");
    let rare = load(TextConfig { min_count: 2, ..base.clone() });
    assert_eq!(rare.vocabulary.unwrap()[3..], ["a", "b"]);
    let bytes = load(TextConfig { level: Level::Bytes, ..base });
    assert_eq!(bytes.spec.input, InputKind::Tokens { vocab: 259 });
    assert_eq!(tokens(&*bytes.test, 0).0, [u32::from(b'q') + 3, u32::from(b'q') + 3, 2]);
}

#[test]
fn faults_name_file_and_row_or_are_skipped() {
    let good = "0\t2\t5\ttt1\tfine\n1\t9\t6\ttt1\tgood\n1\t9\t7\ttt1\tgreat\n";
    let cases: [(&[u8], &str); 7] = [
        (b"0\t2\t5\ttt1\n", "line 4: expected 5 columns, found 4"),
        (b"2\t2\t5\ttt1\tx\n", "line 4, column 1: expected a label"),
        (b"nan\t2\t5\ttt1\tx\n", "found \"nan\""),
        (b"0\t9\t5\ttt1\tx\n", "line 4, column 2: the rating 9 contradicts"),
        (b"0\t2\tno\ttt1\tx\n", "line 4, column 3: expected a number"),
        (b"0\t2\t5\ttt1\t\n", "line 4: the text is empty"),
        (b"0\t2\t5\ttt1\t\xff\n", "line 4: not UTF-8"),
    ];
    for (row, part) in cases {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("imdb_train.tsv"), [good.as_bytes(), row].concat()).unwrap();
        fs::write(dir.path().join("imdb_test.tsv"), good).unwrap();
        let strict = TextConfig { val: 1, ..config(dir.path()) };
        let told = error(strict.clone());
        assert!(told.contains(part) && told.contains("imdb_train.tsv"), "{told}");
        let task = load(TextConfig { skip_bad: true, ..strict });
        assert_eq!(sizes(&task), [2, 1, 3]);
        assert!(
            task.notes[0].to_string().contains("1 faulty entry")
                && task.notes[0].to_string().contains(part),
            "{:?}",
            task.notes
        );
    }
}

#[test]
fn faults_of_the_official_layout() {
    let dir = official_folder();
    for (name, bytes, part) in [
        ("train/pos/3.txt", &b"x"[..], "such as 12_9.txt"),
        ("train/pos/99_2.txt", b"x", "contradicts"),
        ("test/neg/99_2.txt", b"\xc3", "not UTF-8"),
    ] {
        let path = dir.path().join("aclImdb").join(name);
        fs::write(&path, bytes).unwrap();
        let told = error(config(dir.path()));
        assert!(told.contains(part) && told.contains(name), "{told}");
        let lenient = load(TextConfig { skip_bad: true, ..config(dir.path()) });
        assert_eq!(sizes(&lenient), [30, 10, 20]);
        fs::remove_file(path).unwrap();
    }
    let whole = archive();
    let dir = one_file("aclImdb_v1.tar.gz", &whole[..whole.len() / 2]);
    let told = error(TextConfig { skip_bad: true, ..config(dir.path()) });
    assert!(told.contains("aclImdb_v1.tar.gz") && told.contains("cut short"), "{told}");
}

#[test]
fn truncated_tables_are_errors_even_when_faults_are_skipped() {
    let dir = numbered();
    let path = dir.path().join("imdb_test.tsv.gz");
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 9]).unwrap();
    let told = error(TextConfig { skip_bad: true, ..config(dir.path()) });
    assert!(told.contains("cannot read") && told.contains("imdb_test.tsv.gz"), "{told}");
}

#[test]
fn settings_and_missing_files_are_explained() {
    let dir = numbered();
    let base = config(dir.path());
    for (config, part) in [
        (TextConfig { len: 1, ..base.clone() }, "task.len = 1"),
        (TextConfig { len: 1 << 25, ..base.clone() }, "2^24"),
        (TextConfig { val: 0, ..base.clone() }, "task.validation = test"),
        (TextConfig { val: 40, ..base.clone() }, "task.val = 40: the training set has 40"),
        (TextConfig { train: 31, ..base.clone() }, "there are only 30"),
        (TextConfig { test: 21, ..base.clone() }, "there are only 20"),
    ] {
        let told = error(config);
        assert!(told.contains(part), "{told}");
    }
    let empty = tempfile::tempdir().unwrap();
    let told = error(config(empty.path()));
    assert!(told.contains("aclImdb_v1.tar.gz") && told.contains("dss data get text"), "{told}");
    let none = TaskConfig::default_for("text").unwrap().load(Some(empty.path()), &|_| {});
    assert!(none.err().unwrap().to_string().contains("/imdb"));
}

#[test]
fn the_data_folder_is_searched() {
    let top = tempfile::tempdir().unwrap();
    let dir = numbered();
    fs::create_dir(top.path().join("imdb")).unwrap();
    for name in ["imdb_train.tsv.gz", "imdb_test.tsv.gz"] {
        fs::copy(dir.path().join(name), top.path().join("imdb").join(name)).unwrap();
    }
    // Tables of such names in the data folder itself are not taken for reviews.
    fs::write(top.path().join("train.csv"), "a,b\n").unwrap();
    fs::write(top.path().join("test.csv"), "a,b\n").unwrap();
    common::own_cache();
    let found = TextConfig { dir: String::new(), ..config(top.path()) };
    let task = TaskConfig::Text(found).load(Some(top.path()), &|_| {}).unwrap();
    assert_eq!(task.split_hash, load(config(dir.path())).split_hash);
}

#[test]
fn prediction_reads_files_lines_and_tables() {
    let dir = numbered();
    let task = load(TextConfig { len: 100, ..config(dir.path()) });
    let Encoder::Text(encoder) = &task.encoder else { panic!() };
    let stored: Encoder =
        serde_json::from_str(&serde_json::to_string(&task.encoder).unwrap()).unwrap();
    assert_eq!(stored, task.encoder);
    assert_eq!(encoder.len, 100);

    let folder = tempfile::tempdir().unwrap();
    let read = |name: &str, content: &[u8]| -> Vec<(SequencePlace, Vec<u32>)> {
        let path: PathBuf = folder.path().join(name);
        fs::write(&path, content).unwrap();
        let found = task.encoder.read(&path).unwrap_or_else(|e| panic!("{e}"));
        found
            .into_iter()
            .map(|(place, input)| match input {
                Input::Tokens(ids) => (place, ids),
                Input::Values(_) => panic!(),
            })
            .collect()
    };
    let (example, _) = tokens(&*task.train, 0);
    let (text, class) = decoded(&task, &*task.train, 0);
    let whole = (SequencePlace::File, example.clone());
    let line = |line| (SequencePlace::Line(line), example.clone());
    assert_eq!(read("a.txt", format!("{text}\n").as_bytes()), std::slice::from_ref(&whole));
    assert_eq!(read("a.txt.gz", &gz(text.as_bytes())), [whole]);
    let lines = format!("{text}\n\n{text}\r\n");
    assert_eq!(read("a.lines", lines.as_bytes()), [line(1), line(3)]);
    let quoted = format!("\"{}\"", text.replace('"', "\"\""));
    for (name, content) in [
        ("whole.tsv", text.clone()),
        ("label.tsv", format!("{class}\t{text}")),
        ("imdb.tsv", format!("{class}\t9\t3\ttt1\t{text}")),
        ("one.csv", quoted.clone()),
        ("two.csv", format!("positive,{quoted}")),
    ] {
        assert_eq!(read(name, content.as_bytes()), [line(1)]);
    }
    assert_eq!(read("head.tsv", format!("id\ttext\n7\t{text}").as_bytes()), [line(2)]);
    let csv = format!("Text,id\n{quoted},7\n");
    assert_eq!(read("head.csv", csv.as_bytes()), [line(2)]);

    let path = folder.path().join("bad.csv");
    fs::write(&path, "Well, hello\n").unwrap();
    let told = task.encoder.read(&path).unwrap_err().to_string();
    assert!(told.contains("bad.csv, line 1: expected 1 columns, found 2"), "{told}");
}

/// Loads whatever a file holds, then reads it for prediction: an error or a task, but no panic.
fn try_all(name: &str, bytes: &[u8], skip_bad: bool, level: Level) {
    let dir = one_file(name, bytes);
    if name.contains("train") {
        let other = name.replace("train", "test");
        fs::write(dir.path().join(other), bytes).unwrap();
    }
    let config = TextConfig { val: 1, skip_bad, level, ..config(dir.path()) };
    if let Ok(task) = TaskConfig::Text(config).load(None, &|_| {}) {
        for data in [&task.train, &task.val, &task.test] {
            (0..data.len()).for_each(|i| drop(data.example(i).unwrap()));
        }
        let _ = task.encoder.read(&dir.path().join(name));
    }
}

const NAMES: [&str; 4] = ["imdb_train.tsv", "train.tsv", "train.csv", "aclImdb_v1.tar.gz"];

/// A valid file of each name.
fn valid(which: usize) -> Vec<u8> {
    let (header, row): (_, fn(usize, usize, &str) -> String) = match which {
        0 => ("", |c, i, text| format!("{c}\t{}\t{i}\ttt01\t{text}", [1, 10][c])),
        1 => ("label\ttext\n", |c, _, text| format!("{c}\t{text}")),
        2 => ("", |c, _, text| format!("{c},\"{}\"", text.replace('"', "\"\""))),
        _ => return archive(),
    };
    let rows = reviews().map(|(split, c, i)| row(c, i, &text(split, c, i)) + "\n");
    format!("{header}{}", rows.collect::<String>()).into_bytes()
}

fn cases(cases: u32) -> ProptestConfig {
    let seeds = FileFailurePersistence::Direct("proptest-regressions/text.txt");
    ProptestConfig {
        cases,
        failure_persistence: Some(Box::new(seeds)),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn no_bytes_make_it_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..400), which in 0usize..4, skip_bad: bool, as_bytes: bool,
    ) {
        try_all(NAMES[which], &bytes, skip_bad, if as_bytes { Level::Bytes } else { Level::Characters });
    }

    #[test]
    fn no_table_makes_it_panic(
        rows in prop::collection::vec("(0|1|pos|neg|label|text|\"|9|tt)?[\t,](2|9|é)?[\t,\"]?[0-9]?[\t,]?.{0,6}", 0..12),
        which in 0usize..3, skip_bad: bool, as_bytes: bool,
    ) {
        let level = if as_bytes { Level::Bytes } else { Level::Characters };
        try_all(NAMES[which], rows.join("\n").as_bytes(), skip_bad, level);
    }

    #[test]
    fn no_damage_makes_it_panic(
        which in 0usize..4, at: prop::sample::Index, bit in 0u8..8, cut: bool, zipped: bool, skip_bad: bool,
    ) {
        let mut bytes = valid(which);
        if zipped {
            bytes = gz(&bytes);
        }
        let at = at.index(bytes.len());
        if cut {
            bytes.truncate(at);
        } else {
            bytes[at] ^= 1 << bit;
        }
        try_all(NAMES[which], &bytes, skip_bad, Level::Characters);
    }
}

#[test]
fn the_real_reviews() {
    let Some(dir) = common::data("imdb") else { return };
    let real =
        TextConfig { len: 2048, min_count: 15, validation: Validation::Test, ..config(&dir) };
    let task = load(real.clone());
    assert_eq!(sizes(&task), [25_000, 25_000, 25_000]);
    assert_eq!(task.notes.len(), 1, "complete: {:?}", task.notes);
    for data in [&task.train, &task.test] {
        assert_eq!(classes(&**data), [12_500, 12_500]);
    }
    // 126 of 175 characters occur 15 times in the first 2,047 of each review; the most frequent and the rarest of them.
    let vocabulary = task.vocabulary.unwrap();
    assert_eq!(vocabulary.len(), 129);
    assert_eq!(vocabulary[3..15].concat(), " etaoisnrhld");
    assert_eq!(vocabulary[124..], ["å", "ê", "\\", "\u{201d}", "»"]);
    // Counted with Python: characters read, <eos> included, and the share of reviews that are cut (16.6 %).
    let lengths = |data: &dyn Dataset| -> Vec<usize> {
        (0..data.len()).map(|i| tokens(data, i).0.len()).collect()
    };
    let train = lengths(&*task.train);
    assert_eq!(train.iter().sum::<usize>(), 28_515_799);
    let full = train.iter().filter(|&&n| n == 2048).count();
    assert_eq!(full, 4_147, "4,145 are cut, two fit exactly");
    assert_eq!(lengths(&*task.test).iter().sum::<usize>(), 28_079_736);

    let held = load(TextConfig { validation: Validation::HeldOut, val: 2_500, ..real.clone() });
    assert_eq!(sizes(&held), [22_500, 2_500, 25_000]);
    assert_eq!((classes(&*held.val), held.vocabulary), ([1_250, 1_250], Some(vocabulary)));
    assert!(held.notes.is_empty(), "{:?}", held.notes);
    // Which reviews are held out must never change. Written down from the first run.
    assert!(held.split_hash.starts_with("521a63438e635bd4918e5fea2a9e4799"), "{}", held.split_hash);

    let long = load(TextConfig { len: 4096, ..real.clone() });
    assert_eq!(long.spec.input, InputKind::Tokens { vocab: 134 });
    assert_eq!(lengths(&*long.train).iter().sum::<usize>(), 32_485_404);

    let bytes = load(TextConfig { level: Level::Bytes, ..real });
    assert_eq!(lengths(&*bytes.train).iter().sum::<usize>(), 28_518_396);
}
