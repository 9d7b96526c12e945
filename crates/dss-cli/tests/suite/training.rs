//! Short trainings from end to end.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use crate::common::{CliOutput, Folder, piped};
use serde_json::Value;

/// A task that is over in seconds.
const SMALL: [&str; 18] = [
    "--set",
    "task.train=200",
    "--set",
    "task.val=40",
    "--set",
    "task.test=40",
    "--set",
    "length=64",
    "--set",
    "layers=1",
    "--set",
    "h=8",
    "--set",
    "n=4",
    "--set",
    "batch=20",
    "--set",
    "epochs=3",
];

fn adding<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["train", "adding"], &SMALL[..], more].concat()
}

fn objects(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

fn events<'a>(all: &'a [Value], kind: &str) -> Vec<&'a Value> {
    all.iter().filter(|e| e["event"] == kind).collect()
}

#[test]
fn pretrain_then_train() {
    let folder = Folder::new();
    let pretrain = [&["pretrain", "adding", "--quiet"], &SMALL[..]].concat();
    let ran = folder.run(&pretrain).ok();
    assert!(ran.out.contains("dss train adding --from runs/adding-laptop-pretrain-0"), "{ran:#?}");
    folder.run(&["eval", "runs/adding-laptop-pretrain-0"]).ok();
    let from = ["train", "adding", "--from", "runs/adding-laptop-pretrain-0"];
    let sets = ["--set", "task.train=40", "--set", "length=64", "--set", "epochs=1"];
    let ran = folder.run(&[&from[..], &sets].concat()).ok();
    assert!(ran.err.contains("all weights but the head's"), "{ran:#?}");
    let run = folder.path("runs/adding-laptop-0/config.toml");
    assert!(
        std::fs::read_to_string(run).unwrap().contains("h = 8 "),
        "the model of the checkpoint"
    );
    folder.run(&["train", "adding", "--from", "nowhere"]).fails(2, &["nowhere"]);
}

#[test]
fn train_evaluate_predict() {
    let folder = Folder::new();
    let ran = folder.run(&adding(&["--threads", "1"])).ok();
    for part in
        ["test mse", "best validation", "time", "runs/adding-laptop-0/report.html", "dss eval"]
    {
        assert!(ran.out.contains(part), "no {part} in {ran:#?}");
    }
    assert!(ran.err.contains("200 / 40 / 40 examples") && ran.err.contains("val loss"), "{ran:#?}");
    let run = folder.path("runs/adding-laptop-0");
    for file in
        ["config.toml", "metrics.jsonl", "best.safetensors", "last/state.json", "environment.json"]
    {
        assert!(run.join(file).is_file(), "{file}");
    }
    let report = std::fs::read_to_string(run.join("report.html")).unwrap();
    assert!(report.contains("Test mean squared error") && report.contains("layers.0.mixer.w"));

    // The same number as at the end of the training.
    let scores = objects(&folder.run(&["eval", "runs/adding-laptop-0", "--json"]).ok().out);
    let metrics = objects(&std::fs::read_to_string(run.join("metrics.jsonl")).unwrap());
    let test = metrics.iter().find(|r| r["kind"] == "test").unwrap();
    assert_eq!(scores[0]["mse"], test["mse"]);
    assert_eq!(scores[0]["examples"], 40);
    let text = folder.run(&["eval", "runs/adding-laptop-0", "--split", "val"]).ok().out;
    assert!(text.contains("val mean squared error"), "{text}");

    let steps: String = (0..64).map(|i| format!("0.{i:02},{}\n", u8::from(i % 40 == 3))).collect();
    std::fs::write(folder.path("new.csv"), steps).unwrap();
    let predict = ["predict", "runs/adding-laptop-0", "new.csv"];
    let text = folder.run(&predict).ok().out;
    assert!(text.starts_with("new.csv\t"), "{text}");
    let csv = folder.run(&[&predict[..], &["--csv"]].concat()).ok().out;
    assert!(csv.starts_with("sequence,value1\nnew.csv,"), "{csv}");
    let json = objects(&folder.run(&[&predict[..], &["--json"]].concat()).ok().out);
    assert!(json[0]["values"][0].is_f64(), "{json:?}");
    folder.run(&["predict", "runs/adding-laptop-0", "none.csv"]).fails(1, &["none.csv"]);

    // The name is taken: a second run gets its own, a named directory is refused.
    let second = folder.run(&adding(&["--set", "max_steps=1", "--quiet"])).ok();
    assert!(second.out.contains("runs/adding-laptop-0-2/report.html") && second.err.is_empty());
    let same = folder.run(&adding(&["--out", "runs/adding-laptop-0"]));
    same.fails(1, &["already contains a run", "--resume"]);
}

#[test]
fn classes_have_names() {
    let folder = Folder::new();
    let row =
        |i: u32| format!("{},{}\n", if i.is_multiple_of(2) { "low" } else { "high" }, wave(i));
    let table: String = (0..60).map(row).collect();
    std::fs::write(folder.path("mine.csv"), table).unwrap();
    let sets = "label=1 layers=1 h=8 n=4 epochs=2 min_steps=0 batch=10";
    let mut args = vec!["train", "files", "mine.csv", "--out", "mine", "--quiet"];
    sets.split(' ').for_each(|set| args.extend(["--set", set]));
    let ran = folder.run(&args).ok();
    assert!(ran.out.contains("test accuracy"), "{ran:#?}");
    let report = std::fs::read_to_string(folder.path("mine/report.html")).unwrap();
    for method in ["this model", "always ", "linear map of plain statistics"] {
        assert!(ran.out.contains(method) && report.contains(method), "{method}: {ran:#?}");
    }
    assert!(report.contains("Confusion matrix") && report.contains(">low</th>"));

    std::fs::write(folder.path("new.csv"), format!("{}\n{}\n", wave(4), wave(5))).unwrap();
    let found = objects(&folder.run(&["predict", "mine", "new.csv", "--json"]).ok().out);
    assert_eq!(found.len(), 2);
    let label = found[0]["label"].as_str().unwrap();
    assert!(["low", "high"].contains(&label));
    let p = &found[0]["probabilities"];
    let sum = p["low"].as_f64().unwrap() + p["high"].as_f64().unwrap();
    assert!((sum - 1.0).abs() < 1e-6, "{p}");
    assert_eq!(found[0]["probability"], p[label]);

    // Files of the same name are told apart.
    std::fs::create_dir(folder.path("more")).unwrap();
    std::fs::copy(folder.path("new.csv"), folder.path("more/new.csv")).unwrap();
    let text = folder.run(&["predict", "mine", "new.csv", "more/new.csv"]).ok().out;
    let places: Vec<&str> = text.lines().filter_map(|line| line.split('\t').next()).collect();
    assert_eq!(places, ["new.csv:1", "new.csv:2", "more/new.csv:1", "more/new.csv:2"]);

    // The data may be named from anywhere, and may move.
    let elsewhere = |args: &[&str]| {
        CliOutput::new(folder.command(args).current_dir(folder.path("more")).output().unwrap())
    };
    let before = elsewhere(&["eval", "../mine", "--json"]).ok().out;
    std::fs::rename(folder.path("mine.csv"), folder.path("more/mine.csv")).unwrap();
    let moved = ["eval", "mine", "--json"];
    folder.run(&moved).fails(2, &["mine.csv", "no such file", "--set task.path="]);
    let after = folder.run(&[&moved[..], &["--set", "path=more/mine.csv"]].concat()).ok();
    assert!(!after.err.contains("split differently"), "{after:?}");
    assert_eq!(after.out, before);
    folder.run(&[&moved[..], &["--set", "h=16"]].concat()).fails(2, &["[task]"]);
    let resume = "train files --resume --out mine --quiet --set path=more/mine.csv --set epochs=3";
    folder.run(&resume.split(' ').collect::<Vec<_>>()).ok();
    folder.run(&moved).ok();
}

/// A table on standard input is one text, unless it is said to be a table.
#[test]
fn piped_texts() {
    let folder = Folder::new();
    let row = |i: u32| {
        format!("{},{}{i}\n", ["low", "high"][i as usize % 2], ["ab ", "cd "][i as usize % 2])
    };
    let table: String = (0..60).map(row).collect();
    std::fs::write(folder.path("mine.csv"), &table).unwrap();
    let sets = "layers=1 h=8 n=4 epochs=1 min_steps=0 batch=10 max_length=30";
    let mut args = vec!["train", "files", "mine.csv", "--out", "mine", "--quiet"];
    sets.split(' ').for_each(|set| args.extend(["--set", set]));
    folder.run(&args).ok();
    let run = |args: &[&str], text: &str| {
        piped(&folder, &[&["predict", "mine"], args].concat(), text.as_bytes())
    };
    let two = "low,ab 1\nhigh,cd 2\n";
    let one = run(&["-"], two).ok();
    assert_eq!(one.out.lines().count(), 1, "{one:#?}");
    assert!(
        one.err.contains("standard input: read as one text; --format csv reads a table"),
        "{one:#?}"
    );
    let rows = run(&["-", "--format", "csv"], two).ok();
    assert_eq!(rows.out.lines().count(), 2, "{rows:#?}");
    assert!(rows.out.starts_with("-:1\t"), "{rows:#?}");
    assert!(
        rows.err
            .contains("standard input: 2 rows, each a sequence, no header, the text from column 2"),
        "{rows:#?}"
    );
    let tabs = run(&["-", "--format", "tsv"], "high\tcd 2\n").ok();
    assert!(
        tabs.err.contains("standard input: 1 row, each a sequence separated by tabs"),
        "{tabs:#?}"
    );
    let text = run(&["-", "--format", "txt"], "cd 2\n").ok();
    assert!(!text.err.contains("read as"), "{text:#?}");
    run(&["mine.csv", "--format", "csv"], "").fails(2, &["--format is for standard input"]);
    run(&["-"], "").fails(1, &["standard input", "the text is empty"]);
    folder.run(&["predict", "mine", "mine.csv"]).ok();
}

/// Readers that look at a table first read it twice, and a pipe gives its bytes once.
#[cfg(unix)]
#[test]
fn tables_from_named_pipes_are_whole() {
    let folder = Folder::new();
    let row = |i: u32| format!("{i},{}\n", f64::from(i % 7));
    let table: String = std::iter::once("t,v\n".to_owned()).chain((0..20_000).map(row)).collect();
    std::fs::write(folder.path("table.csv"), &table).unwrap();
    let sets = "input=8 horizon=2 layers=1 h=4 n=4 epochs=1 max_steps=1 train=100 val=20 test=20";
    let mut args = vec!["train", "forecast", "table.csv", "--out", "run", "--quiet"];
    sets.split(' ').for_each(|set| args.extend(["--set", set]));
    folder.run(&args).ok();
    let fifo = folder.path("pipe.csv");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let write = |table: String| {
        let fifo = fifo.clone();
        std::thread::spawn(move || std::fs::write(fifo, table))
    };
    let writer = write(table.clone());
    let piped = folder.run(&["predict", "run", "pipe.csv"]).ok();
    writer.join().unwrap().unwrap();
    assert!(piped.err.contains("pipe.csv: 20000 rows"), "{piped:#?}");
    assert_eq!(piped.out, folder.run(&["predict", "run", "table.csv"]).ok().out);
    let writer = write(table.replace(",3\n", ",x\n"));
    folder.run(&["predict", "run", "pipe.csv"]).fails(1, &["pipe.csv, line 5, column 2: expected"]);
    writer.join().unwrap().unwrap();
    for (task, path) in [("forecast", "pipe.csv"), ("files", "pipe.csv")] {
        folder.run(&["train", task, path]).fails(1, &["pipe.csv: not a regular file"]);
    }
}

/// A row of numbers, slow for even and fast for odd `i`.
fn wave(i: u32) -> String {
    let pitch = if i.is_multiple_of(2) { 0.2 } else { 1.1 };
    let values = (0..24).map(|t| format!("{:.3}", (pitch * f64::from(t) + f64::from(i)).sin()));
    values.collect::<Vec<_>>().join(",")
}

#[test]
fn json_lines_tell_everything() {
    let folder = Folder::new();
    let ran = folder.run(&adding(&["--json"])).ok();
    assert_eq!(ran.err, "", "nothing but JSON, and that on standard output");
    let all = objects(&ran.out);
    assert_eq!(all[0]["event"], "start");
    assert_eq!(all[0]["total_steps"], 30);
    let steps = events(&all, "step");
    assert_eq!(steps.len(), 30);
    assert!(steps.iter().all(|s| s["loss"].is_f64() && s["samples_per_s"].is_f64()));
    assert_eq!(events(&all, "eval").len(), 4);
    let end = all.last().unwrap();
    assert_eq!((&end["event"], &end["stopped"]), (&Value::from("end"), &Value::from("finished")));
    assert!(end["test"]["mse"].is_f64() && end["seconds"].is_f64());
}

/// Starts a training that takes a while and waits for some steps of it.
fn started(folder: &Folder) -> (Child, BufReader<std::process::ChildStdout>) {
    let args = adding(&["--set", "epochs=60", "--out", "run", "--json"]);
    let mut child =
        folder.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("\"step\":25}") {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "it ended early");
    }
    (child, lines)
}

#[cfg(unix)]
#[test]
fn interrupted_and_resumed() {
    let folder = Folder::new();
    let (child, mut lines) = started(&folder);
    let id = child.id().to_string();
    let sent = std::process::Command::new("kill").args(["-INT", &id]).status().unwrap();
    assert!(sent.success());
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut lines, &mut rest).unwrap();
    let ran = CliOutput::new(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert!(ran.err.contains("stopping"), "{ran:?}");
    let all = objects(&rest);
    let end = all.last().unwrap();
    assert_eq!(end["stopped"], "interrupted");
    let done = end["steps"].as_u64().unwrap();
    let report = std::fs::read_to_string(folder.path("run/report.html")).unwrap();
    assert!(report.contains("not finished"));

    // It continues with its own settings only.
    folder
        .run(&["train", "adding", "--resume", "--out", "run", "--set", "h=9"])
        .fails(1, &["model.h"]);
    folder.run(&["train", "delay", "--resume", "--out", "run"]).fails(2, &["task `adding`"]);
    let ran = folder.run(&["train", "adding", "--resume", "--out", "run", "--json"]).ok();
    let all = objects(&ran.out);
    assert_eq!(all[0]["done_steps"], done);
    assert_eq!(events(&all, "step").len() as u64, 600 - done);
    assert_eq!(all.last().unwrap()["stopped"], "finished");
    let report = std::fs::read_to_string(folder.path("run/report.html")).unwrap();
    assert!(!report.contains("not finished"));
}

/// A reader of the events that goes away ends the training in good order.
#[test]
fn events_that_nobody_reads() {
    let folder = Folder::new();
    let (child, lines) = started(&folder);
    drop(lines);
    let ran = CliOutput::new(child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.err.as_str()), (Some(130), ""));
    assert!(folder.path("run/last/state.json").is_file());
}

/// A full disk is said, and the state is there to continue from.
#[cfg(target_os = "linux")]
#[test]
fn events_that_cannot_be_written() {
    let folder = Folder::new();
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = folder.command(&adding(&["--out", "run", "--json"]));
    let ran = CliOutput::new(command.stdout(full()).stderr(Stdio::piped()).output().unwrap());
    ran.fails(1, &["cannot write to standard output", "--resume"]);
    assert!(folder.path("run/last/state.json").is_file());
    folder.run(&["train", "adding", "--resume", "--out", "run", "--quiet"]).ok();
    let mut command = folder.command(&["eval", "run", "--json"]);
    let ran = CliOutput::new(command.stdout(full()).stderr(Stdio::piped()).output().unwrap());
    ran.fails(1, &["cannot write to standard output"]);
}

/// A loss that runs away is a failure that says what to try, and leaves a report.
#[test]
fn a_loss_that_is_not_finite() {
    let folder = Folder::new();
    let ran = folder.run(&adding(&["--set", "lr=1e30", "--out", "run", "--quiet"]));
    ran.fails(1, &["NaN", "train.lr", "run/report.html"]);
    assert!(folder.path("run/report.html").is_file());
}

#[test]
fn texts_are_scored() {
    let folder = Folder::new();
    std::fs::write(folder.path("a.txt"), "to be or not to be, ".repeat(60)).unwrap();
    folder.run(&["train", "lm"]).fails(1, &["--data FILE", "dss data get lm"]);
    let sets = "len=32 layers=1 h=16 n=4 epochs=3 batch=8 val=0.1 task.test=0.1";
    let mut args = vec!["train", "lm", "--data", "a.txt", "--out", "run"];
    sets.split(' ').for_each(|set| args.extend(["--set", set]));
    let ran = folder.run(&args).ok();
    assert!(ran.out.contains("nats =") && ran.out.contains("bits per token"), "{ran:#?}");
    assert!(ran.err.contains("bits/token"), "{ran:#?}");
    let report = std::fs::read_to_string(folder.path("run/report.html")).unwrap();
    for part in ["Test cross entropy", "nats", "bits per token", "cross entropy in nats"] {
        assert!(report.contains(part), "{part}");
    }

    // The file that --data named is remembered.
    let scores = objects(&folder.run(&["eval", "run", "--json"]).ok().out);
    let (loss, bits) = (scores[0]["loss"].as_f64().unwrap(), scores[0]["bits"].as_f64().unwrap());
    assert!((loss / 2f64.ln() - bits).abs() < 1e-9);
    assert!(folder.run(&["eval", "run"]).ok().out.contains("test cross entropy"));

    let text = folder.run(&["predict", "run", "a.txt", "--json"]).ok().out;
    assert_eq!(objects(&text)[0]["tokens"], 1199);
    assert!(folder.run(&["predict", "run", "a.txt"]).ok().out.contains("nats/token"));
    std::fs::write(folder.path("b.txt"), "to be or\nWHAT").unwrap();
    folder.run(&["predict", "run", "b.txt"]).fails(1, &["b.txt, line 1", "does not occur"]);
}

#[test]
fn a_table_is_forecast() {
    let folder = Folder::new();
    let mut table = "day,sea,hill\n".to_owned();
    for t in 0..300 {
        table += &format!("d{t},{:.3},{:.3}\n", (f64::from(t) * 0.5).sin(), f64::from(t) * 0.1);
    }
    std::fs::write(folder.path("t.csv"), &table).unwrap();
    folder.run(&["train", "forecast"]).fails(1, &["--data FILE", "task.column"]);
    let sets = "column=sea input=24 horizon=6 season=12 layers=1 h=16 n=8 epochs=2 batch=16";
    let mut args = vec!["train", "forecast", "--data", "t.csv", "--out", "run", "--quiet"];
    sets.split(' ').for_each(|set| args.extend(["--set", set]));
    let out = folder.run(&args).ok().out;
    for row in ["this model", "linear least squares", "last value", "value 12 rows before"] {
        assert!(out.contains(row), "{out}");
    }
    let report = std::fs::read_to_string(folder.path("run/report.html")).unwrap();
    assert!(report.contains("Compared with simple methods") && report.contains("last value"));
    let text = folder.run(&["eval", "run"]).ok().out;
    assert!(text.contains("mean absolute error") && text.contains("linear least squares"));

    let predicted = folder.run(&["predict", "run", "t.csv"]).ok();
    let told = "t.csv: 300 rows, a header, the values from column 2 (\"sea\"), of which the last 24 are known";
    assert!(predicted.err.contains(told), "{predicted:#?}");
    let csv = predicted.out;
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!((lines.len(), lines[0]), (7, "step,sea"));
    assert!(lines[6].starts_with("6,"), "{csv}");
    let json = objects(&folder.run(&["predict", "run", "t.csv", "--json"]).ok().out);
    assert_eq!(json[0]["values"].as_array().unwrap().len(), 6);

    std::fs::write(folder.path("bad.csv"), "sea,x\n1,2\noops,3\n").unwrap();
    folder.run(&["predict", "run", "bad.csv"]).fails(1, &["line 3, column 1", "oops"]);
    std::fs::write(folder.path("short.csv"), "sea,x\n1,2\n").unwrap();
    folder.run(&["predict", "run", "short.csv"]).fails(1, &["1 row, but", "last 24"]);
}

#[test]
fn starts_at_once_choose_other_directories() {
    let folder = Folder::new();
    let start = |_| folder.command(&adding(&["--set", "epochs=1", "--quiet"])).spawn().unwrap();
    let children: Vec<Child> = (0..4).map(start).collect();
    for child in children {
        CliOutput::new(child.wait_with_output().unwrap()).ok();
    }
    let runs = std::fs::read_dir(folder.path("runs")).unwrap().map(|entry| entry.unwrap().path());
    let whole = runs.filter(|run| run.join("best.safetensors").is_file());
    assert_eq!(whole.count(), 4);
}

/// Labels and names of files come from anywhere.
#[test]
fn labels_cannot_control_the_terminal() {
    let folder = Folder::new();
    let rows = (0..40).map(|i| format!("{},{},{}\n", ["\u{1b}[31mred", "b"][i % 2], i % 2, i % 3));
    let data = folder.path("\u{1b}[2Jdata.csv");
    std::fs::write(&data, rows.collect::<String>()).unwrap();
    let path = format!("task.path={}", data.display());
    let sets = ["--set", &path, "--set", "layers=1", "--set", "h=4", "--set", "n=4"];
    let short = ["--out", "run", "--set", "epochs=1", "--set", "min_steps=0"];
    let args = [&["train", "files"], &short[..], &sets[..]].concat();
    let trained = folder.run(&args).ok();
    let evaluated = folder.run(&["eval", "run"]);
    let missing = folder.run(&["train", "files", "--set", "task.path=\u{1b}[2Jnone"]);
    let predicted = folder.run(&["predict", "run", data.to_str().unwrap()]).ok();
    let checked = folder.run(&["data", "check", "files", "--set", &path]).ok();
    for ran in [trained, evaluated, missing, predicted, checked] {
        assert!(!ran.out.contains('\u{1b}') && !ran.err.contains('\u{1b}'), "{ran:?}");
    }
}

#[test]
fn an_unknown_instruction_set_is_named() {
    let folder = Folder::new();
    let mut command = folder.command(&adding(&["--set", "epochs=1", "--out", "run"]));
    let ran = CliOutput::new(command.env("DSS_SIMD", "foo").output().unwrap()).ok();
    assert!(ran.err.contains("DSS_SIMD=\"foo\" is ignored"), "{ran:?}");
}

/// The folder of `--data` is remembered, and a folder that was moved is named.
#[test]
fn evaluation_finds_the_data_again() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("d")).unwrap();
    for (name, count) in [("train", 40u32), ("t10k", 10)] {
        let pixels: Vec<u8> = (0..count * 16).map(|i| (i * 7 % 251) as u8).collect();
        let header = [0x803, count, 4, 4].map(u32::to_be_bytes).concat();
        std::fs::write(
            folder.path(format!("d/{name}-images-idx3-ubyte")),
            [header, pixels].concat(),
        )
        .unwrap();
        let labels: Vec<u8> = (0..count).map(|i| (i % 10) as u8).collect();
        let header = [0x801, count].map(u32::to_be_bytes).concat();
        std::fs::write(
            folder.path(format!("d/{name}-labels-idx1-ubyte")),
            [header, labels].concat(),
        )
        .unwrap();
    }
    let sets = "layers=1 h=8 n=4 epochs=1 batch=4";
    let mut args = vec!["train", "smnist", "--data", "d", "--out", "run", "--quiet"];
    sets.split(' ').for_each(|set| args.extend(["--set", set]));
    let trained = folder.run(&args).ok().out;
    assert!(trained.contains("most frequent class 10.00 %, macro F1 0."), "{trained}");
    let elsewhere = |args: &[&str]| {
        CliOutput::new(folder.command(args).current_dir(folder.path("d")).output().unwrap())
    };
    let scores = elsewhere(&["eval", "../run", "--json"]).ok().out;

    // An exported file has no folder to remember.
    folder.run(&["export", "run", "--to", "slim.safetensors", "--f16"]).ok();
    let exported = folder.run(&["eval", "slim.safetensors", "--data", "d", "--json"]).ok().out;
    let accuracy = |text: &str| objects(text)[0]["accuracy"].clone();
    assert_eq!(accuracy(&exported), accuracy(&scores));
    folder.run(&["eval", "slim.safetensors"]).fails(1, &["MNIST", "--data"]);
    let images = "d/t10k-images-idx3-ubyte";
    let csv = folder.run(&["predict", "slim.safetensors", images, "--csv"]).ok().out;
    assert!(csv.starts_with("sequence,label,probability,p_0,p_1,"), "{csv}");
    assert_eq!((csv.lines().count(), csv.lines().nth(1).unwrap().split(',').count()), (11, 13));
    let all = folder.run(&["predict", "slim.safetensors", "d"]).ok().out;
    assert_eq!(all.lines().count(), 50, "both files of images, and no labels");
    folder.run(&["inspect", "slim.safetensors"]).ok();
    let card = std::fs::read_to_string(folder.path("slim.md")).unwrap();
    assert!(card.contains("| test | accuracy ") && card.contains("`train.epochs` | 1 |"), "{card}");

    std::fs::rename(folder.path("d"), folder.path("e")).unwrap();
    folder.run(&["eval", "run"]).fails(1, &["/d", "no longer exists", "--data"]);
    assert_eq!(folder.run(&["eval", "run", "--data", "e", "--json"]).ok().out, scores);
}

/// A file that is named with `--data` is the one that is read, whatever the run remembers.
#[test]
fn evaluation_and_resume_take_the_file_that_is_named() {
    let folder = Folder::new();
    for (name, factor) in [("a.csv", 1.0), ("b.csv", 2.0)] {
        let row = |i: u32| format!("{},{},0.5\n", i % 2, factor * f64::from(i));
        std::fs::write(folder.path(name), (0..40).map(row).collect::<String>()).unwrap();
    }
    let small = ["epochs=1", "min_steps=0", "layers=1", "h=4", "n=4"];
    let small: Vec<&str> = small.iter().flat_map(|s| ["--set", s]).collect();
    let train = ["train", "files", "a.csv", "--out", "run", "--quiet"];
    let both = [&train[..], &["--data", "b.csv"]].concat();
    folder.run(&both).fails(2, &["two files", "a.csv", "b.csv"]);
    folder.run(&[&train[..], &small].concat()).ok();
    assert!(folder.run(&["eval", "run"]).ok().err.contains("a.csv: 40 rows"));
    let other = folder.run(&["eval", "run", "--data", "b.csv"]).ok().err;
    assert!(other.contains("b.csv: 40 rows") && other.contains("split differently"), "{other}");
    let resume = ["train", "files", "--resume", "--out", "run", "--data", "b.csv"];
    folder
        .run(&[&resume[..], &["--set", "epochs=2"]].concat())
        .fails(1, &["the data have changed"]);
    // In another folder, under the same name.
    std::fs::create_dir(folder.path("moved")).unwrap();
    std::fs::rename(folder.path("a.csv"), folder.path("moved/a.csv")).unwrap();
    let moved = folder.run(&["eval", "run", "--data", "moved"]).ok().err;
    assert!(moved.contains("a.csv: 40 rows") && !moved.contains("split"), "{moved}");
    // A folder that is named is not ignored while the file of the training is still there.
    std::fs::copy(folder.path("b.csv"), folder.path("a.csv")).unwrap();
    std::fs::create_dir(folder.path("other")).unwrap();
    let named = folder.run(&["eval", "run", "--data", "moved"]).ok().err;
    assert!(named.contains("a.csv: 40 rows") && !named.contains("split"), "{named}");
    let hint = ["--data: other does not hold", "a.csv", "--set task.path=PATH"];
    folder.run(&["eval", "run", "--data", "other"]).fails(2, &hint);
    folder.run(&[&resume[..5], &["--data", "other"]].concat()).fails(2, &hint);
    let set = ["eval", "run", "--data", "other", "--set", "path=b.csv"];
    assert!(folder.run(&set).ok().err.contains("b.csv: 40 rows"));
    let variable = folder.command(&["eval", "run"]).env("DSS_DATA", "other").output().unwrap();
    assert!(CliOutput::new(variable).ok().err.contains("a.csv: 40 rows"));
}

/// The last line of the result is a command that trains for longer, whichever limit ended the run.
#[test]
fn the_hint_to_train_longer_works() {
    for (limits, steps) in
        [("epochs=1", 20), ("epochs=2 max_steps=5", 10), ("epochs=1 max_steps=10", 20)]
    {
        let folder = Folder::new();
        let mut args = adding(&["--out", "my run", "--quiet"]);
        limits.split(' ').for_each(|set| args.extend(["--set", set]));
        let out = folder.run(&args).ok().out;
        let hint = out.lines().find_map(|line| line.strip_prefix("train longer")).unwrap();
        let command = hint.trim().strip_prefix("dss ").unwrap().replace("'my run'", "my_run");
        let mut args: Vec<&str> = command.split(' ').collect();
        args.iter_mut().filter(|arg| **arg == "my_run").for_each(|arg| *arg = "my run");
        args.push("--json");
        let all = objects(&folder.run(&args).ok().out);
        assert_eq!(all.last().unwrap()["steps"], steps, "{limits}");
    }
}

#[test]
fn a_complete_run_is_not_trained_again() {
    let folder = Folder::new();
    let first = folder.run(&adding(&["--out", "run", "--quiet"])).ok().out;
    let metrics = std::fs::read(folder.path("run/metrics.jsonl")).unwrap();
    let resume = ["train", "adding", "--resume", "--out", "run"];
    let again = folder.run(&[&resume[..], &["--quiet"]].concat()).ok().out;
    let (head, rest) = again.split_once('\n').unwrap();
    assert!(head.contains("already complete"), "{again}");
    assert_eq!(rest, first);
    assert_eq!(std::fs::read(folder.path("run/metrics.jsonl")).unwrap(), metrics);
    let all = objects(&folder.run(&[&resume[..], &["--json"]].concat()).ok().out);
    assert_eq!(all.last().unwrap()["was_complete"], true);
}
