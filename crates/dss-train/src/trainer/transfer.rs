//! Starting with the weights of another model: `train.from`.

use std::collections::BTreeMap;
use std::path::Path;

use burn::tensor::{Device, TensorData};
use dss_data::{Encoder, Task};
use dss_nn::{Model, checkpoint};

use super::events::{Event, Observer};
use super::target_units;
use crate::bridge;
use crate::error::{Error, Result};
use crate::run_dir::RunDir;

/// A row for each token.
const EMBEDDING: &str = "encoder.weight";

/// `model` with the weights of a run's best checkpoint or of a file. The head stays new if the other model gives
/// different answers.
///
/// # Errors
/// If the other model reads something else, or has other tensors.
pub(super) fn started_from(
    model: Model,
    from: &Path,
    task: &Task,
    device: &Device,
    observer: &mut dyn Observer,
) -> Result<Model> {
    let path = RunDir::checkpoint_at(from);
    let (other, meta) = checkpoint::load(&path, device)?;
    let refused = |what: String| Error::Transfer { path: path.clone(), what };
    if meta.io.input != model.io().input {
        let (theirs, ours) = (meta.io.input, model.io().input);
        return Err(refused(format!("it reads {theirs:?}, but the data have {ours:?}")));
    }
    let symbols = Encoder::from_extra(&meta.extra).ok().and_then(|encoder| encoder.vocabulary());
    let order = match (&symbols, &task.vocabulary) {
        (Some(theirs), Some(ours)) if theirs != ours => {
            Some(places(ours, theirs).ok_or_else(|| {
                refused(
                    "it was trained on text with other symbols, so its weights do not fit".into(),
                )
            })?)
        }
        _ => None,
    };
    let new_head = meta.io.output != model.io().output || meta.labels != bridge::labels(&task.spec);
    let head = |name: &str| new_head && name.starts_with("head.");
    let mut theirs: BTreeMap<String, TensorData> = other.named_tensors().into_iter().collect();
    theirs.retain(|name, _| !head(name));
    if let Some((order, embedding)) = order.zip(theirs.get_mut(EMBEDDING)) {
        *embedding = reordered(embedding, &order);
    }
    for (name, own) in model.named_tensors() {
        if head(&name) {
            theirs.insert(name, own);
        } else if theirs.get(&name).is_none_or(|data| data.shape() != own.shape()) {
            return Err(refused(format!(
                "its `{name}` differs from this model's; use the [model] settings it was trained with"
            )));
        }
    }
    let model = model.load_named(theirs).map_err(|error| refused(error.to_string()))?;
    let scaling = task.target_scaling.as_ref().filter(|_| !new_head);
    let model = target_units::in_trained_units(model, scaling)?;
    let what = if new_head { "all weights but the head's" } else { "all weights" };
    let note = format!("{what} start as in {} (step {})", path.display(), meta.step);
    observer.event(&Event::Note(note));
    Ok(model)
}

/// Where each of `ours` is among `theirs`; `None` if they are not the same symbols in another order.
fn places(ours: &[String], theirs: &[String]) -> Option<Vec<usize>> {
    let places: BTreeMap<&String, usize> = theirs.iter().zip(0..).collect();
    let found: Vec<usize> =
        ours.iter().map(|symbol| places.get(symbol).copied()).collect::<Option<_>>()?;
    (ours.len() == theirs.len()).then_some(found)
}

/// The rows of a matrix in another order.
fn reordered(matrix: &TensorData, order: &[usize]) -> TensorData {
    let width = matrix.shape()[1];
    let values = matrix.iter::<f32>().collect::<Vec<_>>();
    let rows = order.iter().flat_map(|&row| &values[row * width..(row + 1) * width]).copied();
    TensorData::new(rows.collect::<Vec<f32>>(), matrix.shape().clone())
}
