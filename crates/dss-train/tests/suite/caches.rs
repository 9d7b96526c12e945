//! One cache folder, several processes: each reads the same examples, whoever wrote them, and whoever was killed meanwhile.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::common::{TempDir, config};
use dss_data::{Input, Target};

const DIR: &str = "DSS_TEST_CACHES_DIR";
/// Each round has reviews, and so a store, of its own.
const ROUNDS: usize = 12;
const PROCESSES: usize = 3;
const REVIEWS: usize = 60;

/// Texts in the layout of the data set: train and test, pos and neg.
fn write_reviews(folder: &Path, round: usize) {
    let folders =
        [("train", "pos", 7), ("train", "neg", 2), ("test", "pos", 7), ("test", "neg", 2)];
    for (split, label, rating) in folders {
        let folder = folder.join(format!("{round}/aclImdb/{split}/{label}"));
        fs::create_dir_all(&folder).unwrap();
        for i in 0..REVIEWS {
            let text = format!("{label} {split} {round} {}", "word ".repeat(50 + i));
            fs::write(folder.join(format!("{i}_{rating}.txt")), text).unwrap();
        }
    }
}

/// All examples of a round as the cache has them, one line each.
fn examples(folder: &Path, round: usize) -> String {
    let dir = folder.join(format!("{round}/aclImdb"));
    let sets = [
        ("task.dir", dir.to_str().unwrap()),
        ("task.len", "300"),
        ("task.train", "0"),
        ("task.val", "20"),
        ("task.test", "0"),
    ];
    let task = config("text", &sets).task.load(None, &|_| {}).unwrap();
    let mut lines = format!("{round} {}\n", task.split_hash);
    for split in [&task.train, &task.val, &task.test] {
        for i in 0..split.len() {
            let example = split.example(i).unwrap();
            let (Input::Tokens(tokens), Target::Class(class)) = (example.input, example.target)
            else {
                panic!("a text has tokens and a class");
            };
            let sum = tokens.iter().fold(0u64, |sum, id| sum.wrapping_mul(31) + u64::from(*id));
            lines += &format!("{class} {} {sum}\n", tokens.len());
        }
    }
    lines
}

/// Not a test: one of several processes that all want the same stores, one after the other.
#[test]
#[ignore = "runs in child processes of the test below"]
fn reader() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let all: String = (0..ROUNDS).map(|round| examples(Path::new(&dir), round)).collect();
    let name = format!("read-{}", std::process::id());
    fs::File::create(Path::new(&dir).join(name)).unwrap().write_all(all.as_bytes()).unwrap();
}

fn spawn(temp: &TempDir, cache: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "caches::reader", "--ignored", "--test-threads=1", "--nocapture"])
        .env(DIR, &temp.0)
        .env("DSS_CACHE", temp.join(cache))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn several_processes_read_the_same_from_one_cache() {
    let temp = TempDir::new("caches");
    (0..ROUNDS).for_each(|round| write_reviews(&temp.0, round));
    let children: Vec<Child> = (0..PROCESSES).map(|_| spawn(&temp, "cache")).collect();
    // Some more, killed at any moment: what they leave is not read.
    for milliseconds in [5, 20, 40, 60, 90, 130] {
        let mut killed = spawn(&temp, "cache");
        std::thread::sleep(Duration::from_millis(milliseconds));
        killed.kill().unwrap();
        killed.wait().unwrap();
    }
    for child in children.into_iter().chain([spawn(&temp, "cache"), spawn(&temp, "alone")]) {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let entries = fs::read_dir(&temp.0).unwrap().map(|entry| entry.unwrap());
    let read = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("read-"));
    let read: Vec<String> = read.map(|entry| fs::read_to_string(entry.path()).unwrap()).collect();
    assert!(read.len() >= PROCESSES + 2, "{} processes", read.len());
    assert!(read[0].lines().count() > ROUNDS * 2 * REVIEWS, "{}", read[0].lines().count());
    assert!(read.iter().all(|other| *other == read[0]), "the processes read different examples");
    let stores = fs::read_dir(temp.join("cache")).unwrap().map(|entry| entry.unwrap().path());
    let stores = stores.filter(|path| path.extension().is_some_and(|kind| kind == "store"));
    assert_eq!(stores.count(), ROUNDS);
}
