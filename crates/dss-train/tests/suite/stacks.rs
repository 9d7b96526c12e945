//! Models that are not one mixer after the other: trained, resumed to the same bits, evaluated and used.

use burn::tensor::Device;
use dss_nn::checkpoint;
use dss_train::Config;
use dss_train::config::{Request, Setting};
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
    [("task.length", "50"), ("task.train", "40"), ("task.val", "10"), ("task.test", "10")];

#[test]
fn a_run_is_resumed_evaluated_and_used() {
    for (model, own) in [
        ("nystromformer", [("model.layers", "2"), ("model.mixer.landmarks", "5")]),
        ("luna", [("model.layers", "2"), ("model.mixer.packed", "6")]),
        ("wavegan-d", [("model.layers", "3"), ("model.mixer.convs", "2")]),
    ] {
        let temp = TempDir::new(&format!("stacks-{model}"));
        let of_epochs = |epochs: &str| {
            let train = [
                ("model.h", "4"),
                ("train.batch", "8"),
                ("train.accumulate", "2"),
                ("train.schedule", "plateau"),
                ("train.epochs", epochs),
            ];
            config("adding", model, &[&DATA[..], &own[..], &train[..]].concat())
        };
        let whole = of_epochs("2");
        let summary = run(&whole, &temp.join("whole"), false).unwrap();
        // The same run in two parts.
        run(&of_epochs("1"), &temp.join("parts"), false).unwrap();
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
    let refused = |model: &str, sets: &[(&str, &str)]| {
        let sets = sets.iter().map(|(key, value)| Setting::typed(key, value)).collect();
        let request = Request {
            task: "listops".into(),
            model: Some(model.into()),
            sets,
            ..Request::default()
        };
        request.resolve().unwrap_err().to_string()
    };
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
    ] {
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
}
