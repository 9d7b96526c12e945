//! `dss repro` from end to end, on runs that are over in a moment.

use crate::common::{CliOutput, Folder};

const SMALL: &str = "--set task.train=40 --set task.val=10 --set task.test=10 --set layers=1 --set h=8 --set n=4 \
                     --set batch=5 --set delay:d=20 --set delay:window=8 --set adding:length=30 --threads 1";

fn repro(folder: &Folder, args: &str) -> CliOutput {
    let args = format!("repro {args}");
    folder.run(&args.split_whitespace().collect::<Vec<_>>())
}

#[test]
fn a_table_of_small_runs() {
    let folder = Folder::new();
    let grid =
        format!("lra --tasks delay,adding --models dss-softmax,dss-exp --budget 8steps {SMALL}");
    let preview = repro(&folder, &format!("{grid} --dry-run")).ok();
    for part in ["4 runs", "runs/repro-lra-8steps", "train.max_steps=8", "waiting", "time left"] {
        assert!(preview.out.contains(part), "no {part:?} in {preview:#?}");
    }
    assert!(!folder.path("runs").exists());

    let ran = repro(&folder, &grid).ok();
    for part in ["run 1 of 4: delay, DSS-softmax, seed 0", "run 4 of 4", "left in all"] {
        assert!(ran.err.contains(part), "no {part:?} in {ran:#?}");
    }
    for part in ["DSS-exp", "most frequent class", "not in the paper", "table.html"] {
        assert!(ran.out.contains(part), "no {part:?} in {ran:#?}");
    }
    for file in ["table.md", "table.json", "table.csv", "table.html", "grid.toml"] {
        assert!(folder.path("runs/repro-lra-8steps").join(file).is_file(), "{file}");
    }
    let run = "runs/repro-lra-8steps/delay-dss-exp-0";
    assert!(folder.path(run).join("report.html").is_file());
    folder.run(&["eval", run]).ok();

    let again = repro(&folder, &format!("{grid} --json")).ok();
    assert_eq!(again.err, "", "nothing is run again");
    let table: serde_json::Value = serde_json::from_str(&again.out).unwrap();
    assert_eq!(table["rows"][0]["entries"][0]["runs"][0]["steps"], 8);
    let out = "--out runs/repro-lra-8steps";
    repro(&folder, &format!("lra --budget 9steps {out} --tasks delay")).fails(2, &["8steps, not"]);
}

#[test]
fn wrong_usage_and_missing_data() {
    let folder = Folder::new();
    for (args, part) in [
        ("lra --budget 10", "90s, 10m"),
        ("lra --tasks nothing", "listops"),
        ("lra --models nothing", "dss-softmax"),
        ("lra --set nothing:h=3", "no task or model `nothing`"),
        ("lra --tasks delay --set listops:foo=3", "foo"),
        ("lra --tasks delay --set model.variant=exp", "--models decides it"),
        ("lra --tasks delay --set delay:max_steps=3", "--budget decides it"),
        ("lra --dry-run --json", "--json"),
        ("tables", "ablations"),
    ] {
        let ran = repro(&folder, args);
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(ran.err.contains(part), "no {part:?} in {ran:#?}");
    }
    let ran = repro(&folder, "lra --tasks image --models dss-softmax --budget 5steps --quiet");
    let ran = ran.fails(1, &["no data were found for any task", "dss data list"]);
    assert!(ran.out.contains("no data (85.7)") && ran.out.contains("dss data get image"));
}

#[cfg(unix)]
#[test]
fn stopped_by_a_signal() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    let folder = Folder::new();
    let args = format!("repro lra --tasks delay --models dss-softmax --budget 100000steps {SMALL}");
    let args: Vec<&str> = args.split_whitespace().collect();
    let mut child =
        folder.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("parameters") {
        line.clear();
        assert!(errors.read_line(&mut line).unwrap() > 0, "it ended early");
    }
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut errors, &mut rest).unwrap();
    let ran = CliOutput::new(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130), "{rest} {ran:#?}");
    assert!(rest.contains("the same command continues"), "{rest}");
    assert!(ran.out.contains("begun"), "{ran:#?}");
    assert!(folder.path("runs/repro-lra-100000steps/table.md").is_file());
}
