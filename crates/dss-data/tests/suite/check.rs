//! `check`: good data, damaged data, real data.

use crate::common;
use std::fs;
use std::path::Path;

use dss_data::catalogue::Verdict;
use dss_data::check::{Report, check};
use dss_data::files::Scale;
use dss_data::{FilesConfig, ListopsConfig, MnistConfig, TaskConfig};

fn quietly(config: &TaskConfig, data_dir: Option<&Path>) -> Report {
    common::own_cache();
    check(config, data_dir, &|_| {})
}

fn idx(dims: &[u32], data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 8, dims.len() as u8];
    dims.iter().for_each(|d| bytes.extend(d.to_be_bytes()));
    bytes.extend(data);
    bytes
}

/// 40 + 10 pictures of 4 x 4 pixels, each bright where its class says.
fn small_mnist(dir: &Path, classes: u8) {
    for (name, count) in [("train", 40u32), ("t10k", 10)] {
        let labels: Vec<u8> = (0..count).map(|i| i as u8 % classes).collect();
        let pixels: Vec<u8> = labels
            .iter()
            .flat_map(|&label| (0..16).map(move |i| if i == label { 255 } else { 0 }))
            .collect();
        fs::write(dir.join(format!("{name}-images-idx3-ubyte")), idx(&[count, 4, 4], &pixels))
            .unwrap();
        fs::write(dir.join(format!("{name}-labels-idx1-ubyte")), idx(&[count], &labels)).unwrap();
    }
}

#[test]
fn a_small_data_set() {
    let dir = tempfile::tempdir().unwrap();
    small_mnist(dir.path(), 10);
    let config = TaskConfig::Smnist(MnistConfig::default());
    let report = quietly(&config, Some(dir.path()));
    let [train, val, test] = &report.splits[..] else { panic!() };
    assert_eq!([train.examples, val.examples, test.examples], [36, 4, 10]);
    let counted: u64 = train.labels.iter().chain(&val.labels).map(|(_, count)| count).sum();
    assert_eq!((counted, test.labels.len()), (40, 10));
    assert!(test.labels.iter().all(|(_, count)| *count == 1), "{:?}", test.labels);
    let values = test.values.unwrap();
    assert_eq!((values.min, values.max, values.mean), (0.0, 1.0, 1.0 / 16.0));
    assert_eq!(report.split_hash, Some(config.load(Some(dir.path()), &|_| {}).unwrap().split_hash));
    // These are not the files of MNIST, as they need not be.
    assert_eq!(report.files.len(), 4);
    assert!(report.files.iter().all(|file| file.verdict == Some(Verdict::Other)));
    assert_eq!(report.notes.len(), 4, "{:?}", report.notes);
    assert!(report.is_good(), "{:?}", report.faults);
    let sample = report.sample.as_ref().unwrap();
    assert!(sample.inputs[0].lines().count() == 2, "{sample:?}");

    let text = report.to_string();
    for part in [
        "1 number per position, length up to 16",
        "10 classes",
        "examples",
        "0.0000 .. 1.0000",
        "faults        none",
    ] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["splits"][2]["examples"], 10);
    assert_eq!(json["files"][0]["verdict"], "other");
}

#[test]
fn classes_that_do_not_occur_are_faults() {
    let dir = tempfile::tempdir().unwrap();
    small_mnist(dir.path(), 9);
    let report = quietly(&TaskConfig::Pmnist(MnistConfig::default()), Some(dir.path()));
    assert_eq!(report.faults, ["train: no example of class 9"]);
}

#[test]
fn data_that_cannot_be_loaded() {
    let dir = tempfile::tempdir().unwrap();
    small_mnist(dir.path(), 10);
    let path = dir.path().join("t10k-labels-idx1-ubyte");
    fs::write(&path, idx(&[10], &[77; 10])).unwrap();
    let report = quietly(&TaskConfig::Smnist(MnistConfig::default()), Some(dir.path()));
    assert!(report.splits.is_empty() && report.files.len() == 4);
    assert_eq!(report.faults.len(), 1);
    assert!(report.faults[0].contains("t10k-labels") && report.faults[0].contains("77"));
    assert!(report.to_string().contains("faults        "));

    let report = quietly(&TaskConfig::Smnist(MnistConfig::default()), None);
    assert!(report.faults[0].contains("not found"), "{:?}", report.faults);
}

#[test]
fn tokens_and_own_files() {
    let config = ListopsConfig {
        train: 60,
        val: 5,
        test: 5,
        min_length: 5,
        max_length: 50,
        ..Default::default()
    };
    let report = quietly(&TaskConfig::Listops(config), None);
    let lengths = report.splits[0].lengths.unwrap();
    assert!(lengths.min >= 7 && lengths.max <= 50 && lengths.min <= lengths.median);
    assert_eq!(report.splits[0].unknown, Some(0.0));
    let sample = report.sample.unwrap().inputs[0].clone();
    assert!(sample.starts_with('[') && sample.ends_with("X <eos>"), "{sample}");

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mine.csv");
    let rows: String =
        (0..60).map(|i| format!("{},{},{}\n", ["up", "down"][i % 2], i, i % 7)).collect();
    fs::write(&path, rows).unwrap();
    let (path, scale) = (path.to_str().unwrap().into(), Scale::None);
    let config = FilesConfig { path, scale, ..Default::default() };
    let report = quietly(&TaskConfig::Files(config), None);
    assert!(report.is_good(), "{:?}", report.faults);
    assert_eq!((report.files.len(), report.files[0].verdict), (1, Some(Verdict::Unknown)));
    assert_eq!(report.splits[0].values.unwrap().min, 0.0);
    assert!(report.sample.unwrap().inputs[0].chars().all(|c| "▁▂▃▄▅▆▇█".contains(c)));
}

#[test]
fn regression_and_positions() {
    for (task, part) in [("adding", "1 number\n"), ("delay", "8 classes, at every position")] {
        let mut settings = serde_json::to_value(TaskConfig::default_for(task).unwrap()).unwrap();
        for key in ["train", "val", "test"] {
            settings[key] = 20.into();
        }
        let report = quietly(&serde_json::from_value(settings).unwrap(), None);
        assert!(report.is_good(), "{:?}", report.faults);
        assert!(report.to_string().contains(part), "{report}");
    }
}

/// Damaged entries are listed, and left out of the counts.
#[test]
fn faulty_entries_are_listed() {
    let dir = tempfile::tempdir().unwrap();
    let made = dss_data::make::Make { count: Some(40), seed: 1, size: None };
    let made = dss_data::make::make("pathfinder", dir.path(), &made, &|_| {}).unwrap();
    for name in ["sample_3.png", "sample_17.png"] {
        fs::write(made.dir.join("imgs/0").join(name), "no picture").unwrap();
    }
    let config = serde_json::json!({"name": "pathfinder", "dir": made.dir});
    let report = quietly(&serde_json::from_value(config).unwrap(), None);
    let counts: Vec<_> = report.splits.iter().map(|split| split.examples).collect();
    assert_eq!(counts, [32, 3, 3]);
    assert!(!report.is_good() && report.faults[0] == "2 faulty entries skipped", "{report}");
    for name in ["sample_3.png", "sample_17.png"] {
        assert!(report.faults.iter().any(|fault| fault.contains(name)), "{report}");
    }
    // The folder itself is the source.
    assert_eq!((report.files.len(), report.files[0].sha256.as_ref()), (1, None));
}

#[test]
fn the_real_data_sets() {
    for (task, folder, file, counts) in [
        ("text", "imdb", "imdb_train.tsv.gz", [22_500, 2_500, 25_000]),
        ("image", "cifar10", "cifar10-gray-train-images-idx3-ubyte.gz", [45_000, 5_000, 10_000]),
    ] {
        let Some(dir) = common::data(folder) else { continue };
        let report = quietly(&TaskConfig::default_for(task).unwrap(), dir.parent());
        assert!(report.is_good(), "{report}");
        assert_eq!(report.files[0].path, dir.join(file));
        assert!(report.splits.iter().map(|split| split.examples).eq(counts), "{report}");
    }
}

#[test]
fn the_real_mnist() {
    let Some(dir) = common::data("mnist") else { return };
    let report = quietly(&TaskConfig::Smnist(MnistConfig::default()), dir.parent());
    assert!(report.is_good(), "{:?}", report.faults);
    assert_eq!(report.files.len(), 4);
    assert!(report.files.iter().all(|file| file.verdict == Some(Verdict::Official)));
    let zeros: u64 = report.splits[..2].iter().map(|split| split.labels[0].1).sum();
    assert_eq!(zeros, 5923);
}
