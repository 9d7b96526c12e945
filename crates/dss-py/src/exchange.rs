//! Checkpoints of other programs.

use std::path::PathBuf;

use dss_exchange::{DeltaTransform, ImportOptions, Nearby, Pooling, Settings};
use dss_format::Precision;
use dss_format::mixer::{Discretisation, Variant};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::value_error;

/// The value that a name stands for.
fn chosen<T: Copy>(key: &str, name: Option<&str>, known: &[(&str, T)]) -> PyResult<Option<T>> {
    let Some(name) = name else { return Ok(None) };
    match known.iter().find(|(known, _)| *known == name) {
        Some((_, value)) => Ok(Some(*value)),
        None => {
            let known: Vec<&str> = known.iter().map(|(known, _)| *known).collect();
            Err(value_error(format!("{key} must be one of {known:?}, but is {name:?}")))
        }
    }
}

/// A model file of ours from the bytes of the checkpoint at `path`, and what was assumed about it, a sentence each.
/// `config` is the text of a YAML file; without it, one is looked for near the checkpoint.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "all that tensors do not say")]
#[pyo3(signature = (data, path, config, len, variant, pool, kernel_len, prenorm, discretisation, dt))]
pub fn import_checkpoint<'py>(
    py: Python<'py>,
    data: &[u8],
    path: PathBuf,
    config: Option<&str>,
    len: Option<usize>,
    variant: Option<&str>,
    pool: Option<&str>,
    kernel_len: Option<usize>,
    prenorm: Option<bool>,
    discretisation: Option<&str>,
    dt: Option<&str>,
) -> PyResult<(Bound<'py, PyBytes>, Vec<String>)> {
    let variants = [
        ("softmax", Variant::Softmax),
        ("exp", Variant::Exp),
        ("exp-no-scale", Variant::ExpNoScale),
    ];
    let pools = [("mean", Pooling::Mean), ("last", Pooling::Last), ("none", Pooling::None)];
    let rules = [("zoh", Discretisation::Zoh), ("bilinear", Discretisation::Bilinear)];
    let transforms = [("exp", DeltaTransform::Exp), ("softplus", DeltaTransform::Softplus)];
    if dss_exchange::is_model_file(data) {
        return Err(value_error("this is a model file of dss: read it with diagonal_ssm.load"));
    }
    let settings = config
        .map(Settings::from_yaml)
        .transpose()
        .map_err(|error| value_error(format!("its configuration: {error}")))?;
    let options = ImportOptions {
        nearby: if settings.is_none() { Nearby::find(&path) } else { None },
        settings,
        len,
        variant: chosen("variant", variant, &variants)?,
        pooling: chosen("pool", pool, &pools)?,
        kernel_len,
        prenorm,
        discretisation: chosen("discretisation", discretisation, &rules)?,
        delta: chosen("dt", dt, &transforms)?,
    };
    let (bytes, notes) = py.detach(|| -> PyResult<_> {
        let imported = dss_exchange::import(data, &options).map_err(value_error)?;
        Ok((imported.file.to_bytes(Precision::Full).map_err(value_error)?, imported.notes))
    })?;
    Ok((PyBytes::new(py, &bytes), notes))
}
