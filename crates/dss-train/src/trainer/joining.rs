//! The ranks of a group begin alike: rank 0 reads what was saved, or starts a new run, and tells the others.

use std::collections::BTreeMap;

use burn::tensor::TensorData;
use dss_nn::Model;
use serde::{Deserialize, Serialize};

use super::session::Session;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::group::Group;
use crate::optimiser::AdamW;
use crate::run_dir::{EvalRecord, Metrics, TrainingState};

/// What rank 0 tells besides numbers.
#[derive(Serialize, Deserialize)]
struct Beginning {
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
        let beginning = Beginning {
            state: self.state.clone(),
            lines: self.metrics.lines(),
            saved_step: self.saved_step,
            steps: self.optimiser.steps(),
            moments: self.optimiser.names(),
            stored_test,
        };
        let text = group.share(serde_json::to_vec(&beginning).expect("plain data"))?;
        let first: Beginning = serde_json::from_slice(&text).map_err(|error| {
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
            .ok_or_else(|| Error::Group("rank 0 has another model".to_owned()))?;
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
    compare(group, "other weights", &bytes)
}

/// Whether the ranks can train together: the same settings and instructions, and a shard for each of them.
pub(super) fn check_alike(config: &Config, group: &Group) -> Result<()> {
    if group.size() == 1 {
        return Ok(());
    }
    group.agree(enough_shards(config, group.size()))?;
    let version = env!("CARGO_PKG_VERSION");
    let facts = [
        ("another version of this program", version.to_owned()),
        (
            "other vector instructions (DSS_SIMD=avx2 or DSS_SIMD=portable makes them alike)",
            dss_kernels::simd_name().to_owned(),
        ),
        ("other settings", config.to_annotated_toml()),
    ];
    for (what, own) in facts {
        compare(group, what, own.as_bytes())?;
    }
    Ok(())
}

fn enough_shards(config: &Config, ranks: usize) -> Result<()> {
    let (shards, batch) = (config.train.shards, config.train.batch);
    if ranks <= shards {
        return Ok(());
    }
    Err(Error::Group(format!(
        "{ranks} processes need at least as many shards, but train.shards is {shards}: use --set shards={ranks} \
         (or any divisor of train.batch = {batch} from {ranks} on; it is part of the result), or fewer processes"
    )))
}

/// Makes sure that all ranks have the same bytes.
pub(super) fn compare(group: &Group, what: &str, own: &[u8]) -> Result<()> {
    use sha2::{Digest, Sha256};
    let hash = Sha256::digest(own);
    let words = hash.chunks(8).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("8 bytes")));
    let lists = group.gather_lists(words.collect())?;
    match lists.iter().position(|list| *list != lists[0]) {
        Some(rank) => {
            let host = &group.members()[rank].host;
            Err(Error::Group(format!("rank {rank} on {host} has {what} than rank 0")))
        }
        None => Ok(()),
    }
}
