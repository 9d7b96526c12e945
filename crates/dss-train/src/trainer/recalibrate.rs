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
use crate::bridge;
use crate::config::TrainConfig;
use crate::error::Result;

/// `model` after `step` steps, its statistics the mean over the first `train.recalibrate` batches of epoch `epoch`
/// (from 0). `None` if `stop` ended it early.
pub(super) fn recalibrated(
    model: &Model,
    config: &TrainConfig,
    task: &Task,
    epoch: u64,
    step: u64,
    stop: &dyn Fn() -> bool,
) -> Result<Option<Model>> {
    let mut model = model.valid();
    if config.recalibrate == 0 || model.config().norm != NormKind::Batch {
        return Ok(Some(model));
    }
    let (device, prepared) = (model.device(), model.prepare(task.spec.len));
    let config = TrainConfig { carry: false, ..config.clone() };
    let batches = epoch_batches(&config, task, epoch, 0)?.take(config.recalibrate);
    for (i, batch) in batches.enumerate() {
        let batch = batch?;
        let input = bridge::input(&batch, &device, DType::F32);
        let dropout = DropoutKey { seed: config.seed, step, micro: i as u32 };
        let prepared = model.cut(&prepared, batch.l);
        let output = model.forward(input, &batch.lengths, &prepared, Mode::Train { dropout });
        model = model.blend_stats(&output.stats, 1.0 / (i + 1) as f64);
        if stop() {
            return Ok(None);
        }
    }
    Ok(Some(model))
}
