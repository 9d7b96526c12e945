//! `dss data`: what is there, fetching from a server of our own, making and checking.

use std::fs;

use crate::common::{CliOutput, Folder};
use crate::server::Server;
use serde_json::Value;

fn json(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn data_sets_are_listed() {
    let folder = Folder::new();
    let out = folder.run(&["data", "list"]).ok().out;
    for part in
        ["listops      generated", "smnist       missing", "DSS_DATA", "dss data get smnist"]
    {
        assert!(out.contains(part), "no {part:?} in {out}");
    }
    let all = json(&folder.run(&["data", "list", "--json", "--data", "d"]).ok().out);
    let smnist = all.iter().find(|task| task["task"] == "smnist").unwrap();
    assert_eq!(
        (&smnist["state"], smnist["missing"].as_array().unwrap().len()),
        (&"missing".into(), 4)
    );

    // The variable names the same folder as the flag.
    fs::create_dir(folder.path("d")).unwrap();
    for name in ["train-images", "t10k-images"] {
        fs::write(folder.path(format!("d/{name}-idx3-ubyte")), "").unwrap();
        fs::write(folder.path(format!("d/{}-idx1-ubyte", name.replace("images", "labels"))), "")
            .unwrap();
    }
    let mut command = folder.command(&["data", "list"]);
    let ran = CliOutput::new(command.env("DSS_DATA", "d").output().unwrap()).ok();
    assert!(ran.out.contains("smnist       there: the four idx files"), "{ran:?}");
}

#[test]
fn fetching() {
    let folder = Folder::new();
    let content = b"an archive".repeat(10_000);
    let server = Server::start(&content, content.len());
    let url = server.url();
    let get = |args: &[&str]| folder.run(&[&["data", "get"], args].concat());

    get(&["smnist"]).fails(2, &["no folder", "hint: ", "--to DIR", "DSS_DATA"]);
    get(&["listops", "--to", "d"]).fails(2, &["generated", "dss data list"]);
    get(&["smnist", "--to", "d", "--sha256", &"0".repeat(64)]).fails(2, &["4 files"]);
    assert!(!folder.path("d").exists(), "nothing is left behind by wrong usage");

    let ran = get(&["smnist", "--to", "d", "--url", &url]);
    ran.fails(1, &["wrong checksum", "train-images-idx3-ubyte.gz.bad", "hint: ", "again"]);
    assert_eq!(fs::read(folder.path("d/train-images-idx3-ubyte.gz.bad")).unwrap(), content);
    server.not_found();
    get(&["smnist", "--to", "d", "--url", &url]).fails(1, &["404 (Not Found)", "--url"]);
}

#[test]
fn making_and_checking() {
    let folder = Folder::new();
    let made = folder.run(&["data", "make", "listops", "--out", "made", "--count", "100"]).ok().out;
    for part in ["basic_train.tsv", "100 examples", "dss train listops --set task.dir=made"] {
        assert!(made.contains(part), "no {part:?} in {made}");
    }
    let check = |args: &[&str]| folder.run(&[&["data", "check", "listops"], args].concat());
    let ran = check(&["--set", "dir=made"]).ok();
    for part in ["examples", "96", "split hash", "sample", "faults        none"] {
        assert!(ran.out.contains(part), "no {part:?} in {ran:?}");
    }
    let report = &json(&check(&["--set", "task.dir=made", "--json"]).ok().out)[0];
    assert_eq!(report["splits"][0]["examples"], 96);
    assert_eq!(report["faults"].as_array().unwrap().len(), 0);

    // Damage.
    let path = folder.path("made/basic_val.tsv");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("[M", "[?", 1)).unwrap();
    let ran = check(&["--set", "dir=made"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains("basic_val.tsv, line 2"), "{ran:?}");

    check(&["--set", "model.h=4"]).fails(2, &["[task] only"]);
    check(&["--set", "sede=4"]).fails(2, &["task.seed"]);
    let make = |args: &[&str]| folder.run(&[&["data", "make"], args].concat());
    make(&["listops", "--out", "made"]).fails(1, &["basic_train.tsv", "already exists"]);
    make(&["listops", "--count", "9"]).fails(2, &["--count"]);
    make(&["delay"]).fails(2, &["dss train delay"]);
    make(&["smnist"]).fails(2, &["dss data get smnist"]);
}

#[test]
fn missing_data_are_reported() {
    let folder = Folder::new();
    let ran = folder.run(&["data", "check", "smnist", "--data", "nowhere"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains("not found") && ran.out.contains("nowhere"), "{ran:?}");
}

/// Ctrl-C keeps what has come and says how to continue.
#[cfg(unix)]
#[test]
fn an_interrupted_download() {
    let folder = Folder::new();
    let content = b"an archive".repeat(10_000);
    let server = Server::start(&content, 60_000);
    let url = server.url();
    let mut command = folder.command(&["data", "get", "smnist", "--to", "d", "--url", &url]);
    let child = command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let child = child.spawn().unwrap();
    let part = folder.path("d/train-images-idx3-ubyte.gz.part");
    let start = std::time::Instant::now();
    while fs::metadata(&part).map_or(0, |m| m.len()) < 60_000 {
        assert!(start.elapsed().as_secs() < 20, "the download does not begin");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let ran = CliOutput::new(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130), "{ran:?}");
    let hint = format!("continue: dss data get smnist --to d --url {url}");
    for text in ["interrupted; 60.0 kB of 100.0 kB are kept in", ".part", &hint] {
        assert!(ran.err.contains(text), "no {text:?} in {ran:?}");
    }
}
