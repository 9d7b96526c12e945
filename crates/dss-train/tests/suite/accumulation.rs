//! Micro-batches count as one batch: k of size b give what one of size k·b gives, as far as nothing looks at the whole
//! batch (BatchNorm) or at the place in it (dropout).

use crate::common::{TempDir, config, run, small_listops};
use burn::tensor::{DType, Device};
use dss_data::{Loader, Padding, Task};
use dss_nn::Model;
use dss_nn::config::{DssConfig, Form, ModelConfig, NormKind};
use dss_train::bridge;

fn batches(task: &Task, batch: usize) -> Vec<dss_data::Batch> {
    let order = (0..16).collect();
    Loader::new(task.train.clone(), task.spec.clone(), order, batch, true, Padding::Longest, 0)
        .map(Result::unwrap)
        .collect()
}

fn check(task: &Task, model: &ModelConfig) {
    let device = Device::flex().autodiff();
    let model = Model::new(model, &bridge::io(&task.spec), 7, &device).unwrap();
    let gradients = |batch| {
        let micro = batches(task, batch);
        assert_eq!(micro.len(), 16 / batch);
        dss_train::gradients(&model, &micro, 1, 0, DType::F32).unwrap()
    };
    let whole = gradients(16);
    for batch in [8, 4, 1] {
        let parts = gradients(batch);
        assert_eq!(whole.tally.scored, parts.tally.scored);
        let (a, b) = (whole.tally.mean_loss(), parts.tally.mean_loss());
        assert!((a - b).abs() < 1e-5 * a.abs(), "{a} {b}");
        for p in model.parameters().iter().filter(|p| p.trained) {
            let (a, b) = (whole.gradients.get(&p.name), parts.gradients.get(&p.name));
            let (a, b) = (bridge::host(a.unwrap()), bridge::host(b.unwrap()));
            let scale = a.iter().fold(1e-6f64, |m, x| m.max(x.abs()));
            let error = a.iter().zip(&b).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
            assert!(error < 2e-4 * scale, "{}: {error:e} of {scale:e}", p.name);
        }
    }
}

#[test]
fn gradients_of_parts_add_up() {
    let mixer = DssConfig { n: 8, ..DssConfig::default() };
    let small = ModelConfig {
        layers: 2,
        h: 12,
        mixer: mixer.into(),
        norm: NormKind::Layer,
        prenorm: true,
        ..ModelConfig::default()
    };
    let listops = small_listops(1).task.load(None, &|_| {}).unwrap();
    let lengths: std::collections::BTreeSet<usize> =
        batches(&listops, 1).iter().map(|batch| batch.l).collect();
    assert!(lengths.len() > 1, "the micro-batches should differ in length: {lengths:?}");
    let delay = config("delay", &[("task.d", "20"), ("task.train", "16")]);
    let delay = delay.task.load(None, &|_| {}).unwrap();
    for form in [Form::Fused, Form::Composed] {
        check(&listops, &ModelConfig { form, ..small.clone() });
        let mixer = DssConfig { kernel_len: 15, ..mixer }.into();
        check(&delay, &ModelConfig { form, bidirectional: true, mixer, ..small.clone() });
    }
}

#[test]
fn whole_runs_agree() {
    let temp = TempDir::new("accumulation");
    let mut config = small_listops(2);
    config.model.norm = NormKind::Layer;
    config.model.dropout = 0.0;
    let mut losses = Vec::new();
    for (batch, accumulate) in [(16, 1), (8, 2), (2, 8)] {
        (config.train.batch, config.train.accumulate) = (batch, accumulate);
        let summary = run(&config, &temp.join(&batch.to_string()), false).unwrap();
        assert_eq!(summary.steps, 12);
        losses.push(summary.best_val.unwrap().loss);
    }
    assert!(losses.iter().all(|loss| (loss - losses[0]).abs() < 1e-3), "{losses:?}");
}

#[test]
fn fewer_examples_than_a_step_takes_make_one_step() {
    let temp = TempDir::new("few");
    let sets = [
        ("task.d", "5"),
        ("task.train", "5"),
        ("task.val", "3"),
        ("task.test", "3"),
        ("model.layers", "1"),
        ("model.h", "8"),
        ("model.n", "4"),
        ("train.batch", "3"),
        ("train.accumulate", "4"),
        ("train.epochs", "2"),
    ];
    let summary = run(&config("delay", &sets), &temp.join("run"), false).unwrap();
    assert_eq!((summary.steps, summary.epochs), (2, 2));
    let test = summary.test.unwrap();
    assert_eq!(test.examples, 3);
}
