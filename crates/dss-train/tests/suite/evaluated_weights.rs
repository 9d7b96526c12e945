//! What is evaluated and kept as best: recalibrated statistics and averaged weights. The training does not notice.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use burn::module::Module;
use burn::tensor::{DType, Device, TensorData};
use dss_nn::{DropoutKey, Mode, checkpoint};
use dss_train::{Config, Event, Observer, bridge, epoch_batches};

use crate::common::{TempDir, assert_same, remains, run, run_watched, small_listops};

/// One evaluation, after six steps of one epoch.
fn one_evaluation() -> Config {
    let mut config = small_listops(1);
    config.train.eval_every = 0;
    config
}

fn tensors(path: &Path) -> BTreeMap<String, TensorData> {
    let (model, _) = checkpoint::load(path, &Device::flex()).unwrap();
    model.named_tensors().into_iter().collect()
}

#[test]
fn recalibration_replaces_the_statistics_of_the_best_model_only() {
    let temp = TempDir::new("recalibrate");
    let (plain, recalibrated) = (temp.join("plain"), temp.join("recalibrated"));
    let mut config = one_evaluation();
    run(&config, &plain, false).unwrap();
    config.train.recalibrate = 3;
    run(&config, &recalibrated, false).unwrap();
    let last = "last/model.safetensors";
    assert_eq!(tensors(&plain.join(last)), tensors(&recalibrated.join(last)));
    assert_eq!(tensors(&plain.join(last)), tensors(&plain.join("best.safetensors")));

    // The mean over the first three batches of the epoch, as in training.
    let task = config.task.load(None, &|_| {}).unwrap();
    let (model, meta) = checkpoint::load(recalibrated.join(last), &Device::flex()).unwrap();
    let model = model.valid();
    let mut means: Vec<f64> = Vec::new();
    for (i, batch) in epoch_batches(&config.train, &task, 0, 0).unwrap().take(3).enumerate() {
        let batch = batch.unwrap();
        let input = bridge::input(&batch, &model.device(), DType::F32);
        let dropout = DropoutKey { seed: config.train.seed, step: meta.step, micro: i as u32 };
        let prepared = model.cut(&model.prepare(task.spec.len), batch.l);
        let output = model.forward(input, &batch.lengths, &prepared, Mode::Train { dropout });
        let mean = bridge::host(&output.stats[1].mean);
        means.resize(mean.len(), 0.0);
        means.iter_mut().zip(mean).for_each(|(sum, x)| *sum += x / 3.0);
    }
    for (name, kept) in tensors(&recalibrated.join("best.safetensors")) {
        let statistic = name.contains("running");
        assert_eq!(statistic, kept != tensors(&recalibrated.join(last))[&name], "{name}");
        if name == "layers.1.norm.running_mean" {
            let kept = kept.iter::<f64>().zip(&means);
            kept.for_each(|(kept, mean)| assert!((kept - mean).abs() < 1e-5, "{kept} {mean}"));
        }
    }
}

#[test]
fn averaged_weights_are_evaluated() {
    let temp = TempDir::new("average");
    let (plain, averaged) = (temp.join("plain"), temp.join("averaged"));
    let mut config = one_evaluation();
    run(&config, &plain, false).unwrap();
    config.train.average = 0.9;
    run(&config, &averaged, false).unwrap();
    let last = tensors(&averaged.join("last/model.safetensors"));
    assert_eq!(tensors(&plain.join("last/model.safetensors")), last);
    let best = tensors(&averaged.join("best.safetensors"));
    assert_eq!(best, tensors(&averaged.join("last/average.safetensors")));
    assert_ne!(best, last);
}

struct StopEverySecondStep<'a>(&'a AtomicBool);

impl Observer for StopEverySecondStep<'_> {
    fn event(&mut self, event: &Event<'_>) {
        if matches!(event, Event::Step { step, .. } if step % 2 == 0) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

#[test]
fn interrupted_runs_end_alike() {
    let temp = TempDir::new("evaluated-resume");
    let (whole, stopped) = (temp.join("whole"), temp.join("stopped"));
    let mut config = small_listops(2);
    (config.train.recalibrate, config.train.average, config.train.bucket) = (2, 0.8, 3);
    run(&config, &whole, false).unwrap();
    let stop = AtomicBool::new(false);
    let mut observer = StopEverySecondStep(&stop);
    let mut resume = false;
    while run_watched(&config, &stopped, resume, &mut observer, &stop).unwrap().test.is_none() {
        stop.store(false, Ordering::Relaxed);
        resume = true;
    }
    assert!(resume);
    assert_same(&remains(&whole), &remains(&stopped), "stopped every second step");
}
