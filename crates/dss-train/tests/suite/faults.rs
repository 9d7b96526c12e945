//! A small run whose N-th file operation fails, is cut in half, or is the last before a kill, for every N: what is left
//! resumes to the same bits.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::{TempDir, assert_same, config, remains, run};
use dss_train::Config;

const DIR: &str = "FAULT_DIR";

/// Two steps, each of them evaluated and saved.
fn tiny() -> Config {
    let sets = [
        ("task.length", "10"),
        ("task.train", "16"),
        ("task.val", "4"),
        ("task.test", "4"),
        ("model.layers", "1"),
        ("model.h", "4"),
        ("model.n", "4"),
        ("train.batch", "8"),
        ("train.accumulate", "1"),
        ("train.epochs", "1"),
        ("train.eval_every", "1"),
    ];
    config("adding", &sets)
}

/// Not a test: what the process under test does.
#[test]
#[ignore = "runs in child processes of the test below"]
fn child() {
    let Ok(dir) = std::env::var(DIR) else { return };
    run(&tiny(), Path::new(&dir), false).unwrap();
}

/// The library that makes operations fail.
fn library(temp: &TempDir) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/faults/faults.c");
    let library = temp.join("faults.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source);
    // The linker of every Rust program on this system is `cc`.
    let output = compiler.args(["-ldl", "-lpthread"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    library
}

/// The run with a fault at its operation `at`; whether it ended well.
fn with_fault(library: &Path, dir: &Path, kind: &str, at: usize, count: &Path) -> bool {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "faults::child", "--ignored", "--test-threads=1"]);
    child.env("LD_PRELOAD", library).env(DIR, dir).env("RAYON_NUM_THREADS", "1");
    child.env("FAULT_AT", at.to_string()).env("FAULT_KIND", kind).env("FAULT_COUNT", count);
    child.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
}

#[test]
fn every_file_operation_may_be_the_last() {
    let temp = TempDir::new("faults");
    let library = library(&temp);
    let (whole, count) = (temp.join("whole"), temp.join("count"));
    assert!(with_fault(&library, &whole, "fail", 0, &count));
    let operations: usize = fs::read_to_string(&count).unwrap().parse().unwrap();
    assert!(operations > 50, "{operations} operations");
    let expected = remains(&whole);
    for kind in ["fail", "cut", "kill"] {
        for at in 1..=operations {
            let what = format!("{kind} at operation {at} of {operations}");
            let dir = temp.join("run");
            let ended_well = with_fault(&library, &dir, kind, at, &count);
            assert!(kind == "fail" || !ended_well, "{what}: nothing happened");
            let resume = dir.join("config.toml").exists();
            run(&tiny(), &dir, resume).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_same(&expected, &remains(&dir), &what);
            fs::remove_dir_all(&dir).unwrap();
        }
    }
    eprintln!("{operations} operations, three faults at each");
}
