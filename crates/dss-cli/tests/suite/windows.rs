//! `dss stream --window`: the last part of an endless input, also for models that cannot run on.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::common::{Folder, piped};
use crate::streaming::{clip, model, text};

fn objects(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

fn probabilities(answer: &Value) -> BTreeMap<String, f64> {
    let all = answer["probabilities"].as_object().unwrap().iter();
    all.map(|(label, p)| (label.clone(), p.as_f64().unwrap())).collect()
}

#[test]
fn at_the_end_of_a_window_stream_and_predict_agree() {
    let folder = Folder::new();
    let (model, bytes) = (model(), std::fs::read(clip()).unwrap());
    let (header, samples) = bytes.split_at(44);
    let twice = [samples, samples].concat();
    let args =
        ["stream", text(&model), "-", "--raw", "--window", "500ms", "--hop", "250ms", "--json"];
    let lines = objects(&piped(&folder, &args, &twice).ok().out);
    assert_eq!(lines.len(), 8);
    let mut names = Vec::new();
    for end in (16_000..=64_000).step_by(8000) {
        let window = &twice[end - 16_000..end];
        let mut header = header.to_vec();
        header[40..44].copy_from_slice(&(window.len() as u32).to_le_bytes());
        names.push(format!("{end:05}.wav"));
        std::fs::write(folder.path(names.last().unwrap()), [&header, window].concat()).unwrap();
    }
    let mut args = vec!["predict", text(&model), "--json"];
    args.extend(names.iter().map(String::as_str));
    let predicted = objects(&folder.run(&args).ok().out);
    assert_eq!(predicted.len(), 7);
    for (line, predicted) in lines[1..].iter().zip(&predicted) {
        let (streamed, expected) = (probabilities(line), probabilities(predicted));
        for (label, p) in &expected {
            assert!((streamed[label] - p).abs() < 1e-4, "{line} {predicted}");
        }
    }

    // In two parts, with the same lines.
    let args = [&args_of(&model)[..], &["--state", "s.state"]].concat();
    let (first, second) = twice.split_at(25_000);
    let first = piped(&folder, &args, first).ok().out;
    let second = piped(&folder, &args, second).ok().out;
    let mut parts: Vec<&str> = first.lines().collect();
    parts.pop();
    parts.extend(second.lines());
    let whole = piped(&folder, &args_of(&model), &twice).ok().out;
    assert_eq!(parts, whole.lines().collect::<Vec<_>>());
    piped(&folder, &["stream", text(&model), "-", "--raw", "--state", "s.state"], &twice)
        .fails(1, &["s.state", "with a window"]);
}

fn args_of(model: &std::path::Path) -> [&str; 8] {
    ["stream", text(model), "-", "--raw", "--window", "500ms", "--hop", "250ms"]
}

#[test]
fn a_model_of_limited_length_runs_for_ever_with_windows() {
    let folder = Folder::new();
    let sets = "task.train=40 task.val=20 task.test=20 length=64 layers=1 h=8 n=4 batch=20 epochs=1 positions=learned";
    let mut args = vec!["train", "adding", "--quiet", "--out", "run"];
    sets.split(' ').for_each(|set| args.extend(["--set", set]));
    folder.run(&args).ok();
    let row = |i: usize| format!("0.{:02},{}\n", (i * 37) % 100, u8::from(i.is_multiple_of(9)));
    let rows: Vec<String> = (0..5000).map(row).collect();
    let ran = piped(&folder, &["stream", "run", "-", "--json"], rows.concat().as_bytes()).ok();
    let said = "the last 64 positions, a new stream begins every 16 positions";
    assert!(ran.err.contains("cannot run past") && ran.err.contains(said), "{}", ran.err);
    let lines = objects(&ran.out);
    assert_eq!(lines.len(), 5000usize.div_ceil(16));
    for end in [64, 80, 4992] {
        std::fs::write(folder.path("w.csv"), rows[end - 64..end].concat()).unwrap();
        let predicted = objects(&folder.run(&["predict", "run", "w.csv", "--json"]).ok().out);
        let line = &lines[end / 16 - 1];
        assert_eq!(line["position"], end);
        let [got, want] = [line, &predicted[0]].map(|answer| answer["values"][0].as_f64().unwrap());
        assert!((got - want).abs() < 1e-4, "{end}: {got} {want}");
    }
    let stream = |args: &str| {
        let args = format!("stream run w.csv {args}");
        folder.run(&args.split(' ').collect::<Vec<_>>())
    };
    let faulty = [rows[..3].concat(), "0.5,x\n".to_owned()].concat();
    let faulty = piped(&folder, &["stream", "run", "-", "--every", "1"], faulty.as_bytes());
    let faulty = faulty.fails(1, &["standard input: line 4, column 2: expected a number"]);
    assert_eq!(faulty.out.lines().count(), 3, "what came before the fault has its answers");
    stream("--window 65").fails(2, &["65 positions, but the model takes 64", "--window"]);
    stream("--window 1s").fails(2, &["no rate, so --window cannot be a time"]);
    stream("--window 64 --hop 20").fails(2, &["3.2000 hops", "whole number"]);
    stream("--window 18446744073709551615").fails(2, &["--window is 1.845e19 positions"]);
    stream("--rate 10 --window 1e99s").fails(2, &["--window is 1.000e100 positions", "250ms"]);
    stream("--hop 32").ok();
    let rounded = stream("--window 63").ok();
    assert!(
        rounded.err.contains("the window is 60 positions: 4 hops of 15 positions"),
        "{rounded:?}"
    );
    folder.run(&["stream", text(&model()), text(&clip()), "--hop", "1s"]).fails(2, &["--window"]);
}
