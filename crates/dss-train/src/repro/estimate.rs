//! About how long a run of the paper's size takes, from a few steps on random data.

use std::time::Instant;

use burn::tensor::{DType, Device};
use dss_nn::{InputKind, Io, OutputKind};
use dss_data::{Batch, BatchInput, BatchTarget};

use super::paper;
use crate::config::Config;
use crate::error::Result;
use crate::threads;
use crate::trainer::gradients;

/// Training examples of the tasks whose presets take all there are.
const EXAMPLES: [(&str, u64); 4] =
    [("text", 25_000), ("retrieval", 147_086), ("image", 45_000), ("speech", 24_482)];
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
    let task = config.task.name();
    let settings = serde_json::to_value(&config.task).unwrap_or_default();
    let count = |key: &str| settings[key].as_u64().filter(|n| *n > 0);
    let known = EXAMPLES.iter().find(|(name, _)| *name == task).map(|(_, n)| *n);
    let (Some(examples), Some(length)) = (count("train").or(known), paper::length(task)) else {
        return Ok(None);
    };
    let length = count("len").map_or(length, |len| len as usize);
    let [one, three] = threads::with(threads, || -> Result<[f64; 2]> {
        Ok([step(config, length, BATCHES[0], device)?, step(config, length, BATCHES[1], device)?])
    })??;
    let per_sequence = ((three - one) / (BATCHES[1] - BATCHES[0]) as f64).max(0.0);
    let pair = if task == "retrieval" { 2 } else { 1 };
    let sequences = config.train.batch * config.train.accumulate * pair;
    let step = one + per_sequence * (sequences - BATCHES[0]) as f64;
    let steps = config.train.total_steps(config.train.steps_per_epoch(examples as usize));
    Ok(Some(step * steps as f64))
}

/// Seconds of loss and gradients for a batch of this size.
fn step(config: &Config, length: usize, rows: usize, device: &Device) -> Result<f64> {
    let output = OutputKind::Sequence { outputs: CLASSES };
    let io = Io { input: InputKind::Values { channels: 1 }, output, len: length };
    let model = config.model.init(&io, 0, &device.clone().autodiff())?;
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
