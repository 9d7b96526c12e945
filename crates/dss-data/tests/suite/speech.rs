//! Speech Commands in all its layouts: one task, one split.

use crate::{common, encode};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use dss_data::speech::{ALL, SC10, ShortClips, SplitChoice, Words, read_sound};
use dss_data::{
    Dataset, Encoder, Input, InputKind, ReadFile, SequencePlace, SpeechConfig, Target, TargetKind,
    Task, TaskConfig, audio,
};
use proptest::prelude::*;
use sha2::{Digest, Sha256};

fn load(config: &SpeechConfig) -> dss_data::Result<Task> {
    common::own_cache();
    TaskConfig::Speech(config.clone()).load(None, &|_| {})
}

fn load_mfcc(config: &SpeechConfig) -> dss_data::Result<Task> {
    common::own_cache();
    TaskConfig::SpeechMfcc(config.clone()).load(None, &|_| {})
}

fn fault(config: &SpeechConfig) -> String {
    load(config).err().unwrap().message_and_hint()
}

fn config(path: &Path) -> SpeechConfig {
    let dir = path.to_str().unwrap().to_owned();
    SpeechConfig { dir, split: SplitChoice::Official, ..SpeechConfig::default() }
}

fn example(data: &dyn Dataset, i: usize) -> (u32, Vec<f32>) {
    let example = data.example(i).unwrap();
    let (Target::Class(class), Input::Values(values)) = (example.target, example.input) else {
        panic!()
    };
    (class, values)
}

fn sizes(task: &Task) -> [usize; 3] {
    [&task.train, &task.val, &task.test].map(|data| data.len())
}

/// Samples of clip `i` of a word; the fourth of each word is short.
fn clip(word: usize, i: usize) -> Vec<i16> {
    let n = if i == 3 { 12_345 } else { 16_000 };
    let step = 17 + 40 * word + 3 * i;
    (0..n).map(|t| ((t * step % 8_009) as i16 - 4_000) + (t % 7) as i16).collect()
}

/// Six clips per word: 4 for training, then one for validation and one for test.
const CLIPS: usize = 6;
const SPLITS: [&str; CLIPS] = ["train", "train", "train", "train", "val", "test"];

type Files = Vec<(String, Vec<u8>)>;

/// `word/clip.wav`, with the lists.
fn official(words: &[&str]) -> Files {
    let mut files = Vec::new();
    let mut lists = [String::new(), String::new()];
    for (w, word) in words.iter().enumerate() {
        for (i, split) in SPLITS.iter().enumerate() {
            let name = format!("{word}/{i:08x}_nohash_0.wav");
            match *split {
                "val" => lists[0] += &format!("{name}\n"),
                "test" => lists[1] += &format!("{name}\n"),
                _ => {}
            }
            files.push((name, encode::wav(&clip(w, i), 16_000, 1)));
        }
    }
    let [val, test] = lists.map(String::into_bytes);
    files.push(("validation_list.txt".into(), val));
    files.push(("testing_list.txt".into(), test));
    files.push(("_background_noise_/pink.wav".into(), encode::wav(&[1; 50_000], 44_100, 2)));
    files.push(("README.md".into(), b"words".to_vec()));
    files
}

/// `train|val|test/word/clip.flac`.
fn by_folder(words: &[&str]) -> Files {
    let name = |split: &str, word: &str, i: usize| format!("{split}/{word}/c{}.flac", 9 - i);
    let each = words
        .iter()
        .enumerate()
        .flat_map(|(w, word)| SPLITS.iter().enumerate().map(move |(i, split)| (w, word, i, split)));
    each.map(|(w, word, i, split)| (name(split, word, i), encode::flac(&clip(w, i), 16_000)))
        .collect()
}

fn write(folder: &Path, files: &Files) -> PathBuf {
    for (name, bytes) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    folder.to_owned()
}

fn small() -> (tempfile::TempDir, SpeechConfig) {
    let dir = tempfile::tempdir().unwrap();
    let config = config(&write(dir.path(), &official(&SC10)));
    (dir, config)
}

#[test]
fn every_layout_gives_the_same_task() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path();
    let (wav, mut backward) = (official(&SC10), official(&SC10));
    backward.reverse();
    backward.iter_mut().for_each(|(name, _)| *name = format!("./{name}"));
    let flac = by_folder(&SC10);
    let places = [
        write(&top.join("official"), &wav),
        top.join("speech_commands_v0.02.tar.gz"),
        write(&top.join("folders"), &flac),
        top.join("core.tar"),
    ];
    fs::write(&places[1], encode::gz(&encode::tar(&backward))).unwrap();
    fs::write(&places[3], encode::tar(&flac)).unwrap();

    let tasks = places.clone().map(|path| load(&config(&path)).unwrap());
    let features = places.clone().map(|path| load_mfcc(&config(&path)).unwrap());
    let random = places
        .map(|path| load(&SpeechConfig { split: SplitChoice::Paper, ..config(&path) }).unwrap());
    for (tasks, expected) in
        [(&tasks, [30, 10, 10]), (&features, [30, 10, 10]), (&random, [35, 7, 8])]
    {
        let first = &tasks[0];
        assert_eq!(sizes(first), expected);
        assert_eq!(first.notes.len(), 1, "{:?}", first.notes);
        assert!(
            first.notes[0].to_string().starts_with("10 clips of less than 16000"),
            "{:?}",
            first.notes
        );
        for task in &tasks[1..] {
            assert_eq!(task.split_hash, first.split_hash);
            assert_eq!(task.encoder, first.encoder);
            for (a, b) in
                [(&task.train, &first.train), (&task.val, &first.val), (&task.test, &first.test)]
            {
                (0..b.len()).for_each(|i| assert_eq!(example(&**a, i), example(&**b, i)));
            }
        }
    }
    assert_ne!(tasks[0].split_hash, random[0].split_hash);
    assert_eq!(tasks[0].spec.target, TargetKind::Class { labels: SC10.map(str::to_owned).into() });
    assert_eq!((tasks[0].spec.len, features[0].spec.len), (16_000, 161));
    assert_eq!(features[0].spec.input, InputKind::Values { channels: 20 });

    // Every word has one clip in each of validation and test, and the label fits the samples.
    for data in [&tasks[0].val, &tasks[0].test] {
        let mut classes: Vec<u32> = (0..10).map(|i| example(&**data, i).0).collect();
        classes.sort_unstable();
        assert_eq!(classes, (0..10).collect::<Vec<_>>());
    }
}

#[test]
fn scaling_is_that_of_the_specification() {
    let (_dir, config) = small();
    let task = load(&config).unwrap();
    let all: Vec<f64> = (0..10)
        .flat_map(|w| (0..3).flat_map(move |i| clip(w, i)))
        .map(|s| f64::from(s) / 32768.0)
        .collect();
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    let sd = (all.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / all.len() as f64).sqrt();
    let i = (0..10).find(|&i| example(&*task.test, i).0 == 4).unwrap();
    let (_, values) = example(&*task.test, i);
    for (value, sample) in values.iter().zip(clip(4, 5)) {
        let expected = (f64::from(sample) / 32768.0 - mean) / (sd + 0.32768);
        assert!((f64::from(*value) - expected).abs() < 1e-6);
    }
    let features = load_mfcc(&config).unwrap();
    let mut sums = [[0.0; 2]; 20];
    for i in 0..30 {
        for (j, x) in example(&*features.train, i).1.into_iter().enumerate() {
            sums[j % 20][0] += f64::from(x);
            sums[j % 20][1] += f64::from(x).powi(2);
        }
    }
    for [sum, square] in sums.map(|s| s.map(|s| s / (30.0 * 161.0))) {
        assert!(sum.abs() < 1e-3 && (square - 1.0).abs() < 1e-3, "{sum} {square}");
    }
}

#[test]
fn half_rate_is_every_second_sample_of_the_same_splits() {
    let (_dir, config) = small();
    let (whole, half) =
        (load(&config).unwrap(), load(&SpeechConfig { rate: 8_000, ..config.clone() }).unwrap());
    assert_eq!((whole.spec.len, half.spec.len), (16_000, 8_000));
    assert_eq!(whole.split_hash, half.split_hash);
    for i in 0..30 {
        let ((class, a), (same, b)) = (example(&*whole.train, i), example(&*half.train, i));
        assert_eq!((class, a.iter().step_by(2).copied().collect::<Vec<_>>()), (same, b));
    }
    let wrong = SpeechConfig { rate: 44_100, ..config.clone() };
    assert!(fault(&wrong).contains("task.rate = 44100: must be 16000 or 8000"));
    let error = load_mfcc(&SpeechConfig { rate: 8_000, ..config }).err().unwrap().to_string();
    assert!(error.contains("task.rate = 8000"), "{error}");
}

#[test]
fn short_clips_are_left_out_or_filled_up() {
    let (_dir, config) = small();
    let task = load(&SpeechConfig { short: ShortClips::Pad, ..config.clone() }).unwrap();
    assert_eq!(sizes(&task), [40, 10, 10]);
    assert!(task.notes.is_empty());
    assert_ne!(task.split_hash, load(&config).unwrap().split_hash);
    let Encoder::Speech(encoder) = &task.encoder else { panic!() };
    let zero = -encoder.mean[0] / encoder.divisor[0];
    let silent = (0..40).filter(|&i| {
        let (_, values) = example(&*task.train, i);
        assert_eq!(values.len(), 16_000);
        values[12_345..].iter().all(|&v| v == zero)
    });
    assert_eq!(silent.count(), 10);
    let features = load_mfcc(&SpeechConfig { short: ShortClips::Pad, ..config }).unwrap();
    assert_eq!(sizes(&features), [40, 10, 10]);
    assert!((0..40).all(|i| example(&*features.train, i).1.len() == 161 * 20));
}

#[test]
fn prediction_reads_as_training_did() {
    let (dir, config) = small();
    let rest = [("wave", load(&config).unwrap()), ("features", load_mfcc(&config).unwrap())];
    let half = load(&SpeechConfig { rate: 8_000, ..config }).unwrap();
    for (name, task) in rest.iter().chain([&("half", half)]) {
        let json = serde_json::to_string(&task.encoder).unwrap();
        let encoder: Encoder = serde_json::from_str(&json).unwrap();
        assert_eq!(encoder, task.encoder, "{name}");
        let i = (0..10).find(|&i| example(&*task.test, i).0 == 2).unwrap();
        let expected = Input::Values(example(&*task.test, i).1);
        let wav = dir.path().join("up/00000005_nohash_0.wav");
        let flac = dir.path().join("clip.flac");
        fs::write(&flac, encode::flac(&clip(2, 5), 16_000)).unwrap();
        for path in [wav, flac] {
            let read = encoder.read(&path).unwrap();
            assert_eq!(read, [(SequencePlace::File, expected.clone())]);
        }
        // A file at 8 kHz suits the model at half rate only; others read it at its own rate.
        let slow = dir.path().join("slow.wav");
        let samples: Vec<i16> = clip(2, 5).into_iter().step_by(2).collect();
        fs::write(&slow, encode::wav(&samples, 8_000, 1)).unwrap();
        match *name {
            "half" => assert_eq!(encoder.read(&slow).unwrap()[0].1, expected),
            _ => assert!(encoder.read(&slow).unwrap_err().to_string().contains("8000 Hz")),
        }
        if let Encoder::Speech(encoder) = &encoder
            && encoder.sample_rate().is_some()
        {
            let (Input::Values(values), rate) = read_sound(encoder, &slow).unwrap() else {
                panic!()
            };
            assert_eq!((values.len(), rate), (samples.len(), 8000.0));
        }
        let long = dir.path().join("long.wav");
        fs::write(&long, encode::wav(&[0; 16_001], 16_000, 1)).unwrap();
        let error = encoder.read(&long).unwrap_err().to_string();
        assert!(error.contains("long.wav: 16001 samples; a clip has at most 16000"), "{error}");
    }
    let broken = r#"{"kind":"speech","form":"mfcc","rate":16000,"mean":[0.0],"divisor":[]}"#;
    let broken: Encoder = serde_json::from_str(broken).unwrap();
    let error = broken.read(&dir.path().join("clip.flac")).unwrap_err().to_string();
    assert!(error.contains("damaged"), "{error}");
}

#[test]
fn all_words_in_alphabetical_order() {
    let dir = tempfile::tempdir().unwrap();
    let mut words = ALL;
    words.reverse();
    let all = SpeechConfig { words: Words::All, ..config(&write(dir.path(), &official(&words))) };
    let task = load(&all).unwrap();
    assert_eq!(task.spec.target, TargetKind::Class { labels: ALL.map(str::to_owned).into() });
    assert_eq!(sizes(&task), [105, 35, 35]);
    // The older version lacks five words.
    for word in ["backward", "follow", "forward", "learn", "visual"] {
        fs::remove_dir_all(dir.path().join(word)).unwrap();
    }
    let task = load(&all).unwrap();
    let TargetKind::Class { labels } = &task.spec.target else { panic!() };
    assert_eq!((labels.len(), labels[0].as_str(), labels[29].as_str()), (30, "bed", "zero"));
    let expected =
        "30 of the 35 words were found; missing: backward, follow, forward, learn, visual";
    assert!(task.notes.iter().any(|note| note.to_string() == expected), "{:?}", task.notes);
    let classes: Vec<u32> = (0..30).map(|i| example(&*task.test, i).0).collect();
    assert_eq!(classes.iter().max(), Some(&29));
    fs::remove_dir_all(dir.path().join("up")).unwrap();
    let ten = SpeechConfig { words: Words::Sc10, ..all };
    assert!(fault(&ten).ends_with("of the words up"), "{}", fault(&ten));
}

#[test]
fn settings_choose_the_examples() {
    let (dir, config) = small();
    let all = load(&config).unwrap();
    let few = load(&SpeechConfig { train: 7, val: 2, test: 3, ..config.clone() }).unwrap();
    assert_eq!(sizes(&few), [7, 2, 3]);
    assert_ne!(few.split_hash, all.split_hash);
    let raw = |task: &Task, i| {
        let Encoder::Speech(encoder) = &task.encoder else { panic!() };
        let back = |v: f32| ((v * encoder.divisor[0] + encoder.mean[0]) * 32768.0).round();
        example(&*task.train, i).1.into_iter().map(back).collect::<Vec<_>>()
    };
    (0..7).for_each(|i| assert!(raw(&few, i) == raw(&all, i)));
    let other = load(&SpeechConfig { split_seed: 1, ..config.clone() }).unwrap();
    assert!(raw(&other, 0) != raw(&all, 0));
    let many = fault(&SpeechConfig { test: 11, ..config.clone() });
    assert!(many.contains("task.test = 11") && many.contains("only 10"), "{many}");
    fs::remove_file(dir.path().join("testing_list.txt")).unwrap();
    let unlisted = fault(&config);
    assert!(unlisted.contains("task.split = \"paper\""), "{unlisted}");
    assert!(load(&SpeechConfig { split: SplitChoice::Paper, ..config }).is_ok());
}

#[test]
fn faults_name_the_file_or_the_entry() {
    let samples = clip(0, 0);
    let mut bits = encode::wav(&samples, 16_000, 1);
    bits[34] = 8;
    let whole = encode::wav(&samples, 16_000, 1);
    let cases = [
        (encode::wav(&samples, 44_100, 1), "44100 Hz, 1 channel(s), 16 bits"),
        (encode::wav(&samples, 16_000, 2), "16000 Hz, 2 channel(s)"),
        (bits, "8 bits"),
        (
            whole[..20_000].to_vec(),
            "cut short: the header announces 32000 bytes of samples, but 19956 follow",
        ),
        (encode::wav(&[], 16_000, 1), "no samples"),
        (encode::wav(&[5; 16_001], 16_000, 1), "16001 samples; a clip has at most 16000"),
        (b"ID3\x04 a song".to_vec(), "it starts with \"ID3\\x04\""),
        (Vec::new(), "only 0 bytes"),
        (encode::flac(&samples, 16_000)[..9_000].to_vec(), "cut short"),
    ];
    let dir = tempfile::tempdir().unwrap();
    let archive = dir.path().join("speech_commands_v0.02.tar.gz");
    let mut files = official(&SC10);
    let folder = write(&dir.path().join("folder"), &files);
    for (bytes, part) in cases {
        fs::write(folder.join("left/00000001_nohash_0.wav"), &bytes).unwrap();
        let place =
            files.iter().position(|(name, _)| name == "left/00000001_nohash_0.wav").unwrap();
        files[place].1 = bytes;
        fs::write(&archive, encode::gz(&encode::tar(&files))).unwrap();
        for (path, name) in [
            (&folder, "folder/left/00000001_nohash_0.wav: "),
            (&archive, "speech_commands_v0.02.tar.gz/left/00000001_nohash_0.wav: "),
        ] {
            let error = fault(&config(path));
            assert!(error.contains(name) && error.contains(part), "{error}");
            let skipping = SpeechConfig { skip_bad: true, ..config(path) };
            for task in [load(&skipping).unwrap(), load(&skipping).unwrap()] {
                assert_eq!(sizes(&task), [29, 10, 10]);
                let note = task.notes[0].to_string();
                assert!(
                    note.starts_with("1 faulty entry skipped: ") && note.contains(part),
                    "{note}"
                );
            }
        }
    }
    fs::write(folder.join("testing_list.txt"), "yes\n").unwrap();
    let list = fault(&SpeechConfig { skip_bad: true, ..config(&folder) });
    assert!(list.contains("testing_list.txt, line 1: expected a clip"), "{list}");
    let missing = fault(&SpeechConfig { dir: "/nowhere/at/all".into(), ..SpeechConfig::default() });
    assert!(missing.contains("dss data get speech") && missing.contains("/nowhere/at/all"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn damaged_archives_are_refused_or_read(at in any::<prop::sample::Index>(), bit in 0u8..8, cut in any::<prop::sample::Index>()) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.tar.gz");
        let files: Files = SC10.iter().flat_map(|word| {
            ["train", "val", "test"].map(|split| (format!("{split}/{word}/a.flac"), encode::flac(&[9; 300], 16_000)))
        }).collect();
        let whole = encode::gz(&encode::tar(&files));
        let config = SpeechConfig { short: ShortClips::Pad, ..config(&path) };
        fs::write(&path, &whole).unwrap();
        prop_assert_eq!(sizes(&load(&config).unwrap()), [10, 10, 10]);
        let mut damaged = whole.clone();
        damaged[at.index(whole.len())] ^= 1 << bit;
        fs::write(&path, damaged).unwrap();
        let _ = load(&config);
        fs::write(&path, &whole[..cut.index(whole.len())]).unwrap();
        prop_assert!(load(&config).is_err());
    }
}

#[test]
fn the_real_clips() {
    let Some(folder) = common::data("speech_commands10") else { return };
    let task = load(&config(&folder)).unwrap();
    assert_eq!(sizes(&task), [4_000, 600, 1_000]);
    assert!(task.notes.is_empty());
    // The known mean 3.7e-5 and deviation 0.08360 of the training clips.
    let Encoder::Speech(encoder) = &task.encoder else { panic!() };
    assert!((encoder.mean[0] - 3.7e-5).abs() < 1e-6, "{}", encoder.mean[0]);
    assert!((encoder.divisor[0] - 0.32768 - 0.0836).abs() < 1e-5, "{}", encoder.divisor[0]);
    for (data, count) in [(&task.train, 400), (&task.val, 60), (&task.test, 100)] {
        let mut counts = [0; 10];
        (0..data.len()).for_each(|i| counts[example(&**data, i).0 as usize] += 1);
        assert_eq!(counts, [count; 10]);
    }
    let random = load(&SpeechConfig { split: SplitChoice::Paper, ..config(&folder) }).unwrap();
    assert_eq!(sizes(&random), [3_920, 840, 840]);

    // Every clip has the sum of samples that is written down for it.
    let manifest = fs::read_to_string(folder.join("manifest.tsv")).unwrap();
    let rows = manifest.lines().skip(1).map(|line| line.split('\t').collect::<Vec<_>>());
    let sums: HashMap<String, String> =
        rows.map(|row| (row[1].to_owned(), row[6].to_owned())).collect();
    assert_eq!(sums.len(), 5_600);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("clip.flac");
    let file = fs::File::open(folder.join("sc10_core_flac.tar")).unwrap();
    let mut checked = 0;
    for entry in tar::Archive::new(file).entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().to_str().unwrap().to_owned();
        let Some(sum) = sums.get(&name) else { continue };
        std::io::copy(&mut entry, &mut fs::File::create(&path).unwrap()).unwrap();
        let samples = audio::read(&path).unwrap().samples;
        let pcm = samples.iter().flat_map(|s| ((s * 32768.0) as i16).to_le_bytes());
        let digest = Sha256::digest(pcm.collect::<Vec<_>>());
        let hex: String = digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(&hex, sum, "{name}");
        checked += 1;
    }
    assert_eq!(checked, 5_600);
}
