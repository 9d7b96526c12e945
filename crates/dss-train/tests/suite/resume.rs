//! A run that was killed or stopped, however often, ends with the same bits as one that was not.

use std::hash::{BuildHasher, Hasher};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::{TempDir, assert_same, remains, run, run_watched, small_listops};
use dss_train::{Error, Event, Observer, Stopped};

const EPOCHS: usize = 15;
const DIR: &str = "DSS_TEST_RUN_DIR";

/// Not a test: what the killed process does.
#[test]
#[ignore = "runs in a child process of the test below"]
fn child() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let dir = Path::new(&dir);
    let resume = dir.join("config.toml").exists();
    run(&small_listops(EPOCHS), dir, resume).unwrap();
}

fn spawn(dir: &Path) -> std::process::Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "resume::child", "--ignored", "--test-threads=1"])
        .env(DIR, dir)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn killed_at_random_moments() {
    let temp = TempDir::new("killed");
    let whole = temp.join("whole");
    let begin = Instant::now();
    assert!(spawn(&whole).wait().unwrap().success());
    let duration = begin.elapsed();

    let killed = temp.join("killed");
    let (mut kills, mut delays) = (0, Vec::new());
    while kills < 8 {
        let mut child = spawn(&killed);
        let random = std::hash::RandomState::new().build_hasher().finish();
        // Now and then hardly begun, now and then nearly done.
        let delay = duration.mul_f64(0.5 * (random >> 11) as f64 / (1u64 << 53) as f64);
        delays.push(delay);
        std::thread::sleep(delay);
        match child.try_wait().unwrap() {
            Some(status) => {
                assert!(status.success(), "the resumed run failed; killed after {delays:?}");
                break;
            }
            None => {
                child.kill().unwrap();
                child.wait().unwrap();
                kills += 1;
            }
        }
    }
    assert!(kills >= 1, "nothing was killed: {delays:?}");
    assert!(spawn(&killed).wait().unwrap().success(), "killed after {delays:?}");
    let what = format!("killed after {delays:?}");
    assert_same(&remains(&whole), &remains(&killed), &what);
    let left = std::fs::read_dir(&killed).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = left.filter(|name| name.to_string_lossy().contains(".tmp")).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Raises the stop flag at given steps.
struct StopAt<'a> {
    steps: &'a [u64],
    stop: &'a AtomicBool,
}

impl Observer for StopAt<'_> {
    fn event(&mut self, event: &Event<'_>) {
        if let Event::Step { step, .. } = event
            && self.steps.contains(step)
        {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

/// Raises the stop flag in the middle of an evaluation.
struct StopInEvaluation<'a>(&'a AtomicBool);

impl Observer for StopInEvaluation<'_> {
    fn event(&mut self, event: &Event<'_>) {
        if let Event::Evaluating { .. } = event {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

#[test]
fn stopped_by_the_flag() {
    let temp = TempDir::new("stopped");
    let config = small_listops(4);
    let (whole, stopped) = (temp.join("whole"), temp.join("stopped"));
    let expected = run(&config, &whole, false).unwrap();
    assert_eq!(expected.stopped, Stopped::Finished);

    let stop = AtomicBool::new(false);
    let mut observer = StopAt { steps: &[3, 5, 11], stop: &stop };
    for (resume, step) in [(false, 3), (true, 5), (true, 11)] {
        let summary = run_watched(&config, &stopped, resume, &mut observer, &stop).unwrap();
        assert_eq!((summary.stopped, summary.steps), (Stopped::Interrupted, step));
        assert!(summary.test.is_none());
        stop.store(false, Ordering::Relaxed);
    }
    let mut observer = StopInEvaluation(&stop);
    let summary = run_watched(&config, &stopped, true, &mut observer, &stop).unwrap();
    assert_eq!((summary.stopped, summary.steps), (Stopped::Interrupted, 15));

    let summary = run(&config, &stopped, true).unwrap();
    assert_eq!(summary.stopped, Stopped::Finished);
    assert_eq!((&summary.test, &summary.best_val), (&expected.test, &expected.best_val));
    assert_same(&remains(&whole), &remains(&stopped), "stopped by the flag");

    // Resuming a finished run changes nothing.
    run(&config, &stopped, true).unwrap();
    assert_same(&remains(&whole), &remains(&stopped), "resumed after the end");
}

#[test]
fn a_finished_run_can_grow() {
    let temp = TempDir::new("grow");
    let (long, grown) = (temp.join("long"), temp.join("grown"));
    let mut config = small_listops(4);
    // Both then evaluate at the end of every epoch.
    config.train.eval_every = 0;
    run(&config, &long, false).unwrap();
    config.train.epochs = 2;
    assert_eq!(run(&config, &grown, false).unwrap().steps, 12);
    config.train.epochs = 4;
    assert_eq!(run(&config, &grown, true).unwrap().steps, 24);
    assert_same(&remains(&long), &remains(&grown), "grown from 2 to 4 epochs");

    // What does not change the steps may change.
    (config.train.eval_batch, config.train.early_stop) = (3, 40);
    config.train.checkpoint_seconds = 0;
    run(&config, &grown, true).unwrap();

    config.train.epochs = 3;
    config.train.lr *= 2.0;
    let error = run(&config, &grown, true).unwrap_err();
    let Error::ConfigDiffers { keys, .. } = &error else { panic!("{error}") };
    assert_eq!(keys.len(), 2, "{error}");
    assert!(error.to_string().contains("train.lr: "), "{error}");
}

#[test]
fn the_time_of_a_run_continues() {
    let temp = TempDir::new("time");
    let config = small_listops(2);
    let out = temp.join("run");
    let stop = AtomicBool::new(false);
    let mut observer = StopAt { steps: &[6], stop: &stop };
    let first = run_watched(&config, &out, false, &mut observer, &stop).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let begin = Instant::now();
    let second = run(&config, &out, true).unwrap();
    // The pause does not count, what was done before does.
    let most = first.seconds + begin.elapsed().as_secs_f64();
    assert!(second.seconds <= most, "{} {most}", second.seconds);
    let records = dss_train::run_dir::read_metrics(&out.join("metrics.jsonl")).unwrap();
    let seconds: Vec<f64> = records.iter().map(|record| record.seconds()).collect();
    assert!(seconds.is_sorted(), "{seconds:?}");
}
