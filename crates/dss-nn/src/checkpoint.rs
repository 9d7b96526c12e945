//! Checkpoints: models as the files of `dss_format`, which any safetensors library can read.

use std::collections::BTreeMap;
use std::path::Path;

use burn::tensor::{DType, Device, FloatDType, TensorData};
use dss_format::{Array, ModelFile, Numbers, Precision};

use crate::error::{Error, Result};
use crate::model::Model;

pub use dss_format::CheckpointMeta;

/// Writes a checkpoint; `path` then has the whole of it, or is as before if there was an error.
pub fn save(path: impl AsRef<Path>, model: &Model, meta: &CheckpointMeta) -> Result<()> {
    if (&meta.model, &meta.io) != (model.config(), model.io()) {
        return Err(Error::invalid("save", "the metadata describe another model than the tensors"));
    }
    let mut arrays = BTreeMap::new();
    for (name, data) in model.named_tensors() {
        let shape = data.shape().as_slice().to_vec();
        let numbers = match data.dtype() {
            DType::F32 => Numbers::F32(data.iter::<f32>().collect()),
            DType::F64 => Numbers::F64(data.iter::<f64>().collect()),
            other => {
                let what = format!("{name} is {other:?}; cast the model to f32 or f64 first");
                return Err(Error::invalid("save", what));
            }
        };
        arrays.insert(name, Array { shape, numbers });
    }
    let file = ModelFile::new(meta.clone(), arrays)?;
    write_whole(path.as_ref(), &file.to_bytes(Precision::Full)?)
}

/// Reads a checkpoint. Names, shapes and numbers are checked.
pub fn load(path: impl AsRef<Path>, device: &Device) -> Result<(Model, CheckpointMeta)> {
    let file = ModelFile::load(path.as_ref()).map_err(|error| named(path.as_ref(), error))?;
    let (meta, arrays) = file.into_parts();
    let mut float = FloatDType::F32;
    let mut tensors = BTreeMap::new();
    for (name, Array { shape, numbers }) in arrays {
        let data = match numbers {
            Numbers::F32(numbers) => TensorData::new(numbers, shape),
            Numbers::F64(numbers) => {
                float = FloatDType::F64;
                TensorData::new(numbers, shape)
            }
        };
        tensors.insert(name, data);
    }
    let model = Model::init(&meta.model, &meta.io, 0, device, true)?;
    Ok((model.cast(float).load_named(tensors)?, meta))
}

/// Reads the description of a checkpoint's model, without its tensors.
pub fn load_meta(path: impl AsRef<Path>) -> Result<CheckpointMeta> {
    CheckpointMeta::load(path.as_ref()).map_err(|error| named(path.as_ref(), error))
}

/// The error with the file's name, where it has none.
fn named(path: &Path, error: dss_format::Error) -> Error {
    match error {
        dss_format::Error::Io { path, source } => Error::Io { path, source },
        other => Error::Checkpoint { path: path.into(), what: other.to_string() },
    }
}

/// Writes a file so that at every moment either the old or the new one is there, whole.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    dss_format::atomic_write::write(path, bytes)
        .map_err(|source| Error::Io { path: path.into(), source })
}
