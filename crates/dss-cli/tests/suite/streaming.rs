//! `dss stream`, `dss generate`, `dss export` and `dss import`, with a small trained model of sound.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::common::{CliOutput, Folder, piped};

/// A model of 2 layers, H = 16, N = 16, trained on ten words.
pub fn model() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/words.safetensors")
}

/// Someone says a word, at 16 kHz.
pub fn clip() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/word.wav")
}

pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_file_standard_input_and_raw_samples_are_the_same() {
    let folder = Folder::new();
    let (model, clip) = (model(), clip());
    let file = folder.run(&["stream", text(&model), text(&clip), "--every", "250ms"]).ok();
    let lines: Vec<&str> = file.out.lines().collect();
    assert!((1..=5).contains(&lines.len()), "{}", file.out);
    assert!(lines[0].starts_with("0.250 s\t"), "{}", lines[0]);
    assert_eq!(lines[0].split('\t').count(), 3);
    let bytes = std::fs::read(&clip).unwrap();
    let wav = piped(&folder, &["stream", text(&model), "--every", "250ms"], &bytes).ok();
    assert_eq!(wav.out, file.out);
    let raw = piped(&folder, &["stream", text(&model), "-", "--every", "4000"], &bytes[44..]).ok();
    assert_eq!(raw.out, file.out);
}

/// Programs that write to a pipe do not know the length.
#[test]
fn sizes_of_pipes_mean_until_the_end() {
    let folder = Folder::new();
    let (model, mut bytes) = (model(), std::fs::read(clip()).unwrap());
    let whole = piped(&folder, &["stream", text(&model), "-"], &bytes).ok().out;
    for size in [0u32, 0x7fff_f000, 0x8000_0000, u32::MAX] {
        bytes[40..44].copy_from_slice(&size.to_le_bytes());
        let state = format!("{size}.state");
        let ran = piped(&folder, &["stream", text(&model), "-", "--state", &state], &bytes).ok();
        assert_eq!((ran.out, ran.err.as_str()), (whole.clone(), ""), "{size:#x}");
        let states = [&state, "0.state"].map(|name| std::fs::read(folder.path(name)).unwrap());
        assert_eq!(states[0], states[1], "{size:#x}");
    }
}

/// A GRU and causal linear attention answer in steps what they answer about the whole file; FNet and Reformer cannot, and
/// say why before anything else.
#[test]
fn models_stream_or_say_why_not() {
    let folder = Folder::new();
    let row = |i: usize| format!("{},{}\n", ["up", "down"][i % 2], ["abcabc", "cbacb"][i % 2]);
    std::fs::write(folder.path("t.csv"), (0..40).map(row).collect::<String>()).unwrap();
    std::fs::write(folder.path("t.txt"), "abcab\n").unwrap();
    for (model, sets) in [
        ("gru", ""),
        ("linear-transformer", "ff=8 bidirectional=false"),
        ("fnet", "ff=8"),
        ("reformer", "ff=8 bidirectional=false"),
    ] {
        let sets = format!("task.path=t.csv layers=1 h=8 epochs=1 min_steps=0 batch=4 {sets}");
        let mut args = vec!["train", "files", "--model", model, "--out", model, "--quiet"];
        sets.split_whitespace().for_each(|set| args.extend(["--set", set]));
        folder.run(&args).ok();
        let ran = folder.run(&["stream", model, "t.txt"]);
        if let "fnet" | "reformer" = model {
            let title = if model == "fnet" { "FNet" } else { "Reformer" };
            let ran = ran.fails(1, &["cannot run as a stream", title]);
            assert!(!ran.err.contains("--window"), "{}", ran.err);
            continue;
        }
        let last = ran.ok().out.lines().last().unwrap().to_owned();
        let predicted = folder.run(&["predict", model, "t.txt"]).ok().out;
        let answer = |line: &str| line.split_once('\t').unwrap().1.to_owned();
        assert_eq!(answer(&last), answer(predicted.trim_end()), "{model}");
    }
}

/// Of a text, the end is part of the answer: one line for the last position, which has it.
#[test]
fn one_line_for_each_position_of_a_text() {
    let folder = Folder::new();
    let row = |i: usize| format!("{},{}\n", ["up", "down"][i % 2], ["abcabc", "cbacb"][i % 2]);
    std::fs::write(folder.path("t.csv"), (0..40).map(row).collect::<String>()).unwrap();
    let sets = "task.path=t.csv layers=1 h=8 n=4 epochs=1 batch=4 bidirectional=false";
    let mut args = vec!["train", "files", "--out", "run", "--quiet"];
    sets.split(' ').for_each(|set| args.extend(["--set", set]));
    folder.run(&args).ok();
    let ran = piped(&folder, &["stream", "run", "-"], b"abca\n").ok();
    let places: Vec<&str> = ran.out.lines().filter_map(|line| line.split('\t').next()).collect();
    assert_eq!(places, ["1", "2", "3", "4"]);
    std::fs::write(folder.path("t.txt"), "abca\n").unwrap();
    let predicted = folder.run(&["predict", "run", "t.txt"]).ok().out;
    let answer = |line: &str| line.split_once('\t').unwrap().1.to_owned();
    assert_eq!(answer(ran.out.lines().last().unwrap()), answer(predicted.trim_end()));
    let standard = piped(&folder, &["predict", "run", "-"], b"abca\n").ok().out;
    assert_eq!(standard, predicted.replace("t.txt", "-"));
}

/// Other files are not taken for samples unless that is asked for.
#[test]
fn raw_samples_are_read_when_asked_for_or_from_a_pipe() {
    let folder = Folder::new();
    let (model, bytes) = (model(), std::fs::read(clip()).unwrap());
    std::fs::write(folder.path("song.mp3"), [b"ID3\x04", &bytes[44..]].concat()).unwrap();
    let named = folder.run(&["stream", text(&model), "song.mp3"]);
    named.fails(1, &["song.mp3", "neither WAV nor FLAC", "--raw"]);
    std::fs::write(folder.path("raw"), &bytes[44..]).unwrap();
    let raw = folder.run(&["stream", text(&model), "raw", "--raw"]).ok();
    assert_eq!(raw.err, "");
    let piped = piped(&folder, &["stream", text(&model)], &bytes[44..]).ok();
    assert_eq!(piped.out, raw.out);
    assert!(piped.err.contains("read as raw 16-bit samples, 16000 per second"), "{}", piped.err);
}

/// One file, one answer: however a table is written, and whichever command reads it.
#[test]
fn predict_and_stream_agree() {
    let folder = Folder::new();
    let row = |i: usize| format!("{},{},0.5,-{}\n", ["up", "down"][i % 2], i % 7, i % 5);
    let train: String = (0..40).map(row).collect();
    std::fs::write(folder.path("train.csv"), format!("label,a,b,c\n{train}")).unwrap();
    let sizes = ["layers=1", "h=8", "n=4", "epochs=1", "min_steps=0", "batch=4"];
    let settings = [&sizes[..], &["bidirectional=false"]].concat();
    let settings = settings.iter().flat_map(|s| ["--set", s]).collect::<Vec<_>>();
    let args = ["train", "files", "--set", "task.path=train.csv", "--out", "run", "--quiet"];
    folder.run(&[&args[..], &settings].concat()).ok();
    let answer = |args: &[&str]| {
        let ran = folder.run(args).ok();
        let cells: Vec<String> =
            ran.out.lines().last().unwrap().split('\t').map(str::to_owned).collect();
        (cells[1].clone(), cells[2].parse::<f64>().unwrap())
    };
    let tables = [
        ("plain.csv", "3,0.5,-2\n"),
        ("labelled.csv", "up,3,0.5,-2\r\n"),
        ("named.csv", "c,label,a,b\r-2,up,3,0.5\r"),
        ("quoted.csv", "\"3\",\"0.5\",\"-2\"\n"),
        ("semicolons.csv", "3;0.5;-2\n"),
        ("tabs.csv", "3\t0.5\t-2\n"),
        ("tabs.tsv", "a\tb\tc\n3\t0.5\t-2"),
        ("spaces.csv", "3 0.5  -2\n"),
    ];
    let (label, expected) = answer(&["predict", "run", "train.csv"]);
    assert!(["up", "down"].contains(&&*label) && expected > 0.0);
    for (name, table) in tables {
        std::fs::write(folder.path(name), table).unwrap();
        let (predicted, streamed) =
            (answer(&["predict", "run", name]), answer(&["stream", "run", name]));
        let said = folder.run(&["stream", "run", name]).ok().err;
        assert!(said.contains(&format!("{name}: all rows are one stream")), "{said}");
        let first = answer(&["predict", "run", "plain.csv"]);
        assert_eq!(predicted, first, "{name}");
        assert_eq!(streamed.0, predicted.0, "{name}");
        assert!((streamed.1 - predicted.1).abs() < 2e-4, "{name}: {streamed:?} {predicted:?}");
    }
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }\n";
    let length = (header.len() as u16).to_le_bytes();
    let numbers = [3.0, 0.5, -2.0].map(f32::to_le_bytes).concat();
    let array = [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), &numbers].concat();
    let ran = piped(&folder, &["predict", "run", "-"], &array).ok();
    assert!(ran.out.starts_with("-\t"), "{ran:?}");
}

#[test]
fn json_lines() {
    let folder = Folder::new();
    let ran = folder.run(&["stream", text(&model()), text(&clip()), "--json", "--every", "0.5s"]);
    let ran = ran.ok();
    let last: serde_json::Value = serde_json::from_str(ran.out.lines().last().unwrap()).unwrap();
    let all = last["probabilities"].as_object().unwrap();
    let sum: f64 = all.values().map(|p| p.as_f64().unwrap()).sum();
    assert!((sum - 1.0).abs() < 1e-9, "{ran:?}");
    let label = last["label"].as_str().unwrap();
    assert_eq!(last["probability"], all[label]);
    assert_eq!(last["time"], last["position"].as_f64().unwrap() / 16000.0);
}

#[test]
fn a_stream_in_two_parts_is_one_stream() {
    let folder = Folder::new();
    let model = model();
    let bytes = std::fs::read(clip()).unwrap();
    let samples = &bytes[44..];
    let all = piped(&folder, &["stream", text(&model), "-", "--every", "1000"], samples).ok();
    let (first, second) = samples.split_at(9000);
    let args = ["stream", text(&model), "-", "--every", "1000", "--state", "s.state"];
    let first = piped(&folder, &args, first).ok();
    let second = piped(&folder, &args, second).ok();
    // The first part ends between two lines and says so.
    let mut lines: Vec<&str> = first.out.lines().collect();
    assert!(lines.pop().unwrap().starts_with("0.281 s"));
    lines.extend(second.out.lines());
    assert_eq!(lines, all.out.lines().collect::<Vec<_>>());
    // Another model's state, or none at all.
    std::fs::write(folder.path("s.state"), b"nonsense").unwrap();
    piped(&folder, &args, samples).fails(1, &["s.state", "not a saved state"]);
}

#[test]
fn sound_at_half_the_rate_is_read_with_twice_the_step() {
    let folder = Folder::new();
    let bytes = std::fs::read(clip()).unwrap();
    let half: Vec<u8> = bytes[44..].chunks_exact(4).flat_map(|x| [x[0], x[1]]).collect();
    let model = model();
    let full = folder.run(&["stream", text(&model), text(&clip()), "--every", "10s"]).ok();
    let args = ["stream", text(&model), "-", "--rate", "8000", "--every", "10s"];
    let slow = piped(&folder, &args, &half).ok();
    assert!(slow.err.contains("8000 samples per second"), "{}", slow.err);
    let time = |ran: &CliOutput| ran.out.split('\t').next().unwrap().to_owned();
    assert_eq!(time(&full), time(&slow));
    let probability =
        |ran: &CliOutput| ran.out.trim().rsplit('\t').next().unwrap().parse::<f64>().unwrap();
    assert!((probability(&full) - probability(&slow)).abs() < 0.2, "{full:?} {slow:?}");
    let odd = piped(&folder, &["stream", text(&model), "-", "--rate", "11025"], &half).ok();
    assert!(odd.err.contains("its step is 1.4512 times as long"), "{}", odd.err);

    // `predict` does the same.
    let mut wav = bytes[..44].to_vec();
    wav[24..28].copy_from_slice(&8000u32.to_le_bytes());
    wav[40..44].copy_from_slice(&(half.len() as u32).to_le_bytes());
    std::fs::write(folder.path("slow.wav"), [wav, half].concat()).unwrap();
    let predicted = folder.run(&["predict", text(&model), "slow.wav", text(&clip())]).ok();
    assert!(predicted.err.contains("8000 samples per second"), "{}", predicted.err);
    let lines: Vec<&str> = predicted.out.lines().collect();
    for (line, streamed) in lines.iter().zip([&slow, &full]) {
        let answer = |line: &str| line.split('\t').skip(1).collect::<Vec<_>>().join("\t");
        assert_eq!(answer(line), answer(streamed.out.trim_end()), "{lines:?}");
    }
}

#[test]
fn wrong_input_is_reported() {
    let folder = Folder::new();
    let model = model();
    let stream = |input: &[u8], more: &[&str]| {
        let args = [&["stream", text(&model), "-"], more].concat();
        piped(&folder, &args, input)
    };
    let bytes = std::fs::read(clip()).unwrap();
    // A recording that was stopped is read as far as it goes, a file has to be whole.
    let cut = stream(&bytes[..1000], &[]).ok();
    assert!(cut.err.contains("cut short") && !cut.out.is_empty(), "{cut:?}");
    std::fs::write(folder.path("cut.wav"), &bytes[..1000]).unwrap();
    folder.run(&["stream", text(&model), "cut.wav"]).fails(1, &["cut.wav", "cut short"]);
    stream(b"RIFF", &[]).fails(1, &["cut short in its header"]);
    piped(&folder, &["predict", text(&model), "-"], &bytes[..1000])
        .fails(1, &["error: standard input: cut short"]);
    stream(b"fLaCnonsense", &[]).fails(1, &["standard input"]);
    stream(&f32::NAN.to_le_bytes(), &["--format", "f32le"]).fails(1, &["sample 0 is NaN"]);
    stream(b"", &["--every", "never"]).fails(2, &["100ms"]);
    stream(b"", &["--format", "text"]).fails(2, &["reads sound"]);
    stream(b"", &[]).fails(1, &["the input was empty"]);
    stream(&bytes, &["--format", "flac"]).fails(1, &["not a FLAC file"]);
    stream(&bytes, &["--rate", "1"]).fails(2, &["ratio of the rates"]);
    stream(&bytes, &["--rate", "1e-300"]).fails(2, &["from 1e-6 to 1e9"]);
    folder.run(&["stream", "nothing"]).fails(2, &["neither a run directory nor a file"]);
    folder.run(&["stream", text(&model), "missing.wav"]).fails(1, &["missing.wav"]);
    std::fs::write(folder.path("broken"), &std::fs::read(&model).unwrap()[..500]).unwrap();
    folder.run(&["stream", "broken"]).fails(1, &["broken", "not a model"]);
    folder.run(&["generate", text(&model)]).fails(2, &["reads numbers, not text"]);
}

/// Bytes that a model of text would read as something else.
#[test]
fn gzips_and_tables_of_texts_are_refused() {
    let folder = Folder::new();
    let row = |i: usize| format!("{},\"film {i}, seen\"\n", ["good", "bad"][i % 2]);
    let table: String = (0..40).map(row).collect();
    std::fs::write(folder.path("t.csv"), format!("label,text\n{table}")).unwrap();
    let sizes = ["tokens=bytes", "layers=1", "h=8", "n=4", "epochs=1", "min_steps=0"];
    let sizes: Vec<&str> = sizes.iter().flat_map(|s| ["--set", s]).collect();
    folder
        .run(&[&["train", "files", "t.csv", "--out", "run", "--quiet"], &sizes[..]].concat())
        .ok();
    folder.run(&["stream", "run", "t.csv"]).fails(2, &["one text", "dss predict"]);
    folder.run(&["stream", "run", "t.csv", "--format", "text"]).ok();
    piped(&folder, &["stream", "run", "-"], b"\x1f\x8b\x08\0").fails(1, &["gzipped", "zcat"]);
    piped(&folder, &["stream", "run", "-"], b"film 1, seen\n").ok();
}

/// The reader of the output goes away.
#[test]
fn a_broken_pipe_is_a_normal_end() {
    let folder = Folder::new();
    let model = model();
    let args = ["stream", text(&model), "-", "--raw", "--every", "1", "--state", "s.state"];
    let mut command = folder.command(&args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let _ = child.stdin.take().unwrap().write_all(&[0; 20000]);
    let ran = CliOutput::new(child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert!(folder.path("s.state").is_file());
}

/// Ctrl-C saves the state of a stream that is silent at the time.
#[cfg(unix)]
#[test]
fn an_interruption_saves_the_state() {
    let folder = Folder::new();
    let model = model();
    let args = ["stream", text(&model), "-", "--every", "100", "--state", "s.state"];
    let mut command = folder.command(&args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(&[1; 2000]).unwrap();
    // It has taken these once it has said something about the last of them.
    let mut said = String::new();
    let mut lines = std::io::BufReader::new(child.stdout.take().unwrap());
    while !said.contains("0.062 s") {
        assert!(std::io::BufRead::read_line(&mut lines, &mut said).unwrap() > 0, "{said}");
    }
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    drop(input);
    let more = piped(&folder, &args, &[1; 200]).ok();
    assert!(more.out.starts_with("0.069 s"), "{}", more.out);
}

/// What `predict -` has read is for nobody else, and gone after Ctrl-C.
#[cfg(unix)]
#[test]
fn an_interrupted_prediction_leaves_nothing() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    std::fs::create_dir(folder.path("temporary")).unwrap();
    let model = model();
    let mut command = folder.command(&["predict", text(&model), "-"]);
    command.env("TMPDIR", folder.path("temporary"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(&[1; 2000]).unwrap();
    let made = || std::fs::read_dir(folder.path("temporary")).unwrap().next();
    let begin = std::time::Instant::now();
    let path = loop {
        let path = made().map(|made| made.unwrap().path());
        if let Some(path) = path.filter(|path| path.join("-").exists()) {
            break path;
        }
        assert!(begin.elapsed().as_secs() < 60, "it reads nothing");
        std::thread::sleep(std::time::Duration::from_millis(10));
    };
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o077, 0);
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(made().is_none());
    drop(input);
}

#[test]
fn export_and_import() {
    let folder = Folder::new();
    let model = model();
    folder.run(&["export", text(&model), "--to", "full.safetensors"]).ok();
    let slim = folder.run(&["export", text(&model), "--to", "slim.safetensors", "--f16"]).ok();
    assert!(slim.out.contains("weights changed by at most"), "{}", slim.out);
    folder.run(&["import", "slim.safetensors", "--to", "back.safetensors"]).ok();
    let answer =
        |model: &str| folder.run(&["stream", model, text(&clip()), "--every", "10s"]).ok().out;
    assert_eq!(answer("full.safetensors"), answer(text(&model)));
    assert_eq!(answer("slim.safetensors"), answer("back.safetensors"));
    let same = folder.run(&["export", "full.safetensors", "--to", "full.safetensors"]);
    same.fails(2, &["is also the input file"]);
    folder.run(&["export", text(&clip()), "--to", "x"]).fails(1, &["word.wav", "not a model"]);
    // A card beside each file, and no other file overwritten.
    let card = std::fs::read_to_string(folder.path("slim.md")).unwrap();
    for part in [
        "# Model card: slim",
        "speech: ",
        "`yes`, `no`",
        "dss stream slim.safetensors",
        "`model.h` | 16",
    ] {
        assert!(card.contains(part), "no {part} in {card}");
    }
    std::fs::write(folder.path("notes.md"), "my notes").unwrap();
    folder.run(&["export", text(&model), "--to", "notes.safetensors"]).ok();
    assert_eq!(std::fs::read_to_string(folder.path("notes.md")).unwrap(), "my notes");
}

/// A language model of a few steps writes the same text for the same seed.
#[test]
fn generation() {
    let folder = Folder::new();
    std::fs::write(
        folder.path("text.txt"),
        "the quick brown fox jumps over the lazy dog. ".repeat(60),
    )
    .unwrap();
    let settings = ["layers=1", "h=8", "n=4", "len=64", "epochs=1", "batch=2"];
    let settings = settings.iter().flat_map(|s| ["--set", s]).collect::<Vec<_>>();
    let train = ["train", "lm", "--data", "text.txt", "--out", "run", "--quiet"];
    folder.run(&[&train[..], &settings].concat()).ok();
    let text = |more: &[&str]| {
        let args = ["generate", "run", "--prompt", "the ", "--length", "50"];
        folder.run(&[&args[..], more].concat()).ok()
    };
    let first = text(&["--seed", "3"]);
    assert_eq!(first.out.chars().count(), 4 + 50 + 1);
    assert!(first.out.starts_with("the ") && first.err.contains("tokens/s"), "{first:?}");
    assert_eq!(first.out, text(&["--seed", "3"]).out);
    assert_ne!(first.out, text(&["--seed", "4"]).out);
    assert_eq!(text(&["--temperature", "0"]).out, text(&["--top-k", "1", "--seed", "9"]).out);
    let wrong = |more: &[&str]| folder.run(&[&["generate", "run"], more].concat());
    wrong(&["--prompt", "ÄÖ"]).fails(2, &["prompt", "not trained on"]);
    wrong(&["--prompt", "the", "--temperature", "-1"]).fails(2, &["temperature"]);
    wrong(&["--prompt", ""]).fails(2, &["at least one token"]);
    // The stream of a text says which character comes next.
    let ran = piped(&folder, &["stream", "run", "-", "--every", "4"], b"the quick").ok();
    assert_eq!(ran.out.lines().count(), 3, "{}", ran.out);
}
