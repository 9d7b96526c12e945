//! Every model: trained, resumed to the same bits, evaluated and used.

use burn::tensor::Device;
use dss_nn::checkpoint;
use dss_train::Config;
use dss_train::config::{MODELS, NamedOverlay, Request, Setting};
use dss_train::evaluate::evaluate_checkpoint;
use dss_train::predict::{Query, predict};

use crate::common::{TempDir, assert_same, remains, run};

fn config(task: &str, model: &str, sets: &[(&str, &str)]) -> Config {
    let sets = sets.iter().map(|(key, value)| Setting::typed(key, value)).collect();
    let request =
        Request { task: task.into(), model: Some(model.into()), sets, ..Request::default() };
    request.resolve().unwrap().0
}

const DATA: [(&str, &str); 4] =
    [("task.length", "24"), ("task.train", "40"), ("task.val", "10"), ("task.test", "10")];

/// What makes a model small, besides its width.
fn small(model: &str) -> Vec<(&'static str, &'static str)> {
    let own: &[_] = match model {
        "nystromformer" => &[("model.mixer.landmarks", "5"), ("model.mixer.conv", "3")],
        "luna" => &[("model.mixer.packed", "6")],
        "bigbird" => &[("model.mixer.block", "3")],
        "h-transformer-1d" => &[("model.mixer.block", "4")],
        "reformer" => &[("model.mixer.chunk", "4"), ("model.mixer.rounds", "2")],
        "performer" => &[("model.mixer.kernel", "favor"), ("model.mixer.features", "6")],
        "ode-rnn" | "nrde" | "ckconv" => &[("model.mixer.width", "4")],
        "wavegan-d" => return vec![("model.layers", "2"), ("model.h", "2")],
        "transformer" | "linear-transformer" | "fnet" => &[],
        "exp-rnn" | "lipschitz-rnn" | "gru" | "lstm" => &[],
        _ => &[("model.mixer.n", "4")],
    };
    let attention =
        ["transformer", "linear-transformer", "performer", "fnet", "reformer", "bigbird"];
    let more = ["h-transformer-1d", "nystromformer", "luna"];
    let ff = attention.iter().chain(&more).any(|name| *name == model);
    let shared = [("model.layers", "2"), ("model.h", "4"), ("model.ff", "8")];
    shared
        .into_iter()
        .filter(|(key, _)| ff || *key != "model.ff")
        .chain(own.iter().copied())
        .collect()
}

/// A run in two parts ends with the bits of one in one part, whatever the model; its best checkpoint is evaluated and
/// answers.
#[test]
fn every_model_is_resumed_evaluated_and_used() {
    for NamedOverlay { name: model, .. } in MODELS {
        let temp = TempDir::new(&format!("stacks-{model}"));
        let of_epochs = |epochs: &str| {
            let train = [
                ("train.batch", "8"),
                ("train.accumulate", "2"),
                ("train.schedule", "plateau"),
                ("train.epochs", epochs),
            ];
            config("adding", model, &[&DATA[..], &small(model), &train].concat())
        };
        let whole = of_epochs("2");
        let summary = run(&whole, &temp.join("whole"), false).unwrap();
        assert_eq!(summary.steps, 4);
        // The same run in two parts.
        assert_eq!(run(&of_epochs("1"), &temp.join("parts"), false).unwrap().steps, 2);
        run(&whole, &temp.join("parts"), true).unwrap();
        let best = temp.join("whole").join("best.safetensors");
        let [in_one, in_two] = ["whole", "parts"].map(|name| remains(&temp.join(name)));
        assert_same(&in_one, &in_two, model);

        let task = whole.task.load(None, &|_| {}).unwrap();
        let found = evaluate_checkpoint(&best, &task, &task.test, 3, &Device::flex()).unwrap();
        let test = summary.test.unwrap();
        assert!((found.scores.loss - test.loss).abs() < 1e-5, "{model}: {found:?} {test:?}");
        let (model, meta) = checkpoint::load(&best, &Device::flex()).unwrap();
        let input = task.test.example(0).unwrap().input;
        let answers = predict(&model, &meta, &[Query { input, second: None }], 1).unwrap();
        assert!(answers[0].rows[0].iter().all(|x| x.is_finite()));
    }
}

/// What cannot be is refused before any data are read.
#[test]
fn bad_settings_are_named() {
    let refused_for = |task: &str, model: &str, sets: &[(&str, &str)]| {
        let sets = sets.iter().map(|(key, value)| Setting::typed(key, value)).collect();
        let request =
            Request { task: task.into(), model: Some(model.into()), sets, ..Request::default() };
        request.resolve().unwrap_err().to_string()
    };
    let refused = |model: &str, sets: &[(&str, &str)]| refused_for("listops", model, sets);
    let h = ("model.h", "64");
    for (error, parts) in [
        (refused("nystromformer", &[h, ("heads", "5")]), ["heads", "try 4"]),
        (refused("nystromformer", &[("landmarks", "0")]), ["landmarks", "at least 1"]),
        (refused("nystromformer", &[("conv", "4")]), ["conv", "try 3"]),
        (
            refused("nystromformer", &[("landmarks", "32"), ("padded_len", "1000")]),
            ["landmarks", "padded_len = 992"],
        ),
        (refused("luna", &[h, ("heads", "7")]), ["heads", "try 8"]),
        (refused("luna", &[("packed", "0")]), ["packed", "at least 1"]),
        (refused("wavegan-d", &[("layers", "20")]), ["layers", "try 13"]),
        (refused("wavegan-d", &[("ff", "8")]), ["ff", "set ff to 0"]),
        (refused("wavegan-d", &[("variant", "original")]), ["convs", "try 1"]),
        (refused("luna", &[("bidirectional", "false")]), ["bidirectional", "causal"]),
        (refused_for("delay", "wavegan-d", &[]), ["--model wavegan-d", "not about every position"]),
        (refused_for("delay", "transformer", &[("pool", "cls")]), ["pool", "every position"]),
    ] {
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
}
