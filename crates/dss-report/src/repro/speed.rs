//! How fast a model trains and is evaluated on this machine.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use burn::tensor::{DType, Device};
use dss_data::{Batch, Task};
use dss_nn::Model;
use dss_train::config::Config;
use dss_train::evaluate::evaluate_while;
use dss_train::optimiser::{AdamW, Rates};
use dss_train::{bridge, memory, threads};
use dss_train::{epoch_batches, gradients};
use serde::{Deserialize, Serialize};

use crate::error::Result;

/// Steps before the clock runs: the first ones make plans and buffers.
const WARM_UP: usize = 2;
/// Steps that are timed at least.
const LEAST: usize = 3;

/// Measurements of a task, made once per grid.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Speed {
    /// Of an optimiser step.
    pub seconds_per_step: f64,
    /// Of the evaluation of one example.
    pub seconds_per_example: f64,
    /// Examples of the training, validation and test sets.
    pub examples: [usize; 3],
    /// L.
    pub length: usize,
}

/// Trains for about `limit`, without changing the model, and evaluates for half of it. `None` if `stop` ended it.
///
/// # Errors
/// If the data cannot be read, or the run would not fit into memory.
pub(super) fn measure(
    config: &Config,
    task: &Task,
    device: &Device,
    threads: Option<usize>,
    limit: Duration,
    stop: &AtomicBool,
) -> Result<Option<Speed>> {
    let examples = [&task.train, &task.val, &task.test].map(|split| split.len());
    let io = bridge::io(&task.spec);
    memory::check(config, &io, examples)?;
    threads::with(threads, || {
        let mut model =
            Model::new(&config.model, &io, config.train.seed, &device.clone().autodiff())?;
        let Some(seconds_per_step) = steps(config, task, &mut model, limit, stop)? else {
            return Ok(None);
        };
        let batch = config.train.evaluation_batch();
        let (begin, mut done) = (Instant::now(), 0);
        evaluate_while(&model, &task.val, &task.spec, batch, &mut |scored| {
            done = scored.done;
            begin.elapsed() < limit / 2 && !stop.load(Ordering::Relaxed)
        })?;
        let seconds_per_example = begin.elapsed().as_secs_f64() / done.max(1) as f64;
        let stopped = stop.load(Ordering::Relaxed);
        let length = task.spec.len;
        Ok((!stopped).then_some(Speed { seconds_per_step, seconds_per_example, examples, length }))
    })?
}

/// Mean seconds of a step.
fn steps(
    config: &Config,
    task: &Task,
    model: &mut Model,
    limit: Duration,
    stop: &AtomicBool,
) -> Result<Option<f64>> {
    let train = &config.train;
    // The weights stay as they are: nothing can run away.
    let mut optimiser = AdamW::default();
    let (mut begin, mut made) = (Instant::now(), 0);
    for epoch in 0.. {
        let mut batches = epoch_batches(train, task, epoch, 0)?;
        loop {
            let micro = batches.by_ref().take(train.accumulate);
            let micro: Vec<Batch> = micro.collect::<dss_data::Result<_>>()?;
            if micro.is_empty() {
                break;
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let found = gradients(model, &micro, train.seed, made as u64, DType::F32)?;
            let (next, _) =
                optimiser.step(model.clone(), &found.gradients, 1.0, &Rates::AT_REST, 0.0);
            *model = next;
            made += 1;
            if made == WARM_UP {
                begin = Instant::now();
            }
            let timed = made.saturating_sub(WARM_UP);
            if timed >= LEAST && begin.elapsed() >= limit {
                return Ok(Some(begin.elapsed().as_secs_f64() / timed as f64));
            }
        }
    }
    Ok(None)
}
