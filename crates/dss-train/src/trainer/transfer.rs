//! Starting with the weights of another model: `train.from`.

use std::collections::BTreeMap;
use std::path::Path;

use burn::tensor::{Device, TensorData};
use dss_nn::{Model, checkpoint};

use super::events::{Event, Observer};
use crate::error::{Error, Result};
use crate::run_dir::RunDir;

/// `model` with the weights of a run's best checkpoint or of a file. The head stays new if the other model gives
/// different answers.
///
/// # Errors
/// If the other model reads something else, or has other tensors.
pub(super) fn started_from(
    model: Model,
    from: &Path,
    labels: &[String],
    device: &Device,
    observer: &mut dyn Observer,
) -> Result<Model> {
    let path = RunDir::checkpoint_at(from);
    let (other, meta) = checkpoint::load(&path, device)?;
    let refused = |what: String| Error::Transfer { path: path.clone(), what };
    if meta.io.input != model.io().input {
        let (theirs, ours) = (meta.io.input, model.io().input);
        return Err(refused(format!("it reads {theirs:?}, the data has {ours:?}")));
    }
    let new_head = meta.io.output != model.io().output || meta.labels != labels;
    let head = |name: &str| new_head && name.starts_with("head.");
    let mut theirs: BTreeMap<String, TensorData> = other.named_tensors().into_iter().collect();
    theirs.retain(|name, _| !head(name));
    for (name, own) in model.named_tensors() {
        if head(&name) {
            theirs.insert(name, own);
        } else if theirs.get(&name).is_none_or(|data| data.shape() != own.shape()) {
            return Err(refused(format!(
                "its `{name}` is not as in this model; use the [model] settings that it was trained with"
            )));
        }
    }
    let model = model.load_named(theirs).map_err(|error| refused(error.to_string()))?;
    let what = if new_head { "all weights but the head's" } else { "all weights" };
    let note = format!("{what} start as in {} (step {})", path.display(), meta.step);
    observer.event(&Event::Note(note));
    Ok(model)
}
