//! Folders of runs, and comparing what runs leave behind.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// A directory of its own, removed at the end.
pub struct TempDir(pub PathBuf);

impl TempDir {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("dss-report-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What a run left behind, without the times and the memory it took.
#[derive(Debug, PartialEq)]
pub struct Remains {
    pub files: Vec<(String, Vec<u8>)>,
    pub metrics: Vec<Value>,
}

pub fn remains(run: &Path) -> Remains {
    let entries = std::fs::read_dir(run.join("last")).unwrap().map(|entry| entry.unwrap());
    let last = entries.map(|entry| format!("last/{}", entry.file_name().to_str().unwrap()));
    let mut last: Vec<String> = last.collect();
    last.sort();
    let names = ["config.toml", "best.safetensors", "answers.json"]
        .map(str::to_owned)
        .into_iter()
        .chain(last);
    let files = names.map(|name| (name.clone(), std::fs::read(run.join(name)).unwrap()));
    Remains { files: files.collect(), metrics: metrics(run) }
}

fn metrics(run: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    let strip = |line: &str| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        for key in ["seconds", "samples_per_s", "peak_mb"] {
            line.as_object_mut().unwrap().remove(key);
        }
        line
    };
    text.lines().map(strip).collect()
}

/// Asserts that two runs left the same behind, and says where they differ first.
pub fn assert_same(a: &Remains, b: &Remains, what: &str) {
    for (i, (x, y)) in a.metrics.iter().zip(&b.metrics).enumerate() {
        assert_eq!(x, y, "{what}: metrics line {}", i + 1);
    }
    assert_eq!(a.metrics.len(), b.metrics.len(), "{what}: lines of metrics");
    let names = |remains: &Remains| -> Vec<String> {
        remains.files.iter().map(|(name, _)| name.clone()).collect()
    };
    assert_eq!(names(a), names(b), "{what}");
    for ((name, x), (_, y)) in a.files.iter().zip(&b.files) {
        assert!(x == y, "{what}: {name} differs ({} and {} bytes)", x.len(), y.len());
    }
}
