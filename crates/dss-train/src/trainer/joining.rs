//! All ranks of a group begin with the same state: rank 0 reads what was saved, or starts a new run, and sends it to
//! the others.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use burn::tensor::{DType, TensorData};
use dss_nn::{DropoutKey, Model};
use serde::{Deserialize, Serialize};

use super::TrainOptions;
use super::batches::shard_batches;
use super::session::Session;
use super::step::{part_gradients, scored};
use crate::config::Config;
use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::group::Group;
use crate::optimiser::{AdamW, Layout};
use crate::run_dir::{EvalRecord, Metrics, TrainingState};

/// What rank 0 tells besides numbers.
#[derive(Serialize, Deserialize)]
struct SharedStart {
    state: TrainingState,
    lines: u64,
    saved_step: Option<u64>,
    /// Steps of the optimiser, and the parameters that it has moments of.
    steps: u64,
    moments: Vec<String>,
    stored_test: Option<EvalRecord>,
}

impl Session<'_> {
    /// Gives every rank the session of rank 0, and its stored result.
    pub(super) fn join(
        &mut self,
        group: &Group,
        stored_test: Option<EvalRecord>,
    ) -> Result<Option<EvalRecord>> {
        self.group = group.clone();
        if group.size() == 1 {
            return Ok(stored_test);
        }
        let start = SharedStart {
            state: self.state.clone(),
            lines: self.metrics.lines(),
            saved_step: self.saved_step,
            steps: self.optimiser.steps(),
            moments: self.optimiser.names(),
            stored_test,
        };
        let text = group.share(serde_json::to_vec(&start).expect("plain data"))?;
        let first: SharedStart = serde_json::from_slice(&text).map_err(|error| {
            Error::Group(format!("rank 0 began with a state that cannot be read: {error}"))
        })?;
        self.model = shared_model(group, self.model.clone())?;
        if let Some(average) = self.average.take() {
            self.average = Some(shared_model(group, average)?);
        }
        let moments = group.share_floats(self.optimiser.to_flat())?;
        if group.is_first() {
            return Ok(first.stored_test);
        }
        let depth = self.optimiser.depth();
        let sizes: BTreeMap<String, usize> = self
            .model
            .parameters()
            .into_iter()
            .map(|p| (p.name, p.shape.iter().product::<usize>()))
            .collect();
        self.optimiser =
            AdamW::from_flat(first.steps, &first.moments, &sizes, &moments, &self.device)
                .with_depth(depth);
        self.rates = self.rates.clone().with_state(first.state.schedule.clone());
        (self.state, self.saved_step) = (first.state, first.saved_step);
        self.metrics = Metrics::unwritten(first.lines);
        Ok(first.stored_test)
    }
}

/// The model of rank 0 on every rank; `model` is it, or one of the same shape.
pub(super) fn shared_model(group: &Group, model: Model) -> Result<Model> {
    let own = model.named_tensors();
    let numbers = match group.is_first() {
        true => own.iter().flat_map(|(_, data)| data.iter::<f32>().collect::<Vec<_>>()).collect(),
        false => Vec::new(),
    };
    let numbers = group.share_floats(numbers)?;
    if group.is_first() {
        return Ok(model);
    }
    let (mut named, mut rest) = (BTreeMap::new(), numbers.as_slice());
    for (name, data) in own {
        let (values, others) = rest
            .split_at_checked(data.num_elements())
            .ok_or_else(|| Error::Group("rank 0's model differs".to_owned()))?;
        named.insert(name, TensorData::new(values.to_vec(), data.shape().clone()));
        rest = others;
    }
    Ok(model.load_named(named)?)
}

/// Makes sure that all ranks have the same weights: they add up the same numbers in the same order, so that a difference
/// is a fault of a machine or of its memory.
pub(super) fn compare_weights(group: &Group, model: &Model) -> Result<()> {
    if group.size() == 1 {
        return Ok(());
    }
    // A rank that could not write what belongs to the last step says so first.
    group.agree(Ok(()))?;
    let tensors = model.named_tensors();
    let bytes: Vec<u8> = tensors.iter().flat_map(|(_, data)| data.as_bytes()).copied().collect();
    compare(group, "has different weights from rank 0", &bytes)
}

/// Makes sure that all ranks compute the same: every rank has the gradients of the next step's first shard. Builds,
/// processors and mathematical libraries may differ in ways that no name tells.
pub(super) fn compare_gradients(session: &Session<'_>) -> Result<()> {
    let (group, config, state) = (&session.group, &session.config.train, &session.state);
    if group.size() == 1 || state.step >= session.total_steps() {
        return Ok(());
    }
    let gradients = || {
        let (epoch, step) =
            (state.step / state.steps_per_epoch, state.step % state.steps_per_epoch);
        let batches = shard_batches(config, session.task, epoch, step, 0..1)?;
        let batches = batches.take(config.accumulate).collect::<dss_data::Result<Vec<_>>>()?;
        let first = DropoutKey { seed: config.seed, step: state.step, micro: 0 };
        let model = &session.model;
        let (total, scaling) = (scored(&batches), state.target_scaling.as_ref());
        let found = part_gradients(model, &batches, first, total, DType::F32, scaling, None)?;
        Ok(Layout::new(model).flatten(&found.gradients))
    };
    let gradients = group.agree(gradients())?;
    let bytes: Vec<u8> = gradients.iter().flat_map(|number| number.to_le_bytes()).collect();
    let what = "computes different gradients from rank 0 for the same sequences: all processes need the same build of the program, the same C library and the same kind of processor";
    compare(group, what, &bytes)
}

/// The folder of the data that rank 0 finds in a run to resume: the others need not see its directory.
pub(super) fn remembered_data(options: &TrainOptions, out: &Path) -> Result<Option<PathBuf>> {
    let first = options.resume && options.group.is_first();
    let own = first.then(|| Environment::data_dir(out)).flatten();
    let told = options.group.share(serde_json::to_vec(&own).expect("plain data"))?;
    Ok(serde_json::from_slice(&told).unwrap_or_default())
}

/// Whether the ranks can train together: the same settings and instructions.
pub(super) fn check_alike(config: &Config, group: &Group) -> Result<()> {
    if group.size() == 1 {
        return Ok(());
    }
    let facts = [
        (
            "runs a different version of this program from rank 0",
            env!("CARGO_PKG_VERSION").to_owned(),
        ),
        (
            "uses different vector instructions from rank 0: set DSS_SIMD=avx2 or DSS_SIMD=portable for all",
            dss_kernels::simd_name().to_owned(),
        ),
        ("has different settings from rank 0", config.to_annotated_toml()),
    ];
    for (what, own) in facts {
        compare(group, what, own.as_bytes())?;
    }
    Ok(())
}

/// Whether there is a shard for each rank.
pub(super) fn enough_shards(config: &Config, ranks: usize) -> Result<()> {
    let (shards, batch) = (config.train.shards, config.train.batch);
    if ranks <= shards {
        return Ok(());
    }
    let advice = match (ranks..=batch).find(|&count| batch.is_multiple_of(count)) {
        Some(count) => format!(
            "use --set shards={count} (or another divisor of train.batch = {batch} from {ranks} on; it is part of the \
             result), or fewer processes"
        ),
        None => format!("use fewer processes, there can be at most train.batch = {batch} shards"),
    };
    Err(Error::Group(format!(
        "{ranks} processes need at least as many shards, but train.shards is {shards}: {advice}"
    )))
}

/// Makes sure that all ranks have the same bytes; `what` is the error of the first rank whose bytes differ.
pub(super) fn compare(group: &Group, what: &str, own: &[u8]) -> Result<()> {
    use sha2::{Digest, Sha256};
    let hash = Sha256::digest(own);
    let words = hash.chunks(8).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("8 bytes")));
    let lists = group.gather_lists(words.collect())?;
    match lists.iter().position(|list| *list != lists[0]) {
        Some(rank) => {
            let host = &group.members()[rank].host;
            Err(Error::Group(format!("rank {rank} on {host} {what}")))
        }
        None => Ok(()),
    }
}
