//! Scoring a model on a data set: every example counts, those of the last partial batch too.

use std::path::Path;
use std::sync::Arc;

use burn::module::Module;
use burn::tensor::{DType, Device};
use dss_data::{Batch, BatchTarget, Dataset, Loader, Padding, Task, TaskSpec};
use dss_nn::checkpoint::{self, CheckpointMeta};
use dss_nn::{Mode, Model};

use crate::error::{Error, Result};
use crate::predict::encoder;
use crate::scores::{MAX_CONFUSION, Measure, Scores, Tally};
use crate::{bridge, loss, memory};

/// Scores `model` on all of `dataset`, `batch` examples at a time.
///
/// # Errors
/// If the model's ends are not those of `spec`, or an example cannot be read.
pub fn evaluate(
    model: &Model,
    dataset: &Arc<dyn Dataset>,
    spec: &TaskSpec,
    batch: usize,
) -> Result<Scores> {
    let scores = evaluate_while(model, dataset, spec, batch, &mut |_| true)?;
    Ok(scores.expect("nobody interrupts"))
}

/// One batch of an evaluation.
pub struct ScoredBatch<'a> {
    /// The batch.
    pub batch: &'a Batch,
    /// What the model says about it, `[rows, width]`.
    pub outputs: &'a [f64],
    /// Examples done, those of this batch included.
    pub done: usize,
}

/// As [`evaluate`]; `proceed` sees each batch and may end the evaluation, which gives `None`.
pub fn evaluate_while(
    model: &Model,
    dataset: &Arc<dyn Dataset>,
    spec: &TaskSpec,
    batch: usize,
    proceed: &mut dyn FnMut(&ScoredBatch<'_>) -> bool,
) -> Result<Option<Scores>> {
    bridge::check_fit(model.io(), spec)?;
    model.check_len(spec.len)?;
    let model = model.valid();
    let device = model.device();
    let measure = Measure::for_target(&spec.target);
    let classes = bridge::labels(spec).len();
    let confused = measure == Measure::Accuracy && (1..=MAX_CONFUSION).contains(&classes);
    let mut confusion = confused.then(|| vec![vec![0; classes]; classes]);
    let mut tally = Tally::default();
    let prepared = model.prepare(spec.len);
    let order = (0..dataset.len() as u32).collect();
    let loader =
        Loader::new(dataset.clone(), spec.clone(), order, batch, false, Padding::Longest, 0);
    for batch in loader {
        let batch = batch?;
        let input = bridge::input(&batch, &device, DType::F32);
        let logits =
            model.forward(input, &batch.lengths, &model.cut(&prepared, batch.l), Mode::Eval).logits;
        let [_, width] = logits.dims();
        let outputs = bridge::host(&logits);
        let found = loss::assess(&outputs, width, &batch.target, 1);
        tally.add(&found.tally);
        tally.examples += batch.examples as u64;
        if let Some(confusion) = &mut confusion {
            count(confusion, &batch.target, &found.predicted);
        }
        let done = tally.examples as usize;
        if !proceed(&ScoredBatch { batch: &batch, outputs: &outputs, done }) {
            return Ok(None);
        }
    }
    let scores = tally.scores(measure, confusion);
    Ok(Some(Scores { baselines: dataset.baselines(), ..scores }))
}

/// Adds every scored row to the confusion matrix.
fn count(confusion: &mut [Vec<u64>], target: &BatchTarget, predicted: &[u32]) {
    if let BatchTarget::Class(classes) | BatchTarget::PositionClasses(classes) = target {
        for (&class, &predicted) in classes.iter().zip(predicted) {
            if let Ok(class) = usize::try_from(class) {
                confusion[class][predicted as usize] += 1;
            }
        }
    }
}

/// What `dss eval` says.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// What came out.
    pub scores: Scores,
    /// What the checkpoint says of itself.
    pub meta: CheckpointMeta,
    /// What to know about the numbers: other data or another length than in training.
    pub notes: Vec<String>,
}

/// Scores a checkpoint on one of the splits of a task.
pub fn evaluate_checkpoint(
    path: &Path,
    task: &Task,
    dataset: &Arc<dyn Dataset>,
    batch: usize,
    device: &Device,
) -> Result<Evaluation> {
    if dataset.is_empty() {
        return Err(Error::Mismatch("there is no example to evaluate".into()));
    }
    let (mut model, meta) = checkpoint::load(path, device)?;
    let mut notes = Vec::new();
    let mut trained_len = meta.io.len;
    let trained_rate = encoder(&meta).ok().and_then(|encoder| encoder.rate());
    if let (Some(then), Some(now)) = (trained_rate, task.encoder.rate())
        && then != now
    {
        let r = then / now;
        model = model.at_rate(r)?;
        trained_len = model.io().len;
        notes.push(format!(
            "the model was trained at {then} samples per second, the data has {now}: Δ is multiplied by {}",
            (r * 1e4).round() / 1e4
        ));
    }
    if !task.has_splits(&meta.split_hash) {
        notes.push(format!(
            "the data is split differently than in training ({} now, {} then): \
             examples may have been seen in training",
            short(&task.split_hash),
            short(&meta.split_hash)
        ));
    }
    if trained_len != task.spec.len {
        notes.push(format!(
            "the model was trained at length {trained_len}, the data has length {}; the kernels are those of \
             {trained_len}",
            task.spec.len
        ));
    }
    if meta.labels != bridge::labels(&task.spec) {
        notes.push("the classes have other names than in training".into());
    }
    memory::check_forward(&meta.model, &bridge::io(&task.spec), batch.min(dataset.len()))?;
    let scores = evaluate(&model, dataset, &task.spec, batch)?;
    Ok(Evaluation { scores, meta, notes })
}

fn short(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}
