//! Who may write into a run directory: one process at a time, and nobody over what is not the run's.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{TempDir, run, small_listops};
use dss_train::Error;
use dss_train::run_dir::RunDir;

const DIR: &str = "DSS_TEST_CLAIMS_DIR";
const ROUNDS: usize = 60;
const PROCESSES: usize = 4;

/// Not a test: one of several processes that all want the same new directories, one after the other.
#[test]
#[ignore = "runs in child processes of the test below"]
fn claimant() {
    let Ok(dir) = std::env::var(DIR) else { return };
    for round in 0..ROUNDS {
        let out = Path::new(&dir).join(format!("{round}/runs/run"));
        let run = match RunDir::create(&out) {
            Ok(run) => run,
            Err(Error::RunBusy { .. } | Error::RunExists { .. }) => continue,
            Err(error) => panic!("round {round}: {error}"),
        };
        let name = format!("{}\n", std::process::id());
        fs::write(run.metrics(), &name).unwrap();
        // Every third run fails before it has begun, and leaves the directory to the next process.
        if round % 3 != 0 {
            run.write_config(&small_listops(1)).unwrap();
        }
        std::thread::sleep(Duration::from_millis(3));
        assert!(out.join(".lock").exists(), "round {round}: someone removed the lock");
        let found = fs::read_to_string(run.metrics());
        assert_eq!(found.ok(), Some(name), "round {round}: someone touched the metrics");
    }
}

#[test]
fn of_several_starts_one_wins_and_keeps_its_files() {
    let temp = TempDir::new("claims");
    let spawn = || {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "claims::claimant", "--ignored", "--test-threads=1", "--nocapture"])
            .env(DIR, &temp.0)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let children: Vec<_> = (0..PROCESSES).map(|_| spawn()).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    for round in 0..ROUNDS {
        let out = temp.join(&format!("{round}/runs/run"));
        assert_eq!(out.join("config.toml").exists(), round % 3 != 0, "round {round}");
        assert_eq!(out.join("metrics.jsonl").exists(), round % 3 != 0, "round {round}");
    }
}

#[test]
fn foreign_files_are_not_overwritten() {
    let temp = TempDir::new("in-the-way");
    let out = temp.join("run");
    fs::create_dir(&out).unwrap();
    for name in ["best.safetensors", "metrics.jsonl", "report.html", "environment.json", "last.tmp"]
    {
        let path = out.join(name);
        fs::write(&path, "mine").unwrap();
        let error = run(&small_listops(1), &out, false).unwrap_err();
        assert!(matches!(error, Error::InTheWay { .. }), "{error}");
        assert!(error.to_string().contains(name), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
        fs::remove_file(path).unwrap();
    }
    // Other files are not in the way.
    fs::write(out.join("notes.txt"), "mine").unwrap();
    run(&small_listops(1), &out, false).unwrap();
}

/// Nobody uses a directory that cannot be made.
#[test]
#[cfg(target_os = "linux")]
fn a_directory_that_cannot_be_made_is_not_in_use() {
    let error = RunDir::create(Path::new("/proc/dss-run")).unwrap_err().to_string();
    assert!(error.starts_with("cannot make the directory /proc/dss-run"), "{error}");
}

#[test]
#[cfg(unix)]
fn links_in_a_run_are_not_followed() {
    let temp = TempDir::new("links");
    let (out, target) = (temp.join("run"), temp.join("precious"));
    run(&small_listops(1), &out, false).unwrap();
    let listing = |dir: &str| {
        let entries = fs::read_dir(out.join(dir)).unwrap().map(|entry| entry.unwrap().path());
        let files = entries.filter(|path| path.is_file()).collect::<Vec<_>>();
        files.into_iter().map(|path| path.strip_prefix(&out).unwrap().to_owned())
    };
    let names: Vec<_> = listing("").chain(listing("last")).chain(listing("last.old")).collect();
    assert!(names.len() > 12 && names.iter().any(|name| name.ends_with(".lock")), "{names:?}");
    for name in &names {
        let (path, aside) = (out.join(name), temp.join("aside"));
        fs::rename(&path, &aside).unwrap();
        fs::copy(&aside, &target).unwrap();
        fs::write(&target, [fs::read(&aside).unwrap(), b"precious".to_vec()].concat()).unwrap();
        let before = fs::read(&target).unwrap();
        std::os::unix::fs::symlink(&target, &path).unwrap();
        let error = run(&small_listops(1), &out, true).unwrap_err();
        assert!(matches!(error, Error::Link { .. }), "{error}");
        assert_eq!(fs::read(&target).unwrap(), before, "{}", name.display());
        fs::remove_file(&path).unwrap();
        fs::rename(&aside, &path).unwrap();
    }
    run(&small_listops(1), &out, true).unwrap();
}
