//! Help, settings and wrong usage: everything that needs no training.

use std::process::Stdio;

use crate::common::{CliOutput, Folder};

#[test]
fn every_command_explains_itself() {
    let folder = Folder::new();
    for command in [
        "train",
        "pretrain",
        "eval",
        "predict",
        "inspect",
        "config",
        "config show",
        "config list",
        "data",
        "data list",
        "data get",
        "data make",
        "data check",
        "bench",
        "bench train",
        "repro",
        "web",
        "completions",
        "man",
    ] {
        let mut args: Vec<&str> = command.split(' ').collect();
        args.push("--help");
        let ran = folder.run(&args).ok();
        assert!(ran.out.contains("Usage: dss"), "{ran:?}");
        if !["config", "data", "bench"].contains(&command) {
            assert!(ran.out.contains("Examples:"), "{ran:?}");
        }
    }
    let help = folder.run(&["--help"]).ok().out;
    assert!(help.contains("130 interrupted") && help.contains("completions"), "{help}");
    assert!(folder.run(&["--version"]).ok().out.starts_with("dss "));
}

#[test]
fn a_shown_configuration_is_a_configuration() {
    let folder = Folder::new();
    let sets = ["--set", "h=48", "--set", "variant=exp", "--set", "train.seed=7"];
    // Without the comments: where a value comes from is another place the second time.
    let values = |toml: &str| -> Vec<String> {
        toml.lines().map(|line| line.split("  #").next().unwrap_or_default().to_owned()).collect()
    };
    for &task in dss_data::TaskConfig::NAMES {
        let shown = folder.run(&[&["config", "show", task], &sets[..]].concat()).ok().out;
        assert!(shown.contains("h = 48") && shown.contains("variant = \"exp\""), "{shown}");
        std::fs::write(folder.path("mine.toml"), &shown).unwrap();
        let again = folder.run(&["config", "show", task, "--config", "mine.toml"]).ok().out;
        assert_eq!(values(&again), values(&shown));
        assert!(shown.contains("[--set]") && again.contains("[mine.toml, line "), "{shown}{again}");
    }
}

#[test]
fn tasks_and_presets_are_listed() {
    let out = Folder::new().run(&["config", "list"]).ok().out;
    for part in dss_data::TaskConfig::NAMES.iter().chain(&["paper", "authors", "(default)"]) {
        assert!(out.contains(part), "no {part} in {out}");
    }
    for model in dss_train::config::MODELS {
        let line = out.lines().find(|line| line.split_whitespace().next() == Some(model.name));
        let line = line.unwrap_or_else(|| panic!("no {} in {out}", model.name));
        assert!(line.ends_with(&format!(" {}", model.about())), "{line}");
    }
}

#[test]
fn wrong_settings_are_wrong_usage() {
    let folder = Folder::new();
    let show = |set: &str| folder.run(&["config", "show", "listops", "--set", set]);
    show("layer=3").fails(2, &["--set layer=3", "did you mean `model.layers`?", "hint: "]);
    show("h=0").fails(2, &["--set h=0: [model] h must be at least 1, but is 0: try 1"]);
    show("batch=many").fails(2, &["train.batch", "expected a whole number"]);
    show("lr=-1").fails(2, &["--set lr=-1", "train.lr", "greater than 0"]);
    show("seed=1").fails(2, &["`task.seed` or `train.seed`"]);
    let ran = show("h");
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("KEY=VALUE"), "{ran:?}");

    let train = |args: &[&str]| folder.run(&[&["train", "listops"], args].concat());
    train(&["--preset", "papr"])
        .fails(2, &["no preset `papr`", "laptop, causal, paper", "config list"]);
    train(&["--config", "none.toml"]).fails(2, &["cannot read none.toml"]);
    let ran = train(&["--device", "cuda"]).fails(2, &["unknown device `cuda`", "CPU", "hint: "]);
    assert!(!ran.err.contains("Cargo.toml"), "{ran:?}");
    train(&["--set", "min_length=900"]).fails(2, &["task.max_length", "902"]);
    train(&["--set", "task.train=9000000000000000000"]).fails(2, &["task.train", "2^32"]);
    let delay = |set: &str| folder.run(&["train", "delay", "--set", set]);
    delay("d=9000000000000000000").fails(2, &["task.d", "2^24"]);
    delay("window=9000000000000000000").fails(2, &["task.window", "2^24"]);
    delay("length=9000000000000000000").fails(2, &["task.length", "2^24"]);
    train(&["--resume"]).fails(2, &["no run of task `listops`", "--out DIR"]);
    assert!(!folder.path("runs").exists(), "nothing is left behind by wrong usage");
    for args in [&["train", "lstops"][..], &["train"], &["train", "listops", "--threads", "0"]] {
        let ran = folder.run(args);
        assert_eq!(ran.code, Some(2), "{ran:?}");
    }
    let ran = folder.run(&["train", "listops", "--threads", "1025"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("from 1 to 1024"), "{ran:?}");
    let bench = |set: &str| folder.run(&["bench", "train", "--size", "listops", "--set", set]);
    bench("ssms=5").fails(2, &["--set ssms=5", "ssms must divide h = 128", "try 4"]);
    bench("lr=0.5").fails(2, &["--set lr=0.5", "expected a setting of [model]"]);
}

/// A message names the task, the folder and the number it is about, and suggests nothing far-fetched.
#[test]
fn messages_say_what_they_are_about() {
    let folder = Folder::new();
    let run = |args: &str| folder.run(&args.split(' ').collect::<Vec<_>>());
    let keys = "hint: `dss config show listops` lists every key";
    run("config show listops --set layer=3").fails(2, &["did you mean `model.layers`?", keys]);
    run("train listops --set h=0").fails(2, &[keys]);
    run("train listops --set max_args=1").fails(2, &["task.max_args", keys]);
    run("train listops --set path=x").fails(2, &["`path`; did you mean `task.dir`?"]);
    run("train listops x.csv")
        .fails(2, &["the task listops does not take a file, but found x.csv", "--data"]);
    let ran = run("train listops --set colour=x").fails(2, &["unknown key `colour`"]);
    assert!(!ran.err.contains("did you mean"), "{ran:?}");

    for command in
        ["train files", "train text --preset paper", "train listops --resume", "eval run"]
    {
        run(&format!("{command} --data nowhere")).fails(2, &["--data: nowhere does not exist"]);
    }

    std::fs::write(folder.path("one.csv"), "1\n2\n3\n4\n").unwrap();
    std::fs::write(folder.path("two.csv"), "1,2\n3,4\n5,6\n7,8\n").unwrap();
    let label =
        |table: &str| run(&format!("train files --set path={table} --set header=no --set label=5"));
    label("one.csv").fails(2, &["task.label = 5", "it has 1 column without a name\n"]);
    label("two.csv")
        .fails(2, &["it has 2 columns without names; choose one by its number, 1 to 2"]);

    let shown = run("config show files --set scale=standardize").ok().out;
    assert!(shown.contains("scale = \"standardise\""), "{shown}");
    let listed = run("config list").ok().out;
    for line in ["Λ is initialised at random (§4.1)", "No layer sees further than 128 steps (§4.1)"]
    {
        assert!(listed.contains(line), "{listed}");
    }
}

/// Sizes that no machine has are refused, not tried.
#[cfg(target_os = "linux")]
#[test]
fn a_model_larger_than_the_memory() {
    let folder = Folder::new();
    for set in ["h=1000000000", "layers=9000000000000000000"] {
        let ran = folder.run(&["train", "adding", "--quiet", "--set", set]);
        ran.fails(1, &["MB of memory", "train.batch", "model.h", "model.layers", "length"]);
    }
    assert!(!folder.path("runs").exists());
}

#[test]
fn a_directory_without_a_run() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("empty")).unwrap();
    for command in [&["eval", "nowhere"][..], &["predict", "nowhere", "x.csv"]] {
        folder.run(command).fails(2, &["nowhere is neither a run directory nor a file", "hint: "]);
    }
    folder.run(&["eval", "empty"]).fails(2, &["it has no config.toml"]);
}

#[test]
fn a_missing_data_path_is_an_error() {
    let folder = Folder::new();
    let ran = folder.run(&["train", "smnist", "--data", "nowhere", "--quiet"]);
    ran.fails(2, &["nowhere", "hint: ", "--data"]);
}

#[test]
fn completions_name_the_commands() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let out = folder.run(&["completions", shell]).ok().out;
        assert!(out.contains("predict"), "{shell}");
        // The scripts of the other shells have no values.
        for part in ["authors", "train.max_steps=", "task.path="] {
            let values = ["bash", "zsh", "fish"].contains(&shell);
            assert_eq!(out.contains(part), values, "{part} for {shell}");
        }
    }
}

#[test]
fn manual_pages() {
    let folder = Folder::new();
    assert!(folder.run(&["man"]).ok().out.contains(".TH dss 1"));
    folder.run(&["man", "--out", "pages/man1"]).ok();
    let page = std::fs::read_to_string(folder.path("pages/man1/dss-train.1")).unwrap();
    assert!(page.contains("\\-\\-resume"), "{page}");
}

#[cfg(target_os = "linux")]
#[test]
fn help_that_cannot_be_written_is_an_error() {
    let folder = Folder::new();
    for args in [["--help"], ["--version"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = folder.command(&args);
        let ran = CliOutput::new(command.stdout(full).stderr(Stdio::piped()).output().unwrap());
        ran.fails(1, &["cannot write to standard output"]);
    }
}

/// `dss ... | head` must not end in a panic.
#[test]
fn a_reader_may_go_away() {
    let folder = Folder::new();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = folder.command(&["config", "list"]);
    let ran = CliOutput::new(command.stdout(writer).stderr(Stdio::piped()).output().unwrap());
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
}
