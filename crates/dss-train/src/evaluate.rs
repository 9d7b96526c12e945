//! Scoring a model on a data set. Every example counts, including those of the last, partial batch.

use std::path::Path;
use std::sync::Arc;

use burn::module::Module;
use burn::tensor::{DType, Device};
use dss_data::{Batch, BatchTarget, Dataset, Loader, Padding, Task, TaskSpec};
use dss_nn::checkpoint::{self, CheckpointMeta};
use dss_nn::{Mode, Model};

use crate::error::{Error, Result};
use crate::group::Group;
use crate::predict::encoder;
use crate::scores::{MAX_CONFUSION, Measure, Scores, Tally};
use crate::trainer::gather_tallies;
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
    /// The outputs of the model, `[rows, width]`.
    pub outputs: &'a [f64],
    /// Number of its first example.
    pub first: usize,
    /// Examples done, those of this batch included; with several ranks, about as many.
    pub done: usize,
}

/// As [`evaluate`]; `proceed` sees each batch and may end the evaluation, which gives `None`.
///
/// # Errors
/// As [`evaluate`].
pub fn evaluate_while(
    model: &Model,
    dataset: &Arc<dyn Dataset>,
    spec: &TaskSpec,
    batch: usize,
    proceed: &mut dyn FnMut(&ScoredBatch<'_>) -> bool,
) -> Result<Option<Scores>> {
    evaluate_shared(model, dataset, spec, batch, &Group::alone(), proceed)
}

/// As [`evaluate_while`], the batches dealt out to the ranks of a group: every rank has the scores of all, to the bit
/// those of one process. `proceed` sees the batches of this rank.
///
/// # Errors
/// As [`evaluate`], of any rank.
pub(crate) fn evaluate_shared(
    model: &Model,
    dataset: &Arc<dyn Dataset>,
    spec: &TaskSpec,
    batch: usize,
    group: &Group,
    proceed: &mut dyn FnMut(&ScoredBatch<'_>) -> bool,
) -> Result<Option<Scores>> {
    let (ranks, batches) = (group.size(), dataset.len().div_ceil(batch));
    let counts: Vec<usize> =
        (0..ranks).map(|rank| batches.saturating_sub(rank).div_ceil(ranks)).collect();
    let scored = score_own_batches(model, dataset, spec, batch, group, &counts, proceed)?;
    let Some(OwnBatches { tallies, mut confusion }) = scored else { return Ok(None) };
    let starts: Vec<usize> = (0..ranks).map(|rank| counts[..rank].iter().sum()).collect();
    let tallies = gather_tallies(group, &tallies, &counts)?;
    let mut tally = Tally::default();
    for i in 0..batches {
        tally.add(&tallies[starts[i % ranks] + i / ranks]);
    }
    if let Some(confusion) = confusion.as_mut().filter(|_| ranks > 1) {
        let lists = group.gather_lists(confusion.concat())?;
        for (i, cell) in confusion.iter_mut().flatten().enumerate() {
            *cell = lists.iter().map(|list| list[i]).sum();
        }
    }
    let scores = tally.scores(Measure::for_target(&spec.target), confusion);
    Ok(Some(Scores { baselines: dataset.baselines(), ..scores }))
}

/// The result of one rank: the sums of each of its batches.
struct OwnBatches {
    tallies: Vec<Tally>,
    confusion: Option<Vec<Vec<u64>>>,
}

/// Scores every K-th batch of `dataset`, from that of the rank's number on; `counts` says how many each rank has. `None`
/// if any rank stopped. Errors and stops reach all ranks within a few batches.
fn score_own_batches(
    model: &Model,
    dataset: &Arc<dyn Dataset>,
    spec: &TaskSpec,
    batch: usize,
    group: &Group,
    counts: &[usize],
    proceed: &mut dyn FnMut(&ScoredBatch<'_>) -> bool,
) -> Result<Option<OwnBatches>> {
    bridge::check_fit(model.io(), spec)?;
    model.check_len(spec.len)?;
    let model = model.valid();
    let device = model.device();
    let measure = Measure::for_target(&spec.target);
    let classes = bridge::labels(spec).len();
    let confused = measure == Measure::Accuracy && (1..=MAX_CONFUSION).contains(&classes);
    let confusion = confused.then(|| vec![vec![0; classes]; classes]);
    let mut own = OwnBatches { tallies: Vec::new(), confusion };
    let prepared = model.prepare(spec.len);
    let (size, ranks, n) = (batch, group.size(), dataset.len());
    let dealt = |i: &u32| *i as usize / size % ranks == group.rank();
    let order = (0..n as u32).filter(dealt).collect();
    let mut loader =
        Loader::new(dataset.clone(), spec.clone(), order, size, false, Padding::Longest, 0);
    let proceeds = group.in_rounds(counts[group.rank()], counts[0], &mut |i| {
        let batch = loader.next().expect("as many batches as were dealt")?;
        let input = bridge::input(&batch, &device, DType::F32);
        let logits =
            model.forward(input, &batch.lengths, &model.cut(&prepared, batch.l), Mode::Eval).logits;
        let [_, width] = logits.dims();
        let outputs = bridge::host(&logits);
        let found = loss::assess(&outputs, width, &batch.target, 1);
        own.tallies.push(Tally { examples: batch.examples as u64, ..found.tally });
        if let Some(confusion) = &mut own.confusion {
            count(confusion, &batch.target, &found.predicted);
        }
        let (first, done) = ((i * ranks + group.rank()) * size, ((i + 1) * ranks * size).min(n));
        Ok(proceed(&ScoredBatch { batch: &batch, outputs: &outputs, first, done }))
    })?;
    Ok(proceeds.then_some(own))
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

/// The result of `dss eval`.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// The scores.
    pub scores: Scores,
    /// The metadata of the checkpoint.
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
        return Err(Error::Mismatch("there are no examples to evaluate".into()));
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
            "the model was trained at {then} samples per second, the data have {now}: Δ is multiplied by {}",
            (r * 1e4).round() / 1e4
        ));
    }
    if !task.has_splits(&meta.split_hash) {
        notes.push(format!(
            "the data are split differently from training ({} now, {} then): these examples may have been seen in training",
            short(&task.split_hash),
            short(&meta.split_hash)
        ));
    }
    if trained_len != task.spec.len {
        notes.push(format!(
            "the model was trained at length {trained_len}, the data have length {}; the kernels stay those for {trained_len}",
            task.spec.len
        ));
    }
    if meta.labels != bridge::labels(&task.spec) {
        notes.push("the class names differ from those in training".into());
    }
    memory::check_forward(&meta.model, &bridge::io(&task.spec), batch.min(dataset.len()))?;
    let scores = evaluate(&model, dataset, &task.spec, batch)?;
    Ok(Evaluation { scores, meta, notes })
}

fn short(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}
