//! Ranks that train together: the same bits for any number of them, and none is left behind when one fails.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::{TempDir, assert_same, config, remains, run, small_listops};
use burn::tensor::{DType, Device};
use dss_data::{Loader, Padding};
use dss_nn::Model;
use dss_nn::config::NormKind;
use dss_train::config::Setting;
use dss_train::group::{Group, Threads};
use dss_train::{
    Config, Error, Event, Observer, Result, Stopped, Summary, TrainOptions, bridge,
    sharded_gradients, train,
};

/// What a rank does when a step was made.
type OnStep<'a> = &'a (dyn Fn(usize, u64, &AtomicBool) + Sync);
/// What a rank does when something happens.
pub(crate) type OnEvent<'a> = &'a (dyn Fn(usize, &Event<'_>, &AtomicBool) + Sync);

struct Watcher<'a> {
    rank: usize,
    stop: &'a AtomicBool,
    on_event: OnEvent<'a>,
}

impl Observer for Watcher<'_> {
    fn event(&mut self, event: &Event<'_>) {
        (self.on_event)(self.rank, event, self.stop);
    }
}

pub(crate) fn run_watched(
    config: &Config,
    out: &Path,
    resume: bool,
    ranks: usize,
    on_step: OnStep<'_>,
) -> Vec<Result<Summary>> {
    let options = TrainOptions { resume, ..TrainOptions::default() };
    run_with(config, out, &options, ranks, &|rank, event, stop| {
        if let Event::Step { step, .. } = event {
            on_step(rank, *step, stop);
        }
    })
}

/// A run with several ranks, each a thread; how each ended. Only rank 0 sees the directory.
pub(crate) fn run_with(
    config: &Config,
    out: &Path,
    options: &TrainOptions,
    ranks: usize,
    on_event: OnEvent<'_>,
) -> Vec<Result<Summary>> {
    let wait = Duration::from_secs(60);
    let elsewhere = &out.with_file_name("elsewhere");
    let ends = std::thread::scope(|scope| {
        let start = |(rank, member): (usize, Threads)| {
            scope.spawn(move || {
                let group = Group::new(Arc::new(member), wait, wait)?;
                let options = TrainOptions { threads: Some(1), group, ..options.clone() };
                let stop = AtomicBool::new(false);
                let mut watcher = Watcher { rank, stop: &stop, on_event };
                let out = if rank == 0 { out } else { elsewhere };
                train(config, out, options, &mut watcher, &stop)
            })
        };
        let ranks: Vec<_> = Threads::members(ranks).into_iter().enumerate().map(start).collect();
        let ended = |rank: std::thread::ScopedJoinHandle<'_, Result<Summary>>| {
            rank.join().unwrap_or_else(|_| Err(Error::Mismatch("it panicked".into())))
        };
        ranks.into_iter().map(ended).collect()
    });
    assert!(!elsewhere.exists(), "another rank wrote a run directory");
    ends
}

pub(crate) fn run_ranks(config: &Config, out: &Path, resume: bool, ranks: usize) -> Vec<Summary> {
    let ends = run_watched(config, out, resume, ranks, &|_, _, _| {});
    ends.into_iter().map(Result::unwrap).collect()
}

/// 1, 2, 3 and 4 ranks leave the same behind.
fn check(name: &str, config: &Config) {
    let temp = TempDir::new(name);
    let alone = temp.join("1");
    let expected = run(config, &alone, false).unwrap();
    for ranks in [2, 3, 4] {
        let out = temp.join(&ranks.to_string());
        let what = format!("{name}: 1 and {ranks} ranks");
        for summary in run_ranks(config, &out, false, ranks) {
            assert_eq!(summary.test, expected.test, "{what}");
            assert_eq!(summary.best_val, expected.best_val, "{what}");
            assert_eq!(summary.steps, expected.steps, "{what}");
        }
        assert_same(&remains(&alone), &remains(&out), &what);
    }
}

pub(crate) fn changed(config: &Config, sets: &[(&str, &str)]) -> Config {
    let sets: Vec<Setting> = sets.iter().map(|(key, value)| Setting::typed(key, value)).collect();
    config.changed(&[], &sets).unwrap()
}

/// Dropout, BatchNorm, accumulation, plateau, clipping, lengths that differ, averaged weights.
pub(crate) fn twelve_shards(epochs: usize) -> Config {
    let sets = [
        ("train.batch", "24"),
        ("train.shards", "12"),
        ("train.accumulate", "2"),
        ("train.eval_every", "1"),
        ("train.average", "0.5"),
    ];
    changed(&small_listops(epochs), &sets)
}

#[test]
fn dropout_and_batch_norm_with_accumulation() {
    check("ranks-batch-norm", &twelve_shards(2));
}

#[test]
fn layer_norm_in_buckets_by_position() {
    let sets = [
        ("task.d", "20"),
        ("task.train", "30"),
        ("task.val", "7"),
        ("task.test", "5"),
        ("model.layers", "2"),
        ("model.h", "12"),
        ("model.n", "4"),
        ("model.norm", "layer"),
        ("model.bidirectional", "true"),
        ("model.dropout", "0.2"),
        ("train.batch", "12"),
        ("train.shards", "12"),
        ("train.bucket", "1"),
        ("train.eval_batch", "2"),
        ("train.epochs", "2"),
    ];
    check("ranks-layer-norm", &config("delay", &sets));
}

/// A regression, whose answers are sampled; statistics recomputed; and a step that is not full, so that some shards
/// have one example and some none.
#[test]
fn recalibrated_and_with_empty_shards() {
    let sets = [
        ("task.length", "30"),
        ("task.train", "9"),
        ("task.val", "5"),
        ("task.test", "11"),
        ("model.layers", "1"),
        ("model.h", "8"),
        ("model.n", "4"),
        ("model.norm", "batch"),
        ("train.batch", "24"),
        ("train.shards", "12"),
        ("train.recalibrate", "3"),
        ("train.eval_batch", "3"),
        ("train.epochs", "3"),
    ];
    check("ranks-few", &config("adding", &sets));
}

#[test]
fn language_model() {
    let temp = TempDir::new("ranks-lm-text");
    let text = temp.join("a.txt");
    let words = (0..600).map(|i| ["abra", "cad", "xyz", "q"][i * i % 7 % 4]);
    std::fs::write(&text, words.collect::<String>()).unwrap();
    let sets = [
        ("task.path", text.to_str().unwrap()),
        ("task.len", "24"),
        ("task.val", "0.1"),
        ("task.test", "0.1"),
        ("model.layers", "2"),
        ("model.h", "8"),
        ("model.n", "4"),
        ("model.dropout", "0.1"),
        ("train.batch", "12"),
        ("train.shards", "12"),
        ("train.epochs", "2"),
    ];
    check("ranks-lm", &config("lm", &sets));
}

#[test]
fn resumed_twice_with_other_numbers_of_ranks() {
    let temp = TempDir::new("ranks-resumed");
    let config = twelve_shards(4);
    let (whole, parts) = (temp.join("whole"), temp.join("parts"));
    run(&config, &whole, false).unwrap();
    // Each time another rank is asked to stop.
    for (resume, ranks, asked, at) in [(false, 3, 2, 2), (true, 1, 0, 3), (true, 4, 1, 6)] {
        let ends = run_watched(&config, &parts, resume, ranks, &|rank, step, stop| {
            stop.fetch_or(rank == asked && step == at, Ordering::Relaxed);
        });
        for summary in ends.into_iter().map(Result::unwrap) {
            assert_eq!((summary.stopped, summary.steps), (Stopped::Interrupted, at));
        }
    }
    let ends = run_ranks(&config, &parts, true, 2);
    assert!(ends.iter().all(|summary| summary.stopped == Stopped::Finished));
    assert_same(&remains(&whole), &remains(&parts), "stopped with 3, 1 and 4 ranks, ended with 2");
    // A run that is complete tells its stored result to all.
    let ends = run_ranks(&config, &parts, true, 3);
    assert!(ends.iter().all(|summary| summary.was_complete && summary.test == ends[0].test));
    assert_same(&remains(&whole), &remains(&parts), "resumed after the end");
}

/// The folder of `--data` is written down in the run directory, which only rank 0 sees.
#[test]
fn data_of_a_resumed_run_are_found_by_all_ranks() {
    let temp = TempDir::new("ranks-data");
    let rows: String = (0..40).map(|i| format!("{},{i},0.5\n", ["up", "down"][i % 2])).collect();
    std::fs::write(temp.join("mine.csv"), format!("label,a,b\n{rows}")).unwrap();
    let sets = [
        ("task.path", "mine.csv"),
        ("model.layers", "1"),
        ("model.h", "4"),
        ("model.n", "4"),
        ("train.batch", "8"),
        ("train.shards", "4"),
        ("train.epochs", "2"),
        ("train.min_steps", "0"),
    ];
    let (config, out) = (config("files", &sets), temp.join("run"));
    let data_dir = Some(temp.0.clone());
    let options = TrainOptions { data_dir, ..TrainOptions::default() };
    let stopped = run_with(&config, &out, &options, 2, &|_, event, stop| {
        stop.fetch_or(matches!(event, Event::Step { step: 2, .. }), Ordering::Relaxed);
    });
    assert!(stopped.iter().all(|end| end.as_ref().unwrap().stopped == Stopped::Interrupted));
    let ends = run_ranks(&config, &out, true, 3);
    assert!(ends.iter().all(|summary| summary.stopped == Stopped::Finished));
}

#[test]
fn a_directory_that_holds_a_run_is_refused_by_all_ranks() {
    let temp = TempDir::new("ranks-exists");
    let (config, out) = (twelve_shards(1), temp.join("run"));
    run_ranks(&config, &out, false, 2);
    for (rank, end) in run_watched(&config, &out, false, 2, &|_, _, _| {}).into_iter().enumerate() {
        let error = end.unwrap_err();
        match rank {
            0 => assert!(matches!(error, Error::RunExists { .. }), "{error}"),
            _ => assert!(matches!(error, Error::Peer { rank: 0, .. }), "{error}"),
        }
    }
}

#[test]
fn a_disk_that_fails_ends_all_ranks_in_the_same_step() {
    let temp = TempDir::new("ranks-disk");
    let (whole, out) = (temp.join("whole"), temp.join("run"));
    let config = twelve_shards(2);
    run(&config, &whole, false).unwrap();
    let ends = run_watched(&config, &out, false, 3, &|rank, step, _| {
        if rank == 0 && step == 2 {
            // Where the next save would be written.
            std::fs::write(out.join("last.tmp"), "in the way").unwrap();
        }
        assert!(step <= 2, "rank {rank} went on");
    });
    for (rank, end) in ends.into_iter().enumerate() {
        let error = end.unwrap_err();
        assert_eq!(matches!(error, Error::Peer { rank: 0, .. }), rank != 0, "{error:?}");
        assert!(error.to_string().contains("last.tmp"), "{error}");
    }
    std::fs::remove_file(out.join("last.tmp")).unwrap();
    run_ranks(&config, &out, true, 2);
    assert_same(&remains(&whole), &remains(&out), "resumed after the disk failed");
}

#[test]
fn a_loss_that_is_not_finite_ends_all_ranks_alike() {
    let temp = TempDir::new("ranks-nan");
    let config = changed(&twelve_shards(4), &[("train.lr", "1e30"), ("train.clip", "0")]);
    let error = run(&config, &temp.join("1"), false).unwrap_err().to_string();
    let ends = run_watched(&config, &temp.join("3"), false, 3, &|_, _, _| {});
    for end in ends {
        let own = end.unwrap_err();
        assert!(matches!(own, Error::NonFinite { .. }), "{own}");
        let cause = |text: &str| text.lines().next().unwrap().to_owned();
        assert_eq!(cause(&own.to_string()), cause(&error));
    }
}

#[test]
fn a_rank_that_is_gone_ends_the_others_and_the_run_resumes() {
    let temp = TempDir::new("ranks-gone");
    let (whole, out) = (temp.join("whole"), temp.join("run"));
    let config = twelve_shards(2);
    run(&config, &whole, false).unwrap();
    let begin = Instant::now();
    let ends = run_watched(&config, &out, false, 3, &|rank, step, _| {
        assert!(rank != 1 || step < 3, "this rank dies here");
    });
    assert!(begin.elapsed() < Duration::from_secs(50), "they waited for the limit");
    for (rank, end) in ends.into_iter().enumerate() {
        let error = end.unwrap_err();
        assert!(rank == 1 || matches!(error, Error::Lost { .. }), "rank {rank}: {error}");
    }
    run_ranks(&config, &out, true, 4);
    assert_same(&remains(&whole), &remains(&out), "resumed after a rank was lost");
}

#[test]
fn ranks_without_a_shard_and_other_settings_are_refused() {
    let temp = TempDir::new("ranks-refused");
    let config = changed(&twelve_shards(1), &[("train.shards", "2")]);
    // The next divisor of the batch of 24, if there is one.
    for (ranks, advice) in [(3, "shards=3 "), (5, "shards=6 "), (25, "at most train.batch = 24")] {
        for end in run_watched(&config, &temp.join("run"), false, ranks, &|_, _, _| {}) {
            let error = end.unwrap_err().to_string();
            assert!(error.contains("train.shards is 2") && error.contains(advice), "{error}");
        }
    }
    assert!(!temp.join("run").exists());
    let sets = [Setting::new("train.shards", 5)];
    let error = small_listops(1).changed(&[], &sets).unwrap_err().to_string();
    assert!(error.contains("(train.batch = ") && error.contains("a divisor of"), "{error}");
}

/// The sum over shards is the gradient of the batch.
#[test]
fn shards_add_up_to_the_batch() {
    let mut settings = small_listops(1);
    settings.model.norm = NormKind::Layer;
    settings.model.dropout = 0.0;
    let task = settings.task.load(None, &|_| {}).unwrap();
    let device = Device::flex().autodiff();
    let model = Model::new(&settings.model, &bridge::io(&task.spec), 7, &device).unwrap();
    let batches = |size| -> Vec<dss_data::Batch> {
        let order = (0..12).collect();
        let (train, spec) = (task.train.clone(), task.spec.clone());
        let loader = Loader::new(train, spec, order, size, true, Padding::Longest, 0);
        loader.map(|batch| batch.unwrap()).collect()
    };
    let whole = dss_train::gradients(&model, &batches(12), 1, 0, DType::F32).unwrap();
    for (shards, per_shard) in [(12, 1), (3, 2)] {
        let micro = batches(12 / shards / per_shard);
        let group = Group::alone();
        let parts = sharded_gradients(&model, &micro, shards, per_shard, 12, 1, 0, &group).unwrap();
        assert_eq!(whole.tally.scored, parts.tally.scored);
        for p in model.parameters().iter().filter(|p| p.trained) {
            let [a, b] =
                [&whole, &parts].map(|found| bridge::host(found.gradients.get(&p.name).unwrap()));
            let scale = a.iter().fold(1e-6f64, |m, x| m.max(x.abs()));
            let error = a.iter().zip(&b).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
            assert!(error < 2e-4 * scale, "{}: {error:e} of {scale:e}", p.name);
        }
    }
}
