//! The batches of an epoch.

use std::ops::Range;
use std::sync::Arc;

use dss_data::{Dataset, Input, Loader, Padding, Task, epoch_order};
use rayon::prelude::*;

use crate::config::TrainConfig;
use crate::error::Result;

/// The batches of an epoch (from 0), from its step `step` on.
///
/// # Errors
/// With `train.bucket`, an example that cannot be read.
pub fn epoch_batches(config: &TrainConfig, task: &Task, epoch: u64, step: u64) -> Result<Loader> {
    let n = task.train.len();
    let spec = task.spec.clone();
    let streams = || task.train.streams(config.batch, config.seed, epoch);
    if let Some(streams) = config.carry.then(streams).flatten() {
        let order = (0..streams.len() as u32).collect();
        let (batch, skip) = (config.batch, step as usize);
        return Ok(Loader::new(streams, spec, order, batch, true, Padding::Longest, skip));
    }
    let Epoch { examples, order, padding } = Epoch::new(config, task, epoch)?;
    // Fewer examples than one step takes: then the only step has all of them.
    let drop_last = n >= config.batch.saturating_mul(config.accumulate);
    let skip = step as usize * config.accumulate;
    Ok(Loader::new(examples, spec, order, config.batch, drop_last, padding, skip))
}

/// The batches of some shards in an epoch (from 0), from its step `step` on: of each step `shards × accumulate` batches
/// in its order, those of shards `own`.
///
/// # Errors
/// With `train.bucket`, an example that cannot be read.
pub(super) fn shard_batches(
    config: &TrainConfig,
    task: &Task,
    epoch: u64,
    step: u64,
    own: Range<usize>,
) -> Result<Loader> {
    if config.shards == 1 {
        return epoch_batches(config, task, epoch, step);
    }
    let Epoch { examples, order, padding } = Epoch::new(config, task, epoch)?;
    let steps = config.steps_per_epoch(order.len());
    let size = config.shard_batch();
    let batches = own.start * config.accumulate..own.end * config.accumulate;
    let per_step = config.batch.saturating_mul(config.accumulate);
    let part = |step: u64| {
        let all = &order[step as usize * per_step..];
        // Fewer examples than one step takes: then the only step has all of them.
        let all = &all[..per_step.min(all.len())];
        all[(batches.start * size).min(all.len())..(batches.end * size).min(all.len())].to_vec()
    };
    let order: Vec<u32> = (step..steps).flat_map(part).collect();
    Ok(Loader::new(examples, task.spec.clone(), order, size, false, padding, 0))
}

/// The examples of an epoch in their order.
struct Epoch {
    examples: Arc<dyn Dataset>,
    order: Vec<u32>,
    padding: Padding,
}

impl Epoch {
    fn new(config: &TrainConfig, task: &Task, epoch: u64) -> Result<Self> {
        let n = task.train.len();
        let examples =
            task.train.in_epoch(config.seed, epoch).unwrap_or_else(|| task.train.clone());
        let mut order = epoch_order(n, config.seed, epoch);
        let mut padding = Padding::Longest;
        if config.bucket > 0 {
            let batches = epoch_order(n / config.batch, config.seed, epoch);
            order = by_length(&order, &lengths(&*examples)?, config.batch, config.bucket, &batches);
            padding = Padding::Tight;
        }
        Ok(Self { examples, order, padding })
    }
}

/// Sorts groups of `bucket` batches by length and arranges the full batches as `batches` says; what is left over stays
/// at the end.
fn by_length(
    order: &[u32],
    lengths: &[usize],
    batch: usize,
    bucket: usize,
    batches: &[u32],
) -> Vec<u32> {
    let (full, rest) = order.split_at(batches.len() * batch);
    let mut sorted = full.to_vec();
    for group in sorted.chunks_mut(batch.saturating_mul(bucket)) {
        group.sort_by_key(|&i| lengths[i as usize]);
    }
    let arranged = batches.iter().flat_map(|&i| &sorted[i as usize * batch..][..batch]);
    arranged.chain(rest).copied().collect()
}

/// Numbers or tokens of every example, of the longer half for pairs.
fn lengths(examples: &dyn Dataset) -> Result<Vec<usize>> {
    let length = |input: &Input| match input {
        Input::Tokens(tokens) => tokens.len(),
        Input::Values(values) => values.len(),
    };
    let one = |i| {
        let example = examples.example(i)?;
        let second = example.second.as_ref().map_or(0, length);
        Ok(length(&example.input).max(second))
    };
    (0..examples.len()).into_par_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_of_a_group_have_similar_lengths() {
        let lengths: Vec<usize> = (0..23).map(|i| i * 7 % 23).collect();
        let order = epoch_order(23, 1, 0);
        let bucketed = by_length(&order, &lengths, 2, 4, &epoch_order(11, 1, 0));
        let mut all = bucketed.clone();
        all.sort_unstable();
        assert_eq!(all, (0..23).collect::<Vec<u32>>(), "every example once");
        assert_eq!(bucketed[22], order[22], "the rest stays at the end");
        // Batch i of the sorted order: the next two in length of their group of eight.
        let place = epoch_order(11, 1, 0).iter().position(|&i| i == 1).unwrap();
        let mut group: Vec<usize> = order[..8].iter().map(|&i| lengths[i as usize]).collect();
        group.sort_unstable();
        let batch = bucketed[2 * place..][..2].iter().map(|&i| lengths[i as usize]);
        assert_eq!(batch.collect::<Vec<_>>(), group[2..4]);
    }
}
