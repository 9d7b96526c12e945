//! The task `forecast`: reading a column, splitting its rows, windows, baselines, the way back.

use crate::common;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use dss_data::{
    Encoder, Example, ForecastConfig, Input, ReadFile, Target, Task, TaskConfig, forecast,
};
use proptest::prelude::*;

fn load(config: ForecastConfig, data: Option<&Path>) -> Result<Task, String> {
    TaskConfig::Forecast(config).load(data, &|_| {}).map_err(|error| error.message_and_hint())
}

fn small() -> ForecastConfig {
    ForecastConfig { input: 6, horizon: 3, season: 4, ..ForecastConfig::default() }
}

/// Known values and targets.
fn parts(example: Example) -> (Vec<f32>, Vec<f32>) {
    match (example.input, example.target) {
        (Input::Values(x), Target::PositionValues(y)) => (x, y),
        _ => panic!(),
    }
}

/// `time,a,b` with b = 2 · row.
fn ramp(path: &Path, rows: usize) {
    let mut text = "time,a,b\n".to_owned();
    for i in 0..rows {
        writeln!(text, "day {i},{},{}", i % 5, 2 * i).unwrap();
    }
    fs::write(path, text).unwrap();
}

#[test]
fn windows_of_the_three_parts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    ramp(&path, 100);
    let task = load(small(), Some(&path)).unwrap();
    assert_eq!([&task.train, &task.val, &task.test].map(|s| s.len()), [60 - 9 + 1, 18, 18]);
    assert_eq!(task.spec.len, 9);
    let note = task.notes[0].to_string();
    assert_eq!(note, "t.csv: 100 rows, a header, the values from column 3 (\"b\")");
    let Encoder::Forecast(encoder) = &task.encoder else { panic!() };
    // Of 0, 2, ..., 118: mean 59, deviation √((60² − 1)/12) · 2.
    assert!((encoder.mean - 59.0).abs() < 1e-12);
    assert!((encoder.deviation - 2.0 * (3599.0f64 / 12.0).sqrt()).abs() < 1e-12);
    let back = |x: f32| (f64::from(x) * encoder.deviation + encoder.mean) / 2.0;
    for (split, first) in [(&task.train, 0), (&task.val, 60 - 6), (&task.test, 80 - 6)] {
        for i in [0, split.len() - 1] {
            let (x, y) = parts(split.example(i).unwrap());
            assert!(x.len() == 9 && y.len() == 9 && x[6..] == [0.0; 3]);
            assert!(y[..6].iter().all(|y| y.is_nan()));
            for (t, &value) in x[..6].iter().chain(&y[6..]).enumerate() {
                assert!((back(value) - (first + i + t) as f64).abs() < 1e-4);
            }
        }
    }
    // A line is linear.
    let baselines = task.test.baselines();
    assert_eq!(baselines.len(), 3);
    assert!(baselines[0].mse.unwrap() < 1e-3 * baselines[1].mse.unwrap(), "{baselines:?}");
    assert!(task.train.baselines().is_empty());
}

#[test]
fn relative_windows_start_from_their_last_value() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    ramp(&path, 100);
    let task = load(ForecastConfig { relative: true, ..small() }, Some(&path)).unwrap();
    let plain = load(small(), Some(&path)).unwrap();
    let ((x, y), (x0, y0)) =
        (parts(task.val.example(4).unwrap()), parts(plain.val.example(4).unwrap()));
    assert_eq!(x[5], 0.0);
    for t in 0..6 {
        assert!((x[t] - (x0[t] - x0[5])).abs() < 1e-6);
    }
    for t in 6..9 {
        assert!((y[t] - (y0[t] - x0[5])).abs() < 1e-6);
    }
    assert_eq!(task.val.baselines(), plain.val.baselines());

    // And back: a perfect answer gives the column's own values.
    let Encoder::Forecast(encoder) = &task.encoder else { panic!() };
    let window = forecast::window(encoder, &path).unwrap();
    let step = 2.0 / encoder.deviation;
    let outputs: Vec<f64> =
        (0..9).map(|t| if t < 6 { 9.9 } else { step * (t - 5) as f64 }).collect();
    let values = encoder.forecast(window.origin, &outputs);
    for (value, expected) in values.iter().zip([200.0, 202.0, 204.0]) {
        assert!((value - expected).abs() < 1e-4, "{values:?}");
    }
}

#[test]
fn columns_rows_and_faults() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    ramp(&path, 100);
    let named =
        |column: &str| load(ForecastConfig { column: column.into(), ..small() }, Some(&path));
    let (a, two) = (named("a").unwrap(), named("2").unwrap());
    assert_eq!(a.split_hash, two.split_hash);
    assert_ne!(a.split_hash, named("b").unwrap().split_hash);
    let error = named("c").err().unwrap();
    assert!(error.contains("task.column = c") && error.contains("time, a, b"), "{error}");
    let error = named("time").err().unwrap();
    assert!(error.contains("line 2, column 1") && error.contains("day 0"), "{error}");

    for (key, config) in [
        ("train", ForecastConfig { train: 8, ..small() }),
        ("val", ForecastConfig { val: 2, ..small() }),
        ("test", ForecastConfig { test: 2, ..small() }),
        ("train", ForecastConfig { train: 99, ..small() }),
        ("train", ForecastConfig { train: usize::MAX, ..small() }),
        ("input", ForecastConfig { input: 0, ..small() }),
        ("horizon", ForecastConfig { horizon: usize::MAX, ..small() }),
        ("train", ForecastConfig { input: 5000, ..small() }),
    ] {
        let error = load(config, Some(&path)).err().unwrap();
        assert!(error.starts_with(&format!("task.{key} = ")), "{error}");
    }

    for (text, place) in [
        ("x,y\n1,2\n1,\n", "line 3, column 2"),
        ("x,y\n1,2\n1,nan\n", "line 3, column 2"),
        ("x,y\n1,2\n1\n", "line 3, column 2"),
    ] {
        fs::write(&path, text).unwrap();
        let error = load(small(), Some(&path)).err().unwrap();
        assert!(error.contains(place), "{error}");
    }
    let error = load(small(), None).err().unwrap();
    assert!(error.contains("--data FILE") && error.contains("task.column"), "{error}");
}

#[test]
fn a_new_table_has_the_same_column() {
    let folder = tempfile::tempdir().unwrap();
    let (path, new) = (folder.path().join("t.csv"), folder.path().join("new.csv"));
    ramp(&path, 100);
    let task = load(ForecastConfig { column: "a".into(), ..small() }, Some(&path)).unwrap();
    let Encoder::Forecast(encoder) = &task.encoder else { panic!() };
    let json = serde_json::to_string(&task.encoder).unwrap();
    assert_eq!(serde_json::from_str::<Encoder>(&json).unwrap(), task.encoder);
    fs::write(&new, "a,z\n7,7\n0,1\n1,1\n2,1\n3,1\n4,1\n0,1\n").unwrap();
    let Input::Values(x) = forecast::window(encoder, &new).unwrap().input else { panic!() };
    let back = |x: f32| f64::from(x) * encoder.deviation + encoder.mean;
    for (&x, expected) in x.iter().zip([0.0, 1.0, 2.0, 3.0, 4.0, 0.0]) {
        assert!((back(x) - expected).abs() < 1e-5);
    }
    fs::write(&new, "z,y\n1,1\n").unwrap();
    let error = forecast::window(encoder, &new).err().unwrap().to_string();
    assert!(error.contains("no column \"a\""), "{error}");
    fs::write(&new, "a,z\n1,1\n").unwrap();
    let error = forecast::window(encoder, &new).err().unwrap().to_string();
    assert!(error.contains("1 row,") && error.contains("last 6"), "{error}");
}

#[test]
fn etth1_is_split_as_published() {
    let Some(dir) = common::data("ett") else { return };
    let task = load(ForecastConfig::default(), dir.parent()).unwrap();
    let counts = [&task.train, &task.val, &task.test].map(|split| split.len());
    assert_eq!(counts, [8640 - 384 - 96 + 1, 2880 - 96 + 1, 2880 - 96 + 1]);
    let Encoder::Forecast(encoder) = &task.encoder else { panic!() };
    assert_eq!(encoder.column.name.as_deref(), Some("OT"));
    // Computed from the file with Python in f64.
    assert!((encoder.mean - 17.1282617).abs() < 1e-5, "{}", encoder.mean);
    assert!((encoder.deviation - 9.1764910).abs() < 1e-5, "{}", encoder.deviation);
    let last = &task.test.baselines()[1];
    assert!((last.mse.unwrap() - 0.0692642).abs() < 1e-5, "{last:?}");
    assert!((last.mae.unwrap() - 0.2032828).abs() < 1e-5, "{last:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn no_table_makes_it_panic(
        text in "([a-c]{1,2},[a-c]\n)?(([0-9]{1,2}|-1e9|inf||x),[0-9]{1,3}(,[0-9])?\n){0,60}",
        input in 0usize..8, horizon in 0usize..5, season in 0usize..9,
        column in prop::sample::select(vec!["", "1", "a", "9"]),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        fs::write(&path, text).unwrap();
        let column = column.to_owned();
        let config = ForecastConfig { input, horizon, season, column, ..ForecastConfig::default() };
        if let Ok(task) = load(config, Some(&path)) {
            for split in [&task.train, &task.val, &task.test] {
                for i in 0..split.len() {
                    let (x, y) = parts(split.example(i).unwrap());
                    prop_assert!(x.iter().all(|x| x.is_finite()) && y.len() == x.len());
                }
            }
            let known = task.test.baselines();
            prop_assert!(known.iter().all(|b| b.mse.unwrap().is_finite() && b.mae.unwrap().is_finite()));
            let _ = task.encoder.read(&path);
        }
    }
}
