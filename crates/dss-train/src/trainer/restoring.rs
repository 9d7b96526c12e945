//! Reading a saved training back, and making sure that its files are whole and belong together.

use std::path::Path;

use burn::tensor::Device;
use dss_data::{TargetScaling, Task};
use dss_nn::checkpoint::{self, CheckpointMeta};
use dss_nn::{Carry, Model};

use super::carry;
use super::events::{Event, Observer};
use super::target_units;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::optimiser::AdamW;
use crate::run_dir::sums::CheckedDir;
use crate::run_dir::{RunDir, TrainingState, atomic, differences};

/// The settings of the run, in `last/`.
pub(super) const CONFIG: &str = "config.toml";

/// What `last/` holds.
pub(super) struct SavedTraining {
    pub(super) state: TrainingState,
    pub(super) model: Model,
    pub(super) average: Option<Model>,
    pub(super) optimiser: AdamW,
    pub(super) carry: Option<Carry>,
}

impl SavedTraining {
    /// The newest save that is whole: `last/`, or else the one before it.
    pub(super) fn newest(
        config: &Config,
        task: &Task,
        run: &RunDir,
        device: &Device,
        observer: &mut dyn Observer,
    ) -> Result<Self> {
        let error = match Self::load(config, task, &run.last(), device) {
            Err(error) if !matches!(error, Error::DataDiffers { .. }) => error,
            result => return result,
        };
        let Ok(saved) = Self::load(config, task, &atomic::previous(&run.last()), device) else {
            return Err(error);
        };
        let step = saved.state.step;
        let note = format!("{error}; the run resumes from the save before it, of step {step}");
        observer.event(&Event::Note(note));
        Ok(saved)
    }

    fn load(config: &Config, task: &Task, dir: &Path, device: &Device) -> Result<Self> {
        let files = CheckedDir::open(dir)?;
        check_config(config, dir, &files)?;
        let path = files.file("state.json")?;
        let state = TrainingState::load(&path)?;
        if !task.has_splits(&state.split_hash) {
            let (then, now) = (state.split_hash, task.split_hash.clone());
            return Err(Error::DataDiffers { then, now });
        }
        let outputs = |scaling: &TargetScaling| (scaling.mean.len(), scaling.sd.len());
        let (then, now) = (&state.target_scaling, &task.target_scaling);
        if then.is_some() && then.as_ref().map(outputs) != now.as_ref().map(outputs) {
            let what = "its scaling of the targets does not belong to these data".to_owned();
            return Err(Error::Damaged { path, what });
        }
        let steps_per_epoch = config.train.steps_per_epoch(task.train.len());
        compare(&path, "steps_per_epoch", state.steps_per_epoch, steps_per_epoch)?;

        let load = |name: &str| {
            let path = files.file(name)?;
            let (model, meta) = checkpoint::load(&path, device)?;
            belongs(&path, &meta, config, &state)?;
            compare(&path, "step", meta.step, state.step)?;
            if state.target_scaling.is_none() {
                return Ok::<_, Error>(model);
            }
            let trained = target_units::with_trained_head(model, &meta);
            trained.map_err(|what| Error::Damaged { path, what })
        };
        let model = load("model.safetensors")?;
        let averaged = config.train.average > 0.0;
        let average = averaged.then(|| load("average.safetensors")).transpose()?;

        let path = files.file("optimiser.safetensors")?;
        let optimiser = AdamW::load(&path, device)?;
        optimiser.check(&path, &model.parameters())?;
        compare(&path, "steps", optimiser.steps(), state.step)?;

        let carry = match config.train.carry && !state.step.is_multiple_of(steps_per_epoch) {
            true => Some(carry::load(&files.file(carry::FILE)?, &model, config.train.batch)?),
            false => None,
        };
        Ok(Self { state, model, average, optimiser, carry })
    }
}

/// Makes sure that the run was saved with the settings of its `config.toml`, which may have changed on the disk since.
/// Saves of older versions do not have them.
fn check_config(config: &Config, dir: &Path, files: &CheckedDir) -> Result<()> {
    if !files.lists(CONFIG) {
        return Ok(());
    }
    let keys = differences(&Config::from_run(dir)?, config);
    if keys.is_empty() {
        return Ok(());
    }
    let (path, keys) = (dir.with_file_name(CONFIG), keys.join(", "));
    let what =
        format!("the run was saved with other settings ({keys}): restore those of last/{CONFIG}");
    Err(Error::Damaged { path, what })
}

/// Makes sure that the best model, whose score will be the result of the run, is there.
pub(super) fn check_best(
    config: &Config,
    state: &TrainingState,
    path: &Path,
    device: &Device,
) -> Result<()> {
    let Some(best) = &state.best else { return Ok(()) };
    let check = || -> Result<()> {
        let (_, meta) = checkpoint::load(path, device)?;
        belongs(path, &meta, config, state)?;
        // A run that was killed after an evaluation and before its save has a newer one already.
        let newer = meta.step >= state.step && meta.step > state.evaluated_step;
        if newer { Ok(()) } else { compare(path, "step", meta.step, best.step) }
    };
    check().map_err(|error| Error::NoBest { path: path.into(), what: error.to_string() })
}

/// Whether a model is of this run.
fn belongs(
    path: &Path,
    meta: &CheckpointMeta,
    config: &Config,
    state: &TrainingState,
) -> Result<()> {
    if meta.model != config.model {
        let what = "it is not the model that config.toml describes".to_owned();
        return Err(Error::Damaged { path: path.into(), what });
    }
    compare(path, "seed", meta.seed, config.train.seed)?;
    compare(path, "split_hash", &meta.split_hash, &state.split_hash)
}

fn compare<T: PartialEq + std::fmt::Display>(
    path: &Path,
    name: &str,
    found: T,
    expected: T,
) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    let what = format!("`{name}` is {found}, but must be {expected}");
    Err(Error::Damaged { path: path.into(), what })
}
