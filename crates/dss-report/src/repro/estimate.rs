//! About how long a run of the paper's size takes, from a few steps on random data.

use std::time::Instant;

use burn::tensor::{DType, Device};
use dss_data::{Batch, BatchInput, BatchTarget, TaskConfig};
use dss_nn::{InputKind, ModelIo, OutputKind};
use dss_train::config::Config;
use dss_train::gradients;
use dss_train::threads;

use super::paper;
use crate::error::Result;

/// Two small batches: the time of a step is a line through theirs.
const BATCHES: [usize; 2] = [1, 3];
const TIMED: usize = 2;
const CLASSES: usize = 10;

/// Seconds of all optimiser steps of a run; `None` for a task that is not in the paper.
///
/// # Errors
/// If the model or the threads cannot be made.
pub(super) fn seconds(
    config: &Config,
    device: &Device,
    threads: Option<usize>,
) -> Result<Option<f64>> {
    let task = &config.task;
    let asked = task.counts().map_or(0, |[train, ..]| train);
    let examples = if asked > 0 { Some(asked) } else { paper::training_examples(task.name()) };
    let (Some(examples), Some(length)) = (examples, paper::length(task.name())) else {
        return Ok(None);
    };
    let length = task.length().filter(|len| *len > 0).unwrap_or(length);
    let [one, three] = threads::with(threads, || -> Result<[f64; 2]> {
        Ok([step(config, length, BATCHES[0], device)?, step(config, length, BATCHES[1], device)?])
    })??;
    let per_sequence = ((three - one) / (BATCHES[1] - BATCHES[0]) as f64).max(0.0);
    let examples_per_step = config.train.batch * config.train.accumulate;
    let sequences =
        examples_per_step * if matches!(task, TaskConfig::Retrieval(_)) { 2 } else { 1 };
    let step = one + per_sequence * (sequences - BATCHES[0]) as f64;
    let steps = config.train.total_steps(config.train.steps_per_epoch(examples));
    Ok(Some(step * steps as f64))
}

/// Seconds of loss and gradients for a batch of this size.
fn step(config: &Config, length: usize, rows: usize, device: &Device) -> Result<f64> {
    let output = OutputKind::Sequence { outputs: CLASSES };
    let io = ModelIo { input: InputKind::Values { channels: 1 }, output, len: length };
    let model = dss_nn::Model::new(&config.model, &io, 0, &device.clone().autodiff())?;
    let data = (0..rows * length).map(|i| (i as f32).sin()).collect();
    let batch = [Batch {
        rows,
        l: length,
        input: BatchInput::Values { data, channels: 1 },
        lengths: vec![length; rows],
        target: BatchTarget::Class((0..rows).map(|i| (i % CLASSES) as i32).collect()),
        examples: rows,
    }];
    gradients(&model, &batch, 0, 0, DType::F32)?;
    let begin = Instant::now();
    for number in 0..TIMED {
        gradients(&model, &batch, 0, number as u64, DType::F32)?;
    }
    Ok(begin.elapsed().as_secs_f64() / TIMED as f64)
}
