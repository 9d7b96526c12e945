//! The task `files`: every accepted form.

mod faults;
mod prediction;
mod splits;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use dss_data::files::{
    Decimal, Delimiter, FilesEncoder, Form, Header, InputChoice, Scale, TargetChoice, TokenChoice,
};
use dss_data::{
    Dataset, Encoder, FilesConfig, Input, InputKind, ReadFile, SequencePlace, Target, TargetKind,
    Task, TaskConfig,
};

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }
}

/// Numbers as they are, so that tests can name them.
fn config(path: &Path) -> FilesConfig {
    let path = path.to_str().unwrap().into();
    FilesConfig { path, scale: Scale::None, ..FilesConfig::default() }
}

fn load(config: FilesConfig) -> Task {
    TaskConfig::Files(config).load(None, &|_| {}).unwrap_or_else(|e| panic!("{e}"))
}

fn error(config: FilesConfig) -> String {
    TaskConfig::Files(config).load(None, &|_| {}).err().expect("must be refused").to_string()
}

/// Encodes with an encoder that went through JSON, as from a checkpoint.
fn predict(task: &Task, path: &Path) -> dss_data::Result<Vec<(SequencePlace, Input)>> {
    let json = serde_json::to_string(&task.encoder).unwrap();
    let encoder: Encoder = serde_json::from_str(&json).unwrap();
    assert_eq!(encoder, task.encoder);
    encoder.read(path)
}

fn examples(task: &Task) -> Vec<(Input, Target)> {
    let all = [&task.train, &task.val, &task.test];
    let of = |data: &dyn Dataset| {
        (0..data.len())
            .map(|i| data.example(i).unwrap())
            .map(|e| (e.input, e.target))
            .collect::<Vec<_>>()
    };
    all.into_iter().flat_map(|data| of(&**data)).collect()
}

fn sizes(task: &Task) -> [usize; 3] {
    [task.train.len(), task.val.len(), task.test.len()]
}

fn classes(task: &Task) -> Vec<String> {
    match &task.spec.target {
        TargetKind::Class { labels } => labels.clone(),
        other => panic!("{other:?}"),
    }
}

fn values(v: &[f32]) -> Input {
    Input::Values(v.to_vec())
}

/// A version 1 `.npy` of f32.
fn npy(shape: &str, data: &[f32]) -> Vec<u8> {
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    data.iter().for_each(|v| bytes.extend(v.to_le_bytes()));
    bytes
}

/// 40 rows: class up or down and three numbers that tell the row.
fn numbers_csv(header: bool) -> String {
    let mut text = String::from(if header { "label,a,b,c\n" } else { "" });
    for i in 0..40 {
        let class = ["up", "down"][i % 2];
        text.push_str(&format!("{class},{i},0.5,-{i}\n"));
    }
    text
}

#[test]
fn a_table_of_numbers() {
    let folder = Folder::new();
    folder.write("with.csv", numbers_csv(true)).write("without.csv", numbers_csv(false));
    for file in ["with.csv", "without.csv"] {
        let task = load(config(&folder.path(file)));
        assert_eq!((sizes(&task), task.spec.len), ([24, 8, 8], 3), "{file}");
        assert_eq!(classes(&task), ["down", "up"]);
        assert_eq!(task.spec.input, InputKind::Values { channels: 1 });
        let all = examples(&task);
        assert!(all.contains(&(values(&[3.0, 0.5, -3.0]), Target::Class(0))));
        assert!(all.contains(&(values(&[4.0, 0.5, -4.0]), Target::Class(1))));
    }
}

#[test]
fn rows_of_a_table_may_be_shorter() {
    let folder = Folder::new();
    let rows: String =
        (0..30).map(|i| format!("{},{i}{}\n", i % 3, ["", ",1", ",1,2", ",,"][i % 4])).collect();
    let task = load(config(folder.write("x.csv", rows).path("x.csv").as_path()));
    assert_eq!((task.spec.len, classes(&task)), (3, vec!["0".into(), "1".into(), "2".into()]));
    let all = examples(&task);
    for input in [vec![4.0], vec![5.0, 1.0], vec![6.0, 1.0, 2.0], vec![7.0]] {
        assert!(all.iter().any(|(x, _)| *x == values(&input)), "{input:?}");
    }
}

/// The first rows do not say how long the longest sequence is.
#[test]
fn late_rows_may_be_longer() {
    let folder = Folder::new();
    let row = |i: usize| format!("{},{i},2{}\n", i % 2, if i == 140 { ",3,4" } else { "" });
    let rows: String = (0..150).map(row).collect();
    let task = load(config(&folder.write("x.csv", &rows).path("x.csv")));
    assert_eq!(task.spec.len, 4);
    let long = (values(&[140.0, 2.0, 3.0, 4.0]), Target::Class(0));
    assert!(examples(&task).contains(&long));
    // With names, cells beyond the last one belong to no column.
    let message = error(config(&folder.write("y.csv", format!("label,a,b\n{rows}")).path("y.csv")));
    assert!(message.contains("line 142: expected at most 3 cells"), "{message}");
    let texts: String = (0..30).map(|i| format!("{},good, or not: {i}\n", i % 2)).collect();
    let table = format!("label,text\n{texts}");
    let message = error(config(&folder.write("text.csv", table).path("text.csv")));
    assert!(message.contains("line 2: ") && message.contains("quoted"), "{message}");
}

/// Columns are those of the same name in every file.
#[test]
fn columns_in_another_order() {
    let folder = Folder::new();
    let rows = |names: &str, swap: bool| -> String {
        let row = |i: usize| match swap {
            true => format!("-{i},{i},{}\n", i % 2),
            false => format!("{},{i},-{i}\n", i % 2),
        };
        format!("{names}\n{}", (1..30).map(row).collect::<String>())
    };
    folder.write("train.csv", rows("label,a,b", false)).write("test.csv", rows("b,a,label", true));
    let task = load(config(folder.0.path()));
    for i in 0..task.test.len() {
        let Input::Values(numbers) = task.test.example(i).unwrap().input else { panic!() };
        assert!(numbers[0] > 0.0 && numbers[1] < 0.0, "{numbers:?}");
    }
    folder.write("test.csv", rows("label,a,c", false));
    let message = error(config(folder.0.path()));
    assert!(message.contains("test.csv: expected the columns a, b"), "{message}");

    let classes = Folder::new();
    for i in 0..30 {
        let table = ["x,y\n1,-1\n2,-2\n", "y,x\n-1,1\n-3,3\n"][i % 2];
        classes.write(&format!("{}/{i}.csv", ["cat", "dog"][i % 2]), table);
    }
    let task = load(config(classes.0.path()));
    assert!(examples(&task).contains(&(values(&[1.0, -1.0, 3.0, -3.0]), Target::Class(1))));
    classes.write("dog/9.csv", "x,z\n1,2\n");
    let message = error(config(classes.0.path()));
    assert!(message.contains("9.csv: expected the columns x, y"), "{message}");
}

/// What pandas writes: columns that are numbers, an index without a name.
#[test]
fn tables_of_pandas() {
    let folder = Folder::new();
    let row = |i: usize| format!("{},{i},0.5,-{i}\n", ["up", "down"][i % 2]);
    let rows: String = (0..40).map(row).collect();
    let indexed: String = (0..40).map(|i| format!("{i},{}", row(i))).collect();
    let read = |name: &str, table: String| {
        let task = load(config(&folder.write(name, table).path(name)));
        assert_eq!((sizes(&task), task.spec.len), ([24, 8, 8], 3), "{name}");
        assert_eq!(classes(&task), ["down", "up"], "{name}");
        assert!(examples(&task).contains(&(values(&[3.0, 0.5, -3.0]), Target::Class(0))), "{name}");
        task.notes[0].to_string()
    };
    let header = read("label.csv", format!("label,0,1,2\n{rows}"));
    assert_eq!(
        header,
        "label.csv: 40 rows, a header, label from column 1 (\"label\"), 3 steps of numbers per row"
    );
    read("other-name.csv", format!("kind,0,1,2\n{rows}"));
    let plain = read("no-header.csv", rows.clone());
    assert_eq!(
        plain,
        "no-header.csv: 40 rows, no header, label from column 1, 3 steps of numbers per row"
    );
    let index = read("index.csv", format!(",label,0,1,2\n{indexed}"));
    assert!(index.ends_with("column 1 (\"\") only counts the rows"), "{index}");
    read("index-no-header.csv", indexed.clone());
    // The index of a part of a shuffled table.
    let shuffled: String = (0..40).map(|i| format!("{},{}", i * 7 % 40 + 3, row(i))).collect();
    let index = read("shuffled.csv", format!(",label,0,1,2\n{shuffled}"));
    assert!(index.ends_with("column 1 (\"\") only counts the rows"), "{index}");
    // Two tables that were joined.
    let joined: String = (0..40).map(|i| format!("{},{}", i % 20, row(i))).collect();
    let index = read("joined.csv", format!(",label,0,1,2\n{joined}"));
    assert!(index.ends_with("column 1 (\"\") only counts the rows"), "{index}");
    // The column with a name is the label, wherever it is.
    let last = |i: usize| format!("{i},{i},0.5,-{i},{}\n", ["up", "down"][i % 2]);
    let last: String = (0..40).map(last).collect();
    read("last.csv", format!(",0,1,2,kind\n{last}"));
    read("short-index.csv", format!(",kind,0,1,2\n{indexed}"));
    // Columns without names are numbered; the label is the first one.
    let long: String = (0..40).map(|i| format!("{},{}{i}\n", i % 2, "0.5,".repeat(9))).collect();
    let numbered = format!("0,1,2,3,4,5,6,7,8,9,10\n{long}");
    let task = load(config(&folder.write("numbered.csv", numbered).path("numbered.csv")));
    assert_eq!((sizes(&task), classes(&task).len()), ([24, 8, 8], 2));
    assert!(task.notes[0].to_string().contains("40 rows, a header"), "{:?}", task.notes);
    let read = predict(&task, &folder.path("numbered.csv")).unwrap();
    assert_eq!((read.len(), read[0].0), (40, SequencePlace::Line(2)));
    // A class of one example does not make the name of the label another class.
    let row = |i: usize| {
        format!("{},{}{i}\n", ["a", "b", "c"][if i == 20 { 2 } else { i % 2 }], "0.5,".repeat(9))
    };
    let rows_of_ten: String = (0..21).map(row).collect();
    let named = format!("kind,0,1,2,3,4,5,6,7,8,9\n{rows_of_ten}");
    let task = load(config(&folder.write("single.csv", named).path("single.csv")));
    assert_eq!(classes(&task), ["a", "b", "c"]);
    // A number to predict is not beside the count of the rows.
    let measured: String = (0..40).map(|i| format!("{i},{}.5,{i},0.5,-{i}\n", i % 3)).collect();
    for (name, head) in [("values.csv", ",label,0,1,2\n"), ("values-no-header.csv", "")] {
        let path = folder.write(name, format!("{head}{measured}")).path(name);
        let task = load(FilesConfig { target: TargetChoice::Value, ..config(&path) });
        assert_eq!(task.spec.len, 3, "{name}");
        let fifth = (values(&[5.0, 0.5, -5.0]), Target::Values(vec![2.5]));
        assert!(examples(&task).contains(&fifth), "{name}");
    }
    // A first row whose class occurs again is an example.
    let yes = rows.replace("up", "y").replace("down", "n");
    assert_eq!(sizes(&load(config(&folder.write("y.csv", yes).path("y.csv")))), [24, 8, 8]);
}

/// An index with a name says which row it is, and with sorted rows also its class.
#[test]
fn a_named_index_is_not_a_step() {
    let folder = Folder::new();
    let row = |i: usize| format!("{},{},0.5,-{}\n", ["up", "down"][i / 20], i % 7, i % 9);
    let table = |head: &str, id: &dyn Fn(usize) -> String| -> String {
        let rows: String = (0..40).map(|i| format!("{},{}", id(i), row(i))).collect();
        format!("{head},label,a,b,c\n{rows}")
    };
    let read = |name: &str, table: String| load(config(&folder.write(name, table).path(name)));
    for (head, id) in [
        ("id", &(|i: usize| i.to_string()) as &dyn Fn(usize) -> String),
        ("Index", &|i| (i * 7 % 40 + 3).to_string()),
        ("ROW", &|i| (1000 - i).to_string()),
        ("idx", &|i| format!("sample-{i}")),
    ] {
        let task = read(&format!("{head}.csv"), table(head, id));
        assert_eq!((sizes(&task), task.spec.len), ([24, 8, 8], 3), "{head}");
        assert!(examples(&task).contains(&(values(&[3.0, 0.5, -3.0]), Target::Class(1))), "{head}");
        let note = task.notes[0].to_string();
        let told = format!("column 1 (\"{head}\") is left out: it only tells the rows apart");
        assert!(task.notes.len() == 1 && note.ends_with(&told), "{:?}", task.notes);
        // New rows are read by the names of the columns.
        let again = predict(&task, &folder.path(&format!("{head}.csv"))).unwrap();
        assert_eq!(again[3].1, values(&[3.0, 0.5, -3.0]), "{head}");
        let columns = FilesConfig {
            columns: format!("{head},a"),
            ..config(&folder.path(&format!("{head}.csv")))
        };
        if head != "idx" {
            assert_eq!(load(columns).spec.len, 2, "{head} is wanted");
        }
    }
    // Beside an index without a name, as `reset_index` of a table that was saved before.
    let both = read("both.csv", table(",id", &|i| format!("{i},{}", 100 + i)));
    assert_eq!(both.spec.len, 3);
    // Other columns are read, and remarked on.
    let remark = |head: &str, id: &dyn Fn(usize) -> String| {
        let task = read("other.csv", table(head, id));
        assert_eq!(task.spec.len, 4, "{head}");
        let remark = task.notes.get(1).map(|note| note.to_string());
        remark.unwrap_or_else(|| panic!("{head}: {:?}", task.notes))
    };
    for (head, id) in [
        ("patient", &(|i: usize| i.to_string()) as &dyn Fn(usize) -> String),
        ("patient", &|i| (i * 7 % 40 + 3).to_string()),
        ("id", &|i| (i / 2).to_string()),
    ] {
        let found = remark(head, id);
        let expected = format!(
            "other.csv: column 1 (\"{head}\") is read, but looks like an index of the rows; if so, leave it out with \
             --set task.columns=3-5"
        );
        assert_eq!(found, expected);
    }
    let chosen = FilesConfig { columns: "3-5".into(), ..config(&folder.path("other.csv")) };
    assert_eq!(load(chosen).notes.len(), 1);
}

#[test]
fn a_guessed_label_is_announced() {
    let folder = Folder::new();
    let row = |i: usize| format!("{},{},0.5,{}\n", i % 3, i % 7, i % 2);
    let rows: String = (0..40).map(row).collect();
    let path = folder.write("x.csv", format!("f0,f1,f2,Outcome\n{rows}")).path("x.csv");
    let told = |task: &Task| {
        task.notes.iter().any(|note| {
            note.to_string()
                == "x.csv: no column is called label, class, target, y, so the label is taken from \"f0\"; if it is in \
                    another column, use --set task.label=NAME"
        })
    };
    let guessed = load(config(&path));
    assert!(classes(&guessed).len() == 3 && told(&guessed), "{:?}", guessed.notes);
    let set = load(FilesConfig { label: "outcome".into(), ..config(&path) });
    assert!(classes(&set).len() == 2 && !told(&set), "{:?}", set.notes);
}

#[test]
fn classes_of_one_sequence_are_remarked_on() {
    let folder = Folder::new();
    let table = |label: &dyn Fn(usize) -> String| -> String {
        (0..40).map(|i| format!("{},{i}.5,2\n", label(i))).collect()
    };
    let of = |label: &dyn Fn(usize) -> String| {
        config(&folder.write("x.csv", table(label)).path("x.csv"))
    };
    let task = load(of(&|i| ["a", "b", "c"][if i == 20 { 2 } else { i % 2 }].into()));
    let last = task.notes.last().unwrap().to_string();
    assert_eq!(last, "the class \"c\" has one sequence: neither validation nor test has it");
    let task = load(of(&|i| if i < 25 { i } else { i % 3 + 50 }.to_string()));
    let last = task.notes.last().unwrap().to_string();
    assert_eq!(
        last,
        "25 of 28 classes have one sequence, such as \"0\": neither validation nor test has it; if the labels are numbers to predict, set task.target=value"
    );
    let message = error(of(&|i| (1_000_000 + i * i).to_string()));
    assert!(message.contains("too few sequences (40)"), "{message}");
    assert!(message.ends_with("to predict them, set task.target=value"), "{message}");
    let message = error(of(&|i| format!("name{i}")));
    assert!(message.ends_with("task.test_fraction higher"), "{message}");
}

/// Seconds since 1970, for example.
#[test]
fn numbers_that_single_precision_does_not_tell_apart_are_announced() {
    let folder = Folder::new();
    let notes = |offset: f64, target| {
        let x = |i: usize| offset + (i % 7) as f64;
        let row = |i: usize| format!("{},{},{}\n", x(i * 3), x(i), x(i + 1));
        folder.write("x.csv", (0..60).map(row).collect::<String>());
        let path = folder.path("x.csv");
        let task = load(FilesConfig { target, scale: Scale::Auto, ..config(&path) });
        task.notes.iter().map(|note| format!("{note}\n")).collect::<String>()
    };
    for target in [TargetChoice::Class, TargetChoice::Value] {
        assert!(!notes(1000.0, target).contains("single precision"));
        let large = notes(1.7e9, target);
        assert!(large.contains("the numbers are about 1.7000e9"), "{large}");
        assert_eq!(large.contains("the labels are"), target == TargetChoice::Value, "{large}");
    }
}

/// `1.0` is `1`, but `01` is a name of its own.
#[test]
fn codes_are_names() {
    let folder = Folder::new();
    let row = |i: usize| format!("{},{i},{}\n", ["01", "1", "1.0", "-02"][i % 4], i % 3);
    folder.write("codes.csv", (0..40).map(row).collect::<String>());
    assert_eq!(classes(&load(config(&folder.path("codes.csv")))), ["-02", "01", "1"]);
}

#[test]
fn a_column_that_counts_the_steps_is_not_a_channel() {
    let folder = Folder::new();
    for i in 0..40 {
        let rows: String = (0..12).map(|step| format!("{step},{i}.5\n")).collect();
        folder.write(&format!("data/{}/{i}.csv", ["a", "b"][i % 2]), rows);
    }
    let task = load(config(&folder.path("data")));
    assert_eq!(task.spec.input, InputKind::Values { channels: 1 });
    let note = task.notes[0].to_string();
    assert_eq!(note, "a/0.csv: a step per row, no header, column 1 only counts the rows");
    assert_eq!(task.notes[1].to_string(), "data: 40 sequences of 12 steps");
    folder.write("new.csv", "4.5\n".repeat(12));
    for file in ["new.csv", "data/a/4.csv"] {
        let read = predict(&task, &folder.path(file)).unwrap();
        assert_eq!(read[0].1, values(&[4.5; 12]), "{file}");
    }
    let columns = FilesConfig { columns: "1,2".into(), ..config(&folder.path("data")) };
    assert_eq!(load(columns).notes[0].to_string(), "a/0.csv: a step per row, no header");
}

/// Only the sizes tell that the axes of arrays or the columns of tables are others than was meant.
#[test]
fn sizes_and_channels_are_announced() {
    let notes =
        |task: &Task| -> Vec<String> { task.notes.iter().map(|note| note.to_string()).collect() };
    let folder = Folder::new();
    let y: Vec<f32> = (0..30).map(|i| (i % 2) as f32).collect();
    folder.write("y.npy", npy("(30,)", &y));
    for (shape, numbers, expected) in [
        ("(30, 20, 3)", 1800, vec!["x.npy: 30 sequences of 20 steps, 3 channels"]),
        ("(30, 20)", 600, vec!["x.npy: 30 sequences of 20 steps"]),
        (
            "(30, 3, 20)",
            1800,
            vec![
                "x.npy: 30 sequences of 3 steps, 20 channels",
                "x.npy: more channels (20) than steps (3); if the numbers are [channels, steps], as in PyTorch, \
                 transpose them to [steps, channels]",
            ],
        ),
    ] {
        let numbers: Vec<f32> = (0..numbers).map(|i| (i % 7) as f32 + i as f32 / 1e4).collect();
        folder.write("x.npy", npy(shape, &numbers));
        assert_eq!(notes(&load(config(folder.0.path()))), expected, "{shape}");
    }
    let folder = Folder::new();
    for i in 0..30 {
        let class = ["a", "b"][i % 2];
        folder.write(&format!("texts/{class}/{i}.txt"), "x".repeat(i + 1));
        let rows: String = (0..4 + i % 2).map(|step| format!("{i}.5,{step}\n")).collect();
        folder.write(&format!("tables/{class}/{i}.csv"), format!("ax,ay\n{rows}"));
        let numbers: Vec<f32> = (0..6).map(|x| (x * i) as f32).collect();
        folder.write(&format!("arrays/{class}/{i}.npy"), npy("(2, 3)", &numbers));
    }
    let of = |name: &str| notes(&load(config(&folder.path(name))));
    assert_eq!(of("texts"), ["texts: 30 texts of 1 to 30 characters"]);
    let tables = of("tables");
    assert_eq!(tables[0], "a/0.csv: a step per row, a header, the channels are ax, ay");
    assert_eq!(tables[1], "tables: 30 sequences of 4 to 5 steps, 2 channels");
    let arrays = of("arrays");
    assert_eq!(arrays[0], "arrays: 30 sequences of 2 steps, 3 channels");
    assert!(arrays[1].contains("more channels (3) than steps (2)"), "{arrays:?}");
}

#[test]
fn separators_quotes_and_line_ends() {
    let folder = Folder::new();
    let table = numbers_csv(true);
    let expected = examples(&load(config(&folder.write("x.csv", &table).path("x.csv"))));
    let quoted = table.replace("up,", "\"up\",").replace(",0.5,", ",\"0.5\",");
    for (name, table) in [
        ("semicolons.csv", table.replace(',', ";")),
        ("tabs.csv", table.replace(',', "\t")),
        ("tabs.tsv", table.replace(',', "\t")),
        ("quoted.csv", quoted),
        ("windows.csv", table.replace('\n', "\r\n")),
        ("mac.csv", table.replace('\n', "\r")),
    ] {
        let task = load(config(&folder.write(name, table).path(name)));
        assert_eq!(examples(&task), expected, "{name}");
        // New rows are named by their lines, however those end.
        let read = predict(&task, &folder.path(name)).unwrap();
        assert_eq!((read.len(), read[0].0), (40, SequencePlace::Line(2)));
    }
}

#[test]
fn columns_by_name_number_and_range() {
    let folder = Folder::new();
    let path = folder.write("x.csv", numbers_csv(true)).path("x.csv");
    for columns in ["c,a", "4,2", " c , 2 "] {
        let task = load(FilesConfig { columns: columns.into(), ..config(&path) });
        assert!(examples(&task).iter().any(|(x, _)| *x == values(&[-7.0, 7.0])), "{columns}");
    }
    let task = load(FilesConfig { columns: "2-3".into(), label: "1".into(), ..config(&path) });
    assert!(examples(&task).iter().any(|(x, _)| *x == values(&[7.0, 0.5])));
    let message = error(FilesConfig { columns: "d".into(), ..config(&path) });
    assert!(
        message.contains("task.columns = d") && message.contains("label, a, b, c"),
        "{message}"
    );
    let message = error(FilesConfig { columns: "3-2".into(), ..config(&path) });
    assert!(message.contains("3-2 ends before it begins"), "{message}");
    let message = error(FilesConfig { label: "klass".into(), ..config(&path) });
    assert!(message.contains("task.label = klass"), "{message}");
}

fn reviews() -> String {
    let row = |i: usize| {
        format!("{}\t\"Film {i}, {}\n", ["good", "bad"][i % 2], ["ärgerlich", "fine"][i % 2])
    };
    (0..40).map(row).collect()
}

#[test]
fn a_table_of_text() {
    let folder = Folder::new();
    let path = folder.write("reviews.tsv", reviews()).path("reviews.tsv");
    let task = load(config(&path));
    assert_eq!(classes(&task), ["bad", "good"]);
    let longest = "\"Film 38, ärgerlich".chars().count() + 1;
    assert_eq!(task.spec.len, longest);
    let vocabulary = task.vocabulary.clone().unwrap();
    assert_eq!(task.spec.input, InputKind::Tokens { vocab: vocabulary.len() });
    let decoded = |input: &Input| match input {
        Input::Tokens(ids) => {
            ids.iter().map(|&id| vocabulary[id as usize].clone()).collect::<String>()
        }
        Input::Values(_) => panic!(),
    };
    let all = examples(&task);
    assert!(
        all.iter().any(|(x, y)| decoded(x) == "\"Film 4, ärgerlich<eos>" && *y == Target::Class(1))
    );

    let bytes = load(FilesConfig { tokens: TokenChoice::Bytes, ..config(&path) });
    assert_eq!(
        (bytes.spec.len, bytes.spec.input.clone()),
        (longest + 1, InputKind::Tokens { vocab: 259 })
    );
    assert_eq!(bytes.vocabulary.unwrap()[3 + 65], "0x41");

    let cut = load(FilesConfig { max_length: 5, ..config(&path) });
    assert_eq!(cut.spec.len, 5);
    // Only what is left of the training texts makes the vocabulary.
    assert_eq!(cut.vocabulary.as_ref().unwrap()[3..], ["\"", "F", "i", "l"]);
    assert!(examples(&cut).iter().all(|(x, _)| *x == Input::Tokens(vec![3, 4, 5, 6, 2])));
}

#[test]
fn settings_of_the_other_kind_are_refused() {
    let folder = Folder::new();
    folder.write("x.tsv", reviews()).write("x.csv", numbers_csv(true));
    let text = FilesConfig { scale: Scale::Standardise, ..config(&folder.path("x.tsv")) };
    assert!(error(text).contains("task.scale = standardise: the data are text"));
    let numbers = FilesConfig { tokens: TokenChoice::Bytes, ..config(&folder.path("x.csv")) };
    assert!(error(numbers).contains("task.tokens = bytes: the data are numbers"));
}

#[test]
fn the_text_column_is_found_or_asked_for() {
    let folder = Folder::new();
    let rows: String = (0..30).map(|i| format!("{},word {i},{}\n", 3 * i, i % 2)).collect();
    folder.write("named.csv", format!("id,text,label\n{rows}")).write("plain.csv", rows);
    let task = load(config(&folder.path("named.csv")));
    assert!(
        task.vocabulary.is_some() && task.notes[0].to_string().contains("column 3 (\"label\")"),
        "{:?}",
        task.notes
    );
    let plain = FilesConfig { label: "3".into(), ..config(&folder.path("plain.csv")) };
    let message = error(plain.clone());
    assert!(message.contains("line 1, column 2") && message.contains("task.text"), "{message}");
    assert!(load(FilesConfig { text: "2".into(), ..plain }).vocabulary.is_some());
}

#[test]
fn a_header_can_be_forced() {
    let folder = Folder::new();
    let path = folder.write("x.csv", numbers_csv(false)).path("x.csv");
    let all = |header| sizes(&load(FilesConfig { header, ..config(&path) })).iter().sum::<usize>();
    assert_eq!((all(Header::Auto), all(Header::No), all(Header::Yes)), (40, 40, 39));
}

#[test]
fn a_folder_per_class() {
    for (extension, content) in [
        (
            "txt",
            Box::new(|i: usize| format!("text {i}\n").into_bytes())
                as Box<dyn Fn(usize) -> Vec<u8>>,
        ),
        ("csv", Box::new(|i| format!("x,y\n{i},1\n{i},2\n").into_bytes())),
        ("npy", Box::new(|i| npy("(2, 2)", &[i as f32, 1.0, i as f32, 2.0]))),
    ] {
        let folder = Folder::new();
        for i in 0..30 {
            folder.write(&format!("{}/{i}.{extension}", ["cat", "dog"][i % 2]), content(i));
        }
        folder.write("cat/.hidden", "x").write("README", "x").write("dog/notes.md", "x");
        let task = load(config(folder.0.path()));
        assert_eq!((classes(&task), sizes(&task)), (vec!["cat".into(), "dog".into()], [18, 6, 6]));
        assert!(task.notes[0].to_string().starts_with("1 file left out"), "{:?}", task.notes);
        if extension == "txt" {
            assert_eq!(task.spec.len, "text 10".len() + 1);
        } else {
            assert_eq!((task.spec.len, &task.spec.input), (2, &InputKind::Values { channels: 2 }));
            assert!(examples(&task).contains(&(values(&[7.0, 1.0, 7.0, 2.0]), Target::Class(1))));
        }
    }
}

#[test]
fn given_splits_are_kept() {
    let folder = Folder::new();
    for (split, n) in [("train", 20), ("validation", 4), ("test", 6)] {
        for i in 0..n {
            folder.write(&format!("{split}/{}/{i}.txt", ["a", "b"][i % 2]), format!("{split} {i}"));
        }
    }
    assert_eq!(sizes(&load(config(folder.0.path()))), [20, 4, 6]);
    fs::remove_dir_all(folder.path("validation")).unwrap();
    assert_eq!(sizes(&load(config(folder.0.path()))), [16, 4, 6]);
    folder.write("test/a/copy.txt", "train 0").write("test/b/copy.txt", "train 1");
    let notes = load(config(folder.0.path())).notes;
    assert!(notes.iter().any(|note| note.to_string().contains("also in train")), "{notes:?}");

    let tables = Folder::new();
    tables.write("train.csv", numbers_csv(true)).write("test.csv", numbers_csv(true));
    assert_eq!(sizes(&load(config(tables.0.path()))), [32, 8, 40]);
}

#[test]
fn a_pair_of_arrays() {
    let folder = Folder::new();
    let x: Vec<f32> = (0..120).map(|i| i as f32).collect();
    let y: Vec<f32> = (0..20).map(|i| (i % 2) as f32).collect();
    folder.write("x.npy", npy("(20, 3, 2)", &x)).write("y.npy", npy("(20,)", &y));
    let task = load(config(folder.0.path()));
    assert_eq!((task.spec.len, &task.spec.input), (3, &InputKind::Values { channels: 2 }));
    assert_eq!(classes(&task), ["0", "1"]);
    assert!(
        examples(&task).contains(&(values(&[6.0, 7.0, 8.0, 9.0, 10.0, 11.0]), Target::Class(1)))
    );

    let value = FilesConfig { target: TargetChoice::Value, ..config(folder.0.path()) };
    folder.write("y.npy", npy("(20, 2)", &x[..40]));
    let task = load(value);
    assert_eq!(task.spec.target, TargetKind::Values { outputs: 2 });
    assert!(examples(&task).iter().any(|(x, y)| *x == values(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
        && *y == Target::Values(vec![0.0, 1.0])));
    assert!(error(config(folder.0.path())).contains("task.target=value"));
    folder.write("y.npy", npy("(19,)", &y[..19]));
    assert!(error(config(folder.0.path())).contains("expected 20 labels"));
}

#[test]
fn arrays_of_unequal_length_with_named_classes() {
    let folder = Folder::new();
    let x: Vec<f32> = (0..60).map(|i| i as f32).collect();
    let [y, lengths]: [Vec<f32>; 2] =
        [|i| (i % 2) as f32, |i| 1.0 + (i % 3) as f32].map(|f| (0..20).map(f).collect());
    folder.write("x.npy", npy("(20, 3)", &x)).write("y.npy", npy("(20,)", &y));
    folder.write("lengths.npy", npy("(20,)", &lengths)).write("classes.txt", "no\nyes, it is\n");
    let task = load(config(folder.0.path()));
    assert_eq!(
        (task.spec.len, classes(&task)),
        (3, vec!["no".to_owned(), "yes, it is".to_owned()])
    );
    assert!(examples(&task).contains(&(values(&[3.0, 4.0]), Target::Class(1))));
    assert!(examples(&task).contains(&(values(&[18.0]), Target::Class(0))));
    let message = || error(config(folder.0.path()));
    folder.write("classes.txt", "no\n");
    assert!(message().contains("[1.0] is not the number of a class"), "{}", message());
    for (shape, count, expected) in
        [("(19,)", 19, "expected a length per sequence"), ("(20,)", 20, "1 to 3")]
    {
        folder.write("lengths.npy", npy(shape, &vec![4.0; count]));
        assert!(message().contains(expected), "{}", message());
    }
}

#[test]
fn standardise_uses_train_only() {
    let folder = Folder::new();
    for i in 0..40 {
        folder.write(&format!("train/{}/{i}.csv", i % 2), format!("{i},7\n{},7\n", 2 * i));
        folder.write(&format!("test/{}/{i}.csv", i % 2), "1000,1000\n");
    }
    let task = load(FilesConfig { scale: Scale::Standardise, ..config(folder.0.path()) });
    let train: Vec<f32> = (0..task.train.len())
        .flat_map(|i| match task.train.example(i).unwrap().input {
            Input::Values(v) => v,
            Input::Tokens(_) => panic!(),
        })
        .collect();
    let first: Vec<f64> = train.iter().step_by(2).map(|&v| v.into()).collect();
    let mean = first.iter().sum::<f64>() / first.len() as f64;
    let square = first.iter().map(|v| v * v).sum::<f64>() / first.len() as f64;
    assert!(mean.abs() < 1e-5 && (square - 1.0).abs() < 1e-5, "{mean} {square}");
    assert!(train.iter().skip(1).step_by(2).all(|&v| v == 0.0));

    let Encoder::Files(FilesEncoder { form: Form::Numbers { scaling: Some(scaling), .. }, .. }) =
        &task.encoder
    else {
        panic!()
    };
    assert_eq!((scaling.mean[1], scaling.sd[1]), (7.0, 1.0));
}

#[test]
fn a_value_to_predict() {
    let folder = Folder::new();
    let rows: String = (0..40).map(|i| format!("{},{i},1\n", i as f32 * 0.25)).collect();
    let path = folder.write("x.csv", &rows).path("x.csv");
    let message = error(config(&path));
    assert!(message.contains("task.target=value"), "{message}");
    let task = load(FilesConfig { target: TargetChoice::Value, ..config(&path) });
    assert!(examples(&task).contains(&(values(&[10.0, 1.0]), Target::Values(vec![2.5]))));
    folder.write("x.csv", format!("{rows}high,1,1\n"));
    let message = error(FilesConfig { target: TargetChoice::Value, ..config(&path) });
    assert!(message.contains("x.csv:41") && message.contains("\"high\""), "{message}");
}

#[test]
fn a_decimal_comma() {
    let folder = Folder::new();
    let table = numbers_csv(true);
    let expected = load(config(&folder.write("x.csv", &table).path("x.csv")));
    let comma = |table: &str, separator: &str| table.replace(',', separator).replace('.', ",");
    let without_header = table.split_once('\n').unwrap().1;
    for (name, table) in [
        ("semicolons.csv", comma(&table, ";")),
        ("tabs.csv", comma(&table, "\t")),
        ("tabs.tsv", comma(&table, "\t")),
        ("plain.csv", comma(without_header, ";")),
    ] {
        let path = folder.write(name, table).path(name);
        let task = load(config(&path));
        assert_eq!(examples(&task), examples(&expected), "{name}");
        let note = task.notes[0].to_string();
        assert!(note.contains("40 rows separated by") && note.contains("decimal comma"), "{note}");
        // New files are read in the same way, with a point as well.
        for (new, row) in [("new.csv", "3;0,5;-3\n"), ("point.csv", "3;0.5;-3\n")] {
            let read = predict(&task, &folder.write(new, row).path(new)).unwrap();
            assert_eq!(read[0].1, values(&[3.0, 0.5, -3.0]), "{name} {new}");
        }
    }
    // Groups of thousands are not guessed to be decimals.
    let thousands: String =
        (0..40).map(|i| format!("{};1,{}00;2\n", ["up", "down"][i % 2], i % 9 + 1)).collect();
    let path = folder.write("thousands.csv", thousands).path("thousands.csv");
    let message = error(config(&path));
    assert!(message.contains("\"1,100\" is not a number"), "{message}");
    let told = load(FilesConfig { decimal: Decimal::Comma, ..config(&path) });
    assert!(examples(&told).iter().any(|(x, _)| *x == values(&[1.1, 2.0])));
}

#[test]
fn a_delimiter_that_is_set() {
    let folder = Folder::new();
    // A first line without a number: only commas could be guessed.
    let rows: String = (0..40).map(|i| format!("{} {i} 0.5\n", ["up", "down"][i % 2])).collect();
    let path = folder.write("spaces.csv", rows).path("spaces.csv");
    assert!(error(config(&path)).contains("nothing is left besides the label"));
    let task = load(FilesConfig { delimiter: Delimiter::Space, ..config(&path) });
    assert!(examples(&task).contains(&(values(&[3.0, 0.5]), Target::Class(0))));
    assert_eq!(predict(&task, &path).unwrap().len(), 40);
    for (text, delimiter) in [
        (",", Delimiter::Comma),
        (";", Delimiter::Semicolon),
        ("\t", Delimiter::Tab),
        ("auto", Delimiter::Auto),
    ] {
        let config = serde_json::json!({ "name": "files", "delimiter": text, "decimal": "," });
        let TaskConfig::Files(config) = serde_json::from_value(config).unwrap() else { panic!() };
        assert_eq!((config.delimiter, config.decimal), (delimiter, Decimal::Comma));
    }
}

#[test]
fn the_file_may_be_named_by_the_data_folder() {
    let folder = Folder::new();
    let file = folder.write("x.csv", numbers_csv(true)).path("x.csv");
    let task = TaskConfig::Files(FilesConfig::default());
    assert_eq!(task.load(Some(&file), &|_| {}).unwrap().train.len(), 24);
    assert_eq!(task.located(Some(&file)).place(), file.to_str());
    assert!(task.load(Some(folder.0.path()), &|_| {}).is_err(), "a folder is not meant");
}

#[test]
fn simple_methods_are_scored() {
    let folder = Folder::new();
    // The class is the sign of the mean, and up is more frequent.
    let row = |i: usize| {
        let up = !i.is_multiple_of(3);
        let level = if up { 1.0 } else { -1.0 };
        let value = |t: usize| level + (i * 7 + t * 13) as f64 % 5.0 / 5.0;
        format!("{},{},{},{}\n", if up { "up" } else { "down" }, value(0), value(1), value(2))
    };
    let rows: String = (0..60).map(row).collect();
    let task = load(config(&folder.write("x.csv", rows).path("x.csv")));
    assert!(task.train.baselines().is_empty());
    let found = task.test.baselines();
    assert_eq!((found[0].name.as_str(), found.len()), ("always up", 2));
    assert!((found[0].accuracy.unwrap() - 2.0 / 3.0).abs() < 0.1, "{found:?}");
    assert_eq!((found[1].accuracy, found[1].mse), (Some(1.0), None));

    let rows: String = (0..60).map(|i| format!("{},{i},{}\n", 2 * i, i + 1)).collect();
    let value = FilesConfig {
        target: TargetChoice::Value,
        ..config(&folder.write("y.csv", rows).path("y.csv"))
    };
    let found = load(value).test.baselines();
    assert_eq!(found[0].name, "mean of the training");
    assert!(found[1].mse.unwrap() < 1e-2 * found[0].mse.unwrap(), "{found:?}");
    let found = load(config(&folder.write("t.tsv", reviews()).path("t.tsv"))).val.baselines();
    assert_eq!(found[1].accuracy, Some(1.0), "by its characters");
}

#[test]
fn numbers_are_standardised_unless_told() {
    let folder = Folder::new();
    let path = folder.write("x.csv", numbers_csv(true)).path("x.csv");
    let scaling = |scale| match load(FilesConfig { scale, ..config(&path) }).encoder {
        Encoder::Files(FilesEncoder { form: Form::Numbers { scaling, .. }, .. }) => scaling,
        other => panic!("{other:?}"),
    };
    assert_eq!(scaling(Scale::Auto), scaling(Scale::Standardise));
    assert!(scaling(Scale::Auto).is_some() && scaling(Scale::None).is_none());
    let text = folder.write("x.tsv", reviews()).path("x.tsv");
    assert!(load(FilesConfig { scale: Scale::Auto, ..config(&text) }).vocabulary.is_some());
}

/// `docs/own-data.md`, which a package is without.
fn guide() -> Option<String> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    if docs.is_dir() {
        return Some(fs::read_to_string(docs.join("own-data.md")).unwrap());
    }
    // Not by eprintln!, which tests show only when they fail.
    let _ = writeln!(std::io::stderr(), "skipped: docs/own-data.md is not part of this package");
    None
}

/// The first example of `docs/own-data.md`, run as it is there.
#[cfg(unix)]
#[test]
fn the_example_of_the_guide_makes_a_table_that_loads() {
    let Some(guide) = guide() else { return };
    let script = guide.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let folder = Folder::new();
    let made =
        std::process::Command::new("sh").args(["-c", script]).current_dir(folder.0.path()).status();
    assert!(made.unwrap().success());
    let task = load(config(&folder.path("waves.csv")));
    assert_eq!((sizes(&task), task.spec.len), ([240, 80, 80], 100));
    assert_eq!(classes(&task), ["sine", "square"]);
    // Prediction takes the rows with their label column as they are.
    assert_eq!(predict(&task, &folder.path("waves.csv")).unwrap().len(), 400);
}
