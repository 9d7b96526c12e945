//! Regression with standardised targets: the model learns (target - mean) / sd.
//!
//! Every model outside of the training loop answers in the units of the targets: its last map y = W·x + b is that of the
//! training with sd·W and sd·b + mean. A save to resume from keeps the numbers of the training beside them, to the bit.

use std::collections::BTreeMap;

use burn::tensor::TensorData;
use dss_data::TargetScaling;
use dss_nn::Model;
use dss_nn::checkpoint::CheckpointMeta;
use serde::{Deserialize, Serialize};

use crate::error::Result;

/// Key of the metadata of a save.
const TRAINED_HEAD: &str = "trained_head";

/// The last map as it is trained, in the metadata of a save.
#[derive(Serialize, Deserialize)]
struct TrainedHead {
    weight: Vec<f32>,
    bias: Vec<f32>,
}

/// `model`, which was trained on standardised targets, with outputs in the units of the targets.
pub(super) fn in_units_of_targets(model: Model, scaling: Option<&TargetScaling>) -> Result<Model> {
    with_last_map(model, scaling, |x, part, mean, sd| match part {
        Part::Weight => x * sd,
        Part::Bias => x * sd + mean,
    })
}

/// The reverse: a model that answers in the units of the targets, to be trained on standardised ones.
pub(super) fn in_trained_units(model: Model, scaling: Option<&TargetScaling>) -> Result<Model> {
    with_last_map(model, scaling, |x, part, mean, sd| match part {
        Part::Weight => x / sd,
        Part::Bias => (x - mean) / sd,
    })
}

/// Notes the last map of a model in training in the metadata of its save.
pub(super) fn keep_trained_head(meta: &mut CheckpointMeta, model: &Model) {
    let tensors: BTreeMap<String, TensorData> = model.named_tensors().into_iter().collect();
    let [weight, bias] = last_map(&tensors).map(|name| tensors[&name].iter::<f32>().collect());
    let head = serde_json::to_string(&TrainedHead { weight, bias }).expect("plain data");
    meta.extra.insert(TRAINED_HEAD.to_owned(), head);
}

/// The model of a save as it is trained; `Err` says what is wrong with the save.
pub(super) fn with_trained_head(
    model: Model,
    meta: &CheckpointMeta,
) -> std::result::Result<Model, String> {
    let head = meta.extra.get(TRAINED_HEAD).ok_or("it lacks the head of the training")?;
    let head: TrainedHead = serde_json::from_str(head).map_err(|error| error.to_string())?;
    let mut tensors: BTreeMap<String, TensorData> = model.named_tensors().into_iter().collect();
    for (name, numbers) in last_map(&tensors).into_iter().zip([head.weight, head.bias]) {
        let shape = tensors[&name].shape().clone();
        if shape.num_elements() != numbers.len() {
            return Err(format!("`{name}` of its head has {} numbers", numbers.len()));
        }
        tensors.insert(name, TensorData::new(numbers, shape));
    }
    model.load_named(tensors).map_err(|error| error.to_string())
}

/// The parts of a linear map.
#[derive(Clone, Copy)]
enum Part {
    Weight,
    Bias,
}

/// `model` with `change(number, part, mean, sd)` for every number of its last map.
fn with_last_map(
    model: Model,
    scaling: Option<&TargetScaling>,
    change: fn(f64, Part, f64, f64) -> f64,
) -> Result<Model> {
    let Some(TargetScaling { mean, sd }) = scaling else { return Ok(model) };
    let mut tensors: BTreeMap<String, TensorData> = model.named_tensors().into_iter().collect();
    for (name, part) in last_map(&tensors).into_iter().zip([Part::Weight, Part::Bias]) {
        let data = &tensors[&name];
        let columns = data.num_elements() / sd.len();
        let new = |(i, x): (usize, f64)| {
            let output = i / columns;
            change(x, part, mean[output], sd[output]) as f32
        };
        let numbers: Vec<f32> = data.iter::<f64>().enumerate().map(new).collect();
        let data = TensorData::new(numbers, data.shape().clone());
        tensors.insert(name, data);
    }
    Ok(model.load_named(tensors)?)
}

/// The names of the weight `[O, H]` and the bias `[O]` that give the outputs.
fn last_map(tensors: &BTreeMap<String, TensorData>) -> [String; 2] {
    let hidden = tensors.contains_key("head.out.weight");
    let map = if hidden { "head.out" } else { "head" };
    ["weight", "bias"].map(|part| format!("{map}.{part}"))
}
