//! Checkpoints: one safetensors file with the tensors of [`crate::named`] and, as text, everything that is needed to
//! build the model again. Any safetensors library can read it, and reading never executes anything.
//!
//! The text stands in the metadata under the key `dss`, as a JSON object with the fields of [`CheckpointMeta`]. Equal
//! models and texts give equal files, bit for bit. A checksum over text and tensors ([`dss_format::checksum`]) shows
//! whether a file is as it was written.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use burn::tensor::{DType, Device, FloatDType, TensorData};
use dss_format::checksum;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde::{Deserialize, Serialize};

use crate::config::{Io, ModelConfig};
use crate::error::{Error, Result};
use crate::model::Model;

/// The format this crate writes, and the only one it reads.
pub const FORMAT: &str = "dss-1";

/// The key of the metadata.
const KEY: &str = "dss";

/// What a checkpoint says about its model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckpointMeta {
    /// [`FORMAT`].
    pub format: String,
    /// The model.
    pub model: ModelConfig,
    /// Its two ends and its training length.
    pub io: Io,
    /// The task's settings; null if there is none.
    pub task: serde_json::Value,
    /// Names of the classes; empty if there are none.
    pub labels: Vec<String>,
    /// Which data it was trained on.
    pub split_hash: String,
    /// The seed of the run.
    pub seed: u64,
    /// Optimiser steps taken.
    pub step: u64,
    /// Anything else.
    pub extra: BTreeMap<String, String>,
}

impl CheckpointMeta {
    /// Of a model without a task.
    pub fn new(model: &Model) -> Self {
        Self {
            format: FORMAT.into(),
            model: model.config().clone(),
            io: *model.io(),
            task: serde_json::Value::Null,
            labels: Vec::new(),
            split_hash: String::new(),
            seed: 0,
            step: 0,
            extra: BTreeMap::new(),
        }
    }

    fn from_text(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Format {
            format: String,
        }
        let invalid = |e: serde_json::Error| format!("the metadata `{KEY}` is not valid: {e}");
        let Format { format } = serde_json::from_str(text).map_err(invalid)?;
        if format != FORMAT {
            return Err(format!(
                "the format is `{format}`, but this version reads `{FORMAT}` only"
            ));
        }
        let mut meta: Self = serde_json::from_str(text).map_err(invalid)?;
        // It is of the file, not of the model.
        meta.extra.remove(checksum::KEY);
        Ok(meta)
    }
}

/// Writes a checkpoint; `path` then has the whole of it, or is as before if there was an error.
pub fn save(path: impl AsRef<Path>, model: &Model, meta: &CheckpointMeta) -> Result<()> {
    if meta.format != FORMAT {
        return Err(Error::invalid("save", format!("the format must be `{FORMAT}`")));
    }
    if (&meta.model, &meta.io) != (model.config(), model.io()) {
        return Err(Error::invalid("save", "the metadata are of another model than the tensors"));
    }
    let tensors = model.named_tensors();
    let mut views = Vec::new();
    for (name, data) in &tensors {
        let dtype = match data.dtype() {
            DType::F32 => Dtype::F32,
            DType::F64 => Dtype::F64,
            other => {
                let what = format!("{name} is {other:?}; cast the model to f32 or f64 first");
                return Err(Error::invalid("save", what));
            }
        };
        let view = TensorView::new(dtype, data.shape().as_slice().to_vec(), data.as_bytes());
        views.push((name, view.map_err(|e| Error::invalid("save", format!("{name}: {e}")))?));
    }
    let mut meta = meta.clone();
    meta.extra.insert(checksum::KEY.into(), checksum::UNSIGNED.into());
    let text = serde_json::to_string(&meta).map_err(|e| Error::invalid("save", e.to_string()))?;
    let text = checksum::sign(&text, tensors.iter().map(|(name, data)| (&**name, data.as_bytes())));
    let bytes = safetensors::serialize(views, Some([(KEY.to_string(), text)].into()))
        .map_err(|e| Error::invalid("save", e.to_string()))?;
    write_whole(path.as_ref(), &bytes)
}

/// Reads a checkpoint. Names, shapes and numbers are checked.
pub fn load(path: impl AsRef<Path>, device: &Device) -> Result<(Model, CheckpointMeta)> {
    let path = path.as_ref();
    let bytes = std::fs::read(path).map_err(|source| Error::Io { path: path.into(), source })?;
    parse(&bytes, device).map_err(|what| Error::Checkpoint { path: path.into(), what })
}

/// Reads what a checkpoint says about its model, and not the tensors.
pub fn load_meta(path: impl AsRef<Path>) -> Result<CheckpointMeta> {
    let path = path.as_ref();
    let bytes = std::fs::read(path).map_err(|source| Error::Io { path: path.into(), source })?;
    read_text(&bytes)
        .and_then(|text| CheckpointMeta::from_text(&text))
        .map_err(|what| Error::Checkpoint { path: path.into(), what })
}

fn read_text(bytes: &[u8]) -> Result<String, String> {
    let (_, header) = SafeTensors::read_metadata(bytes)
        .map_err(|e| format!("this is not a safetensors file, or it is damaged: {e}"))?;
    let text = header.metadata().as_ref().and_then(|all| all.get(KEY)).cloned();
    text.ok_or_else(|| {
        format!("the metadata has no key `{KEY}`: this is not a checkpoint of a DSS model")
    })
}

fn parse(bytes: &[u8], device: &Device) -> Result<(Model, CheckpointMeta), String> {
    let text = read_text(bytes)?;
    let meta = CheckpointMeta::from_text(&text)?;
    let file = SafeTensors::deserialize(bytes).map_err(|e| format!("the file is damaged: {e}"))?;
    let mut tensors = BTreeMap::new();
    let mut total = 0;
    let mut float = FloatDType::F32;
    let mut views: Vec<_> = file.iter().collect();
    views.sort_unstable_by_key(|(name, _)| *name);
    for (name, view) in views {
        let shape = view.shape().to_vec();
        let data = match view.dtype() {
            Dtype::F32 => TensorData::new(numbers(view.data(), f32::from_le_bytes), shape),
            Dtype::F64 => {
                float = FloatDType::F64;
                TensorData::new(numbers(view.data(), f64::from_le_bytes), shape)
            }
            Dtype::F16 => {
                return Err("it holds half-precision numbers (F16); `dss export FILE --to OTHER` makes it F32".into());
            }
            other => return Err(format!("{name} is {other:?}, but must be F32 or F64")),
        };
        total += data.num_elements();
        tensors.insert(name.to_string(), data);
    }
    // Before anything of the promised size is made.
    if meta.model.tensor_elements(&meta.io) != Some(total) {
        return Err("the tensors are not those of the configuration in the metadata".into());
    }
    let model = meta.model.init_uncorrected(&meta.io, 0, device).map_err(|e| e.to_string())?;
    let model = model.cast(float).load_named(tensors).map_err(|e| e.to_string())?;
    if !checksum::is_right(&text, file.iter().map(|(name, view)| (name, view.data()))) {
        return Err("the file is damaged: its checksum is wrong".into());
    }
    Ok((model, meta))
}

fn numbers<T, const SIZE: usize>(bytes: &[u8], read: fn([u8; SIZE]) -> T) -> Vec<T> {
    let number = |bytes: &[u8]| read(bytes.try_into().expect("chunks of this size"));
    bytes.chunks_exact(SIZE).map(number).collect()
}

/// Writes a file so that at every moment either the old or the new one is there, whole.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let io_error = |source| Error::Io { path: path.into(), source };
    let name = path.file_name().ok_or_else(|| {
        Error::invalid("write", format!("{} does not name a file", path.display()))
    })?;
    let mut temporary = name.to_os_string();
    temporary.push(format!(".tmp{}", std::process::id()));
    let temporary = path.with_file_name(temporary);
    let write = || {
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&temporary, path)?;
        // The new name must reach the disk too.
        #[cfg(unix)]
        if let Some(directory) = path.parent() {
            let directory =
                if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
            File::open(directory)?.sync_all()?;
        }
        Ok(())
    };
    write().map_err(|error| {
        // Nothing half-written stays behind; that it may fail too changes nothing.
        let _ = std::fs::remove_file(&temporary);
        io_error(error)
    })
}
