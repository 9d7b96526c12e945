//! Loss and gradients of a step whose micro-batches are cut into shards.
//!
//! A step has G·A batches in the order of its examples, for G shards and A micro-batches to accumulate; shard g has the
//! A batches from g·A on. Each shard is a forward and a backward pass of its own, kernels included: what it gives
//! depends on its number and on nothing else. Gradients are added up by the tree over shard numbers, losses and
//! BatchNorm's statistics in the order of the shards, on every rank.

use burn::tensor::{DType, Device, Tensor, TensorData};
use dss_data::{Batch, TargetScaling};
use dss_nn::ops::BatchStats;
use dss_nn::{DropoutKey, Model};

use super::step::{StepGradients, part_gradients};
use crate::error::Result;
use crate::group::{Group, tree};
use crate::optimiser::{Gradients, Layout};
use crate::scores::Tally;

/// Loss and gradients of `model` on a step of `shards` shards; `mine` are the batches of this rank's shards, `per_shard`
/// each (fewer at the end of a step that is not full), and `total` the scored items of all ranks.
///
/// The result is the same on every rank, and has the same bits for any number of ranks.
///
/// # Errors
/// [`Error::Lost`](crate::Error::Lost).
#[allow(clippy::too_many_arguments)]
pub fn sharded_gradients(
    model: &Model,
    mine: &[Batch],
    shards: usize,
    per_shard: usize,
    total: u64,
    seed: u64,
    step: u64,
    group: &Group,
) -> Result<StepGradients> {
    scaled_gradients(model, mine, shards, per_shard, total, seed, step, None, group)
}

/// As [`sharded_gradients`], of a model that learns standardised targets if there is a `scaling`.
#[allow(clippy::too_many_arguments)]
pub(super) fn scaled_gradients(
    model: &Model,
    mine: &[Batch],
    shards: usize,
    per_shard: usize,
    total: u64,
    seed: u64,
    step: u64,
    scaling: Option<&TargetScaling>,
    group: &Group,
) -> Result<StepGradients> {
    let layout = Layout::new(model);
    let own = group.shards(shards);
    let batches = |shard: usize| {
        let from = ((shard - own.start) * per_shard).min(mine.len());
        &mine[from..(from + per_shard).min(mine.len())]
    };
    let (mut tallies, mut stats) = (Vec::new(), Vec::new());
    let mut shard_sum = |shard: usize| {
        let (first, batches) = ((shard * per_shard) as u32, batches(shard));
        if batches.is_empty() {
            tallies.push(Tally::default());
            return Ok(layout.flatten(&Gradients::default()));
        }
        let first = DropoutKey { seed, step, micro: first };
        let found = part_gradients(model, batches, first, total, DType::F32, scaling, None)?;
        tallies.push(found.tally);
        stats.extend(found.stats);
        Ok(layout.flatten(&found.gradients))
    };
    let node_sum = |node| {
        tree::sum(node, &mut |node| (node.len() == 1).then(|| shard_sum(node.start)).transpose())
    };
    let parts = tree::nodes(shards, &own).into_iter().map(node_sum).collect::<Result<Vec<_>>>()?;

    let counts: Vec<usize> = (0..group.size())
        .map(|rank| tree::shards_of_rank(shards, rank, group.size()).len())
        .collect();
    let tally = in_order(&gather_tallies(group, &tallies, &counts)?);
    let mut found = StepGradients { tally, gradients: Gradients::default(), stats: Vec::new() };
    if found.tally.loss.is_finite() {
        found.stats = gather_stats(group, stats, &model.device())?;
        found.gradients = layout.gradients(group.sum(shards, parts)?, &model.device());
    }
    Ok(found)
}

/// The sum of tallies, one after the other.
fn in_order(tallies: &[Tally]) -> Tally {
    let mut sum = Tally::default();
    tallies.iter().for_each(|tally| sum.add(tally));
    sum
}

/// The tallies of all ranks; `counts` says how many each has.
pub(crate) fn gather_tallies(
    group: &Group,
    mine: &[Tally],
    counts: &[usize],
) -> Result<Vec<Tally>> {
    const WORDS: usize = 5;
    let words =
        |t: &Tally| [t.loss.to_bits(), t.absolute.to_bits(), t.scored, t.correct, t.examples];
    let counts: Vec<usize> = counts.iter().map(|count| count * WORDS).collect();
    let all = group.gather_words(mine.iter().flat_map(words).collect(), &counts)?;
    let tally = |words: &[u64]| Tally {
        loss: f64::from_bits(words[0]),
        absolute: f64::from_bits(words[1]),
        scored: words[2],
        correct: words[3],
        examples: words[4],
    };
    Ok(all.chunks(WORDS).map(tally).collect())
}

/// The statistics of all ranks' batches, in the order of the ranks: of each batch, those of each BatchNorm.
pub(super) fn gather_stats(
    group: &Group,
    mine: Vec<Vec<BatchStats>>,
    device: &Device,
) -> Result<Vec<Vec<BatchStats>>> {
    if group.size() == 1 {
        return Ok(mine);
    }
    let norms = mine.first().map_or(0, Vec::len);
    let channels = mine.iter().flatten().next().map_or(0, |stats| stats.mean.dims()[0]);
    let shapes = group.gather_lists(vec![mine.len() as u64, norms as u64, channels as u64])?;
    let most = |i: usize| shapes.iter().map(|shape| shape[i] as usize).max().unwrap_or(0);
    let (norms, channels) = (most(1), most(2));
    let batches: Vec<usize> = shapes.iter().map(|shape| shape[0] as usize).collect();
    let per_batch = 2 * norms * channels;
    if per_batch == 0 {
        return Ok(vec![Vec::new(); batches.iter().sum()]);
    }
    let mut numbers = Vec::with_capacity(mine.len() * per_batch);
    for BatchStats { mean, var } in mine.iter().flatten() {
        numbers.extend(mean.to_data().iter::<f32>().chain(var.to_data().iter::<f32>()));
    }
    let counts: Vec<usize> = batches.iter().map(|batches| batches * per_batch).collect();
    let all = group.gather(numbers, &counts)?;
    let vector = |values: &[f32]| {
        let data = TensorData::new(values.to_vec(), [channels]);
        Tensor::<1>::from_data(data, (device, DType::F32))
    };
    let norm = |values: &[f32]| {
        let (mean, var) = values.split_at(channels);
        BatchStats { mean: vector(mean), var: vector(var) }
    };
    let batch = |values: &[f32]| values.chunks(2 * channels).map(norm).collect();
    Ok(all.chunks(per_batch).map(batch).collect())
}
