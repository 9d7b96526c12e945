//! Loss and gradients of one optimiser step.
//!
//! The micro-batches of a step share their kernels. With several of them, each backward pass ends at a copy of the
//! kernels; the summed dK then goes once through the kernels' own backward pass.

use burn::tensor::{DType, Tensor, TensorData};
use dss_data::{Batch, TargetScaling};
use dss_nn::ops::BatchStats;
use dss_nn::{Carry, DropoutKey, Mode, Model};

use crate::bridge;
use crate::error::Result;
use crate::loss;
use crate::optimiser::Gradients;
use crate::scores::Tally;

/// Loss, gradients and statistics of one step.
pub struct StepGradients {
    /// Sums over all micro-batches.
    pub tally: Tally,
    /// Gradients of the mean loss over all scored items of the step; incomplete if the loss is not finite.
    pub gradients: Gradients,
    /// BatchNorm statistics of each micro-batch.
    pub stats: Vec<Vec<BatchStats>>,
}

/// Loss and gradients of `model` on micro-batches that count as one batch.
pub fn gradients(
    model: &Model,
    micro: &[Batch],
    seed: u64,
    step: u64,
    dtype: DType,
) -> Result<StepGradients> {
    let first = DropoutKey { seed, step, micro: 0 };
    part_gradients(model, micro, first, scored(micro), dtype, None, None)
}

/// Scored items of some micro-batches.
pub(super) fn scored(micro: &[Batch]) -> u64 {
    micro.iter().map(|batch| loss::scored(&batch.target)).sum()
}

/// As [`gradients`], of a part of a step that has `total` scored items in all; `first` is the key of its first
/// micro-batch. With a `scaling` the model learns standardised targets. With `carry` the batch has the next windows of
/// its streams.
pub(super) fn part_gradients(
    model: &Model,
    micro: &[Batch],
    first: DropoutKey,
    total: u64,
    dtype: DType,
    scaling: Option<&TargetScaling>,
    mut carry: Option<&mut Carry>,
) -> Result<StepGradients> {
    let device = model.device();
    let l = micro.iter().map(|batch| batch.l).max().unwrap_or(0);
    let prepared = model.prepare(l);
    let several = micro.len() > 1;
    let used = if several { prepared.leaves() } else { prepared.clone() };
    let prepared_for = |length| if length == l { used.clone() } else { model.cut(&used, length) };
    let mut kernel_gradients: Vec<Tensor<3>> = Vec::new();
    let mut found = StepGradients {
        tally: Tally::default(),
        gradients: Gradients::default(),
        stats: Vec::new(),
    };
    for (i, batch) in micro.iter().enumerate() {
        let dropout = DropoutKey { micro: first.micro + i as u32, ..first };
        let input = bridge::input(batch, &device, dtype);
        let (prepared, mode) = (prepared_for(batch.l), Mode::Train { dropout });
        let output = match &mut carry {
            Some(carry) => model.forward_carried(input, &prepared, mode, carry),
            None => model.forward(input, &batch.lengths, &prepared, mode),
        };
        let [rows, width] = output.logits.dims();
        let outputs = bridge::host(&output.logits);
        let assessed = loss::assess_scaled(&outputs, width, &batch.target, total, scaling);
        found.tally.add(&assessed.tally);
        found.tally.examples += batch.examples as u64;
        found.stats.push(output.stats);
        if !found.tally.loss.is_finite() {
            return Ok(found);
        }
        let cotangent = TensorData::new(assessed.gradient, [rows, width]);
        let cotangent = Tensor::<2>::from_data(cotangent, (&device, dtype));
        let mut backward = (output.logits * cotangent).sum().backward();
        found.gradients.add(model, &mut backward);
        if several {
            let new = used.grads(&backward).into_iter().zip(used.kernels());
            let new = new.map(|(dk, k)| dk.unwrap_or_else(|| k.clone().inner().zeros_like()));
            kernel_gradients = match i {
                0 => new.collect(),
                _ => kernel_gradients.into_iter().zip(new).map(|(sum, dk)| sum + dk).collect(),
            };
        }
    }
    if several && let Some(surrogate) = prepared.surrogate(kernel_gradients) {
        let mut backward = surrogate.backward();
        found.gradients.add(model, &mut backward);
    }
    Ok(found)
}
