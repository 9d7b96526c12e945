//! Starting from the weights of another run, and learning from inputs alone.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use burn::tensor::{Device, TensorData};
use dss_nn::checkpoint;
use dss_train::config::{Request, Setting};
use dss_train::{Config, Error, Event, Objective, Observer};

use crate::common::{TempDir, assert_same, config, remains, run, run_watched, small_listops};

fn tensors(path: &Path) -> BTreeMap<String, TensorData> {
    let (model, _) = checkpoint::load(path, &Device::flex()).unwrap();
    model.named_tensors().into_iter().collect()
}

fn starting_from(run: &Path, sets: &[Setting]) -> Config {
    let request = Request {
        task: "listops".into(),
        from: Some(run.into()),
        sets: sets.to_vec(),
        ..Request::default()
    };
    let (resolved, sources) = request.resolve().unwrap();
    assert_eq!(sources.source("model.h"), "--from");
    let mut config = small_listops(1);
    assert_eq!(resolved.model, config.model, "the settings of the checkpoint");
    (config.train.from, config.train.freeze) = (resolved.train.from, resolved.train.freeze);
    config
}

/// Collects the notes of a run, and stops it every third step.
struct Notes<'a>(Vec<String>, &'a AtomicBool);

impl Observer for Notes<'_> {
    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Note(note) => self.0.push(note.clone()),
            Event::Step { step, .. } if step % 3 == 0 => self.1.store(true, Ordering::Relaxed),
            _ => {}
        }
    }
}

#[test]
fn a_pretrained_model_gets_a_new_head() {
    let temp = TempDir::new("pretrain");
    let (pretrained, tuned) = (temp.join("pretrained"), temp.join("tuned"));
    let mut config = small_listops(2);
    config.train.objective = Objective::Pretrain;
    config.model.bidirectional = true;
    let summary = run(&config, &pretrained, false).unwrap();
    assert!(summary.test.unwrap().accuracy.is_some(), "hidden symbols are classes");

    let mut config = small_listops(1);
    config.model.bidirectional = true;
    config.train.from = pretrained.to_str().unwrap().into();
    config.train.freeze = 2;
    let stop = AtomicBool::new(false);
    let mut notes = Notes(Vec::new(), &stop);
    let first = run_watched(&config, &tuned, false, &mut notes, &stop).unwrap();
    assert!(
        first.test.is_none() && notes.0[0].starts_with("all weights but the head's"),
        "{:?}",
        notes.0
    );
    // The source may be gone when the run is resumed.
    let whole = temp.join("whole");
    run(&config, &whole, false).unwrap();
    let before = tensors(&pretrained.join("best.safetensors"));
    std::fs::remove_dir_all(&pretrained).unwrap();
    run(&config, &tuned, true).unwrap();
    assert_same(&remains(&whole), &remains(&tuned), "resumed without its source");
    for (name, data) in tensors(&tuned.join("last/model.safetensors")) {
        let frozen = !name.starts_with("head.") && !name.contains("running");
        assert_eq!(frozen, before.get(&name) == Some(&data), "{name}");
    }
}

#[test]
fn the_same_answers_keep_the_head() {
    let temp = TempDir::new("from");
    let (first, second) = (temp.join("first"), temp.join("second"));
    run(&small_listops(1), &first, false).unwrap();
    let mut config = starting_from(&first, &[Setting::new("freeze", 1)]);
    // So small a rate changes nothing that is visible.
    (config.train.lr, config.train.weight_decay) = (1e-30, 0.0);
    (config.train.lr_lambda, config.train.lr_delta, config.train.lr_w) = (0.0, 0.0, 0.0);
    run(&config, &second, false).unwrap();
    let (before, after) =
        (tensors(&first.join("best.safetensors")), tensors(&second.join("last/model.safetensors")));
    for (name, data) in after.iter().filter(|(name, _)| !name.contains("running")) {
        assert_eq!(before.get(name), Some(data), "{name}");
    }
}

#[test]
fn models_that_do_not_fit_are_refused() {
    let temp = TempDir::new("from-other");
    let first = temp.join("first");
    run(&small_listops(1), &first, false).unwrap();
    let mut config = small_listops(1);
    config.train.from = first.to_str().unwrap().into();
    config.model.h = 32;
    let error = run(&config, &temp.join("second"), false).unwrap_err();
    assert!(matches!(error, Error::Transfer { .. }), "{error}");
    assert!(error.to_string().contains("[model] settings"), "{error}");
    config.train.from = "nowhere".into();
    assert!(run(&config, &temp.join("second"), false).is_err());
    assert!(!temp.join("second").exists(), "nothing was begun");
}

/// Ids follow the frequency of characters: in another text, one id is another character.
#[test]
fn weights_follow_their_symbols() {
    let temp = TempDir::new("from-symbols");
    let settings = |name: &str, [often, seldom]: [&str; 2]| {
        let row =
            |i: usize| format!("{},{}{}\n", i % 2, often.repeat(3 + i), seldom.repeat(1 + i % 2));
        let rows: String = (0..30).map(row).collect();
        let path = temp.join(name);
        std::fs::write(&path, format!("label,text\n{rows}")).unwrap();
        let sizes = [("layers", "1"), ("h", "4"), ("n", "4"), ("batch", "8"), ("epochs", "1")];
        let sets = [&sizes[..], &[("min_steps", "0"), ("path", path.to_str().unwrap())]].concat();
        let mut config = config("files", &sets);
        (config.train.lr, config.train.weight_decay) = (1e-30, 0.0);
        config
    };
    let (first, second) = (temp.join("first"), temp.join("second"));
    run(&settings("a.csv", ["a", "b"]), &first, false).unwrap();
    let mut other = settings("b.csv", ["b", "a"]);
    other.train.from = first.to_str().unwrap().into();
    run(&other, &second, false).unwrap();
    // After <pad>, <unk> and <eos>.
    let [before, after] = [&first, &second].map(|run| {
        let weights = tensors(&run.join("best.safetensors")).remove("encoder.weight").unwrap();
        weights.iter::<f32>().collect::<Vec<_>>()[12..20].to_vec()
    });
    assert_eq!(after, [&before[4..], &before[..4]].concat());
    let mut unknown = settings("c.csv", ["c", "a"]);
    unknown.train.from = first.to_str().unwrap().into();
    let error = run(&unknown, &temp.join("third"), false).unwrap_err().to_string();
    assert!(error.contains("other symbols"), "{error}");
}
