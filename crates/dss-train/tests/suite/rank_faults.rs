//! What only one rank can see, and not the first one: a stop in an evaluation, damaged data, a NaN. It reaches all ranks
//! in the same step, the state is saved, and the run resumes with another number of ranks to the same bits.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{TempDir, assert_same, config, remains, run};
use crate::ranks::{changed, run_ranks, run_watched, run_with, twelve_shards};
use dss_data::{Dataset, Input, epoch_order};
use dss_nn::checkpoint;
use dss_train::{Config, Error, Event, Split, Stopped, TrainOptions};

/// Step of the state in `last/`.
fn saved_step(run: &Path) -> u64 {
    checkpoint::load_meta(run.join("last/model.safetensors")).unwrap().step
}

#[test]
fn a_stop_in_an_evaluation_does_not_wait_for_its_end() {
    let temp = TempDir::new("ranks-evaluation");
    let (whole, out) = (temp.join("whole"), temp.join("run"));
    let sets = [("task.val", "48"), ("train.eval_batch", "1"), ("train.eval_every", "2")];
    let config = changed(&twelve_shards(1), &sets);
    run(&config, &whole, false).unwrap();
    let seen = [0, 1].map(|_| AtomicUsize::new(0));
    let ends = run_with(&config, &out, &TrainOptions::default(), 2, &|rank, event, stop| {
        if let Event::Evaluating { split: Split::Val, .. } = event {
            seen[rank].fetch_add(1, Ordering::Relaxed);
            stop.fetch_or(rank == 1, Ordering::Relaxed);
        }
    });
    for summary in ends.into_iter().map(Result::unwrap) {
        assert_eq!((summary.stopped, summary.steps), (Stopped::Interrupted, 2));
    }
    let seen = seen.map(AtomicUsize::into_inner);
    assert!(seen[1] == 1 && seen[0] < 8, "{seen:?} batches of 24 each were scored");
    run_ranks(&config, &out, true, 3);
    assert_same(&remains(&whole), &remains(&out), "stopped in an evaluation");
}

const DIR: &str = "DSS_TEST_RANK_FAULTS_DIR";

/// A text that its number and its length tell.
fn review(k: usize) -> String {
    format!("{k:03}{}", "x".repeat(k))
}

/// Reviews of the numbers 0 to 199, in the tables of the task `text`.
fn write_reviews(folder: &Path) {
    let table = |numbers: std::ops::Range<usize>| -> String {
        numbers
            .map(|k| format!("{}\t{}\t{k}\tfilm{k}\t{}\n", k % 2, 2 + k % 2 * 6, review(k)))
            .collect()
    };
    fs::write(folder.join("imdb_train.tsv"), table(0..160)).unwrap();
    fs::write(folder.join("imdb_test.tsv"), table(160..200)).unwrap();
}

/// Steps of 12 shards with one review each, evaluated every four steps one review at a time.
fn reviews(folder: &Path) -> Config {
    let sets = [
        ("task.dir", folder.to_str().unwrap()),
        ("task.level", "bytes"),
        ("task.len", "220"),
        ("task.train", "96"),
        ("task.val", "24"),
        ("task.test", "12"),
        ("model.layers", "1"),
        ("model.h", "4"),
        ("model.n", "4"),
        ("train.batch", "12"),
        ("train.shards", "12"),
        ("train.accumulate", "1"),
        ("train.eval_batch", "1"),
        ("train.eval_every", "4"),
        ("train.epochs", "1"),
        ("train.min_steps", "0"),
    ];
    config("text", &sets)
}

/// Overwrites an example in the cache: ranks that read it from now on find it damaged.
fn damage(cache: &Path, split: &dyn Dataset, i: usize) {
    let Input::Tokens(tokens) = split.example(i).unwrap().input else { unreachable!("a text") };
    // The number, as many letters, the end of the text.
    let text = review(tokens.len() - 4);
    let store = fs::read_dir(cache).unwrap().map(|entry| entry.unwrap().path());
    let store = store.into_iter().find(|path| path.extension().is_some_and(|kind| kind == "store"));
    let store = store.unwrap();
    let bytes = fs::read(&store).unwrap();
    let place = bytes.windows(text.len()).position(|window| window == text.as_bytes()).unwrap();
    let file = fs::File::options().write(true).open(&store).unwrap();
    file.write_all_at(b"???", place as u64).unwrap();
}

/// Not a test: what the process under test does, with a cache of its own.
#[test]
#[ignore = "runs in a child process of the test below"]
fn child() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let dir = Path::new(&dir);
    let config = reviews(dir);
    let whole = dir.join("whole");
    run(&config, &whole, false).unwrap();
    let task = config.task.load(None, &|_| {}).unwrap();
    // Of three ranks, rank 1 has the shards 4 to 7: here of step 7, which no loader has read when step 1 is made. And it
    // has every third review of an evaluation.
    let late = epoch_order(96, config.train.seed, 0)[6 * 12 + 5] as usize;
    let faults = [("training", &task.train, late, 6), ("validation", &task.val, 10, 4)];
    for (what, split, i, at) in faults {
        let out = dir.join(what);
        let ends = run_watched(&config, &out, false, 3, &|rank, step, _| {
            if rank == 1 && step == 1 {
                damage(&dir.join("cache"), split.as_ref(), i);
            }
            assert!(step <= at, "{what}: rank {rank} made step {step}");
        });
        for (rank, end) in ends.into_iter().enumerate() {
            let error = end.unwrap_err();
            assert_eq!(matches!(error, Error::Peer { rank: 1, .. }), rank != 1, "{error:?}");
            assert!(error.to_string().contains("is damaged"), "{what}: {error}");
        }
        assert_eq!(saved_step(&out), at, "{what}: the state is saved before the run ends");
        run_ranks(&config, &out, true, 2);
        assert_same(&remains(&whole), &remains(&out), what);
    }
}

#[test]
fn damaged_data_of_one_rank_end_all_and_the_state_is_saved() {
    let temp = TempDir::new("rank-faults");
    write_reviews(&temp.0);
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "rank_faults::child", "--ignored", "--test-threads=1", "--nocapture"]);
    let output = child.env(DIR, &temp.0).env("DSS_CACHE", temp.join("cache")).output().unwrap();
    let said =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{}", said.concat());
    assert!(said[0].contains("1 passed"), "{}", said[0]);
}

/// One row is so large that nothing finite comes of it; only rank 1 of three computes with it.
#[test]
fn a_number_of_one_rank_that_is_not_finite_ends_all_in_the_same_step() {
    let temp = TempDir::new("rank-nan");
    let rows = |count: usize, large: Option<usize>| -> String {
        let scale = |i| if large == Some(i) { "e38" } else { "" };
        let row = |i: usize| {
            let (s, class) = (scale(i), ["up", "down"][i % 2]);
            format!("{class},{}.5{s},-{}.5{s},1.5{s}\n", i % 3, i % 2)
        };
        format!("label,a,b,c\n{}", (0..count).map(row).collect::<String>())
    };
    let examples = 48;
    let settings = |folder: &Path, seed: &str| {
        let sets = [
            ("task.path", folder.to_str().unwrap()),
            ("task.scale", "none"),
            ("model.layers", "1"),
            ("model.h", "4"),
            ("model.n", "4"),
            ("model.norm", "batch"),
            ("model.prenorm", "true"),
            // An evaluation has the statistics of the training: the large row must overflow by itself.
            ("model.last_gain", "10000"),
            ("train.batch", "12"),
            ("train.shards", "12"),
            ("train.accumulate", "1"),
            ("train.eval_batch", "1"),
            ("train.eval_every", "2"),
            ("train.epochs", "1"),
            ("train.min_steps", "0"),
            ("train.seed", seed),
        ];
        config("files", &sets)
    };
    let write = |folder: &Path, train, val| {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("train.csv"), rows(examples, train)).unwrap();
        fs::write(folder.join("val.csv"), rows(9, val)).unwrap();
        fs::write(folder.join("test.csv"), rows(9, None)).unwrap();
    };
    // Splits have an order of their own.
    let place = |split: &dyn Dataset| {
        let is_large = |i: &usize| match split.example(*i).unwrap().input {
            Input::Values(x) => x.iter().any(|x| x.abs() > 1e30),
            Input::Tokens(_) => unreachable!("numbers"),
        };
        (0..split.len()).find(is_large)
    };
    // Rank 1 has every third example of an evaluation.
    let is_of_rank_1 = |row: &usize| {
        let folder = temp.join(&format!("try-{row}"));
        write(&folder, Some(0), Some(*row));
        let task = settings(&folder, "0").task.load(None, &|_| {}).unwrap();
        place(task.val.as_ref()).unwrap() % 3 == 1
    };
    let val_row = (0..9).find(is_of_rank_1).unwrap();
    let task = settings(&temp.join("try-0"), "0").task.load(None, &|_| {}).unwrap();
    let large = place(task.train.as_ref()).unwrap() as u32;
    // A seed with which the row is in one of shards 4 to 7 of a step that is neither the first nor the last.
    let place = |seed| epoch_order(examples, seed, 0).iter().position(|&i| i == large).unwrap();
    let fits =
        |seed: &u64| (12..36).contains(&place(*seed)) && (4..8).contains(&(place(*seed) % 12));
    let seed = (0..).find(fits).unwrap();
    let train_step = place(seed) as u64 / 12 + 1;
    for (what, train, val, step) in
        [("train", Some(0), None, train_step), ("val", None, Some(val_row), 2)]
    {
        let folder = temp.join(what);
        write(&folder, train, val);
        let config = settings(&folder, &seed.to_string());
        let cause = |error: &Error| error.to_string().lines().next().unwrap().to_owned();
        let alone = run(&config, &temp.join(&format!("{what}-1")), false).unwrap_err();
        assert!(cause(&alone).starts_with(&format!("step {step}: ")), "{alone}");
        let out = temp.join(&format!("{what}-3"));
        for (resume, ranks) in [(false, 3), (true, 2)] {
            for end in run_watched(&config, &out, resume, ranks, &|_, _, _| {}) {
                let error = end.unwrap_err();
                assert!(matches!(error, Error::NonFinite { .. }), "{error:?}");
                assert_eq!(cause(&error), cause(&alone), "{ranks} ranks");
            }
            assert!(saved_step(&out) < step, "what was saved before is kept");
        }
    }
}
