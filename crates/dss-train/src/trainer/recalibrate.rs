//! BatchNorm's statistics, recomputed for the weights that are evaluated.
//!
//! The running statistics lag some ten steps behind the weights. At a high learning rate they are those of another
//! model, and evaluations jump although the training does not.

use burn::module::Module;
use burn::tensor::DType;
use dss_data::Task;
use dss_nn::config::NormKind;
use dss_nn::{DropoutKey, Mode, Model};

use super::batches::epoch_batches;
use super::shards::gather_stats;
use crate::bridge;
use crate::config::TrainConfig;
use crate::error::Result;
use crate::group::{Group, tree};

/// `model` after `step` steps, its statistics the mean over the first `train.recalibrate` batches of epoch `epoch`
/// (from 0), of which each rank takes some. `None` if `stop` ended it early.
pub(super) fn recalibrated(
    model: &Model,
    config: &TrainConfig,
    task: &Task,
    epoch: u64,
    step: u64,
    group: &Group,
    stop: &dyn Fn() -> bool,
) -> Result<Option<Model>> {
    let mut model = model.valid();
    if config.recalibrate == 0 || model.config().norm != NormKind::Batch {
        return Ok(Some(model));
    }
    let (device, prepared) = (model.device(), model.prepare(task.spec.len));
    let config = TrainConfig { carry: false, ..config.clone() };
    let batches = config.recalibrate.min(task.train.len().div_ceil(config.batch));
    let own = tree::shards_of_rank(batches, group.rank(), group.size());
    let most = batches.div_ceil(group.size());
    let mut loader = epoch_batches(&config, task, epoch, 0)?.skip(own.start);
    let mut measured = Vec::new();
    let proceeds = group.in_rounds(own.len(), most, &mut |i| {
        let Some(batch) = loader.next().transpose()? else { return Ok(true) };
        let input = bridge::input(&batch, &device, DType::F32);
        let dropout = DropoutKey { seed: config.seed, step, micro: (own.start + i) as u32 };
        let prepared = model.cut(&prepared, batch.l);
        let output = model.forward(input, &batch.lengths, &prepared, Mode::Train { dropout });
        measured.push(output.stats);
        Ok(!stop())
    })?;
    if !proceeds {
        return Ok(None);
    }
    for (i, stats) in gather_stats(group, measured, &device)?.iter().enumerate() {
        model = model.blend_stats(stats, 1.0 / (i + 1) as f64);
    }
    Ok(Some(model))
}
