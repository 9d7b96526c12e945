//! `last/carry.safetensors`: what the streams of a training left behind, `layers.{i}` `[B, H, N, 2]`.

use std::path::Path;

use burn::tensor::{DType, TensorData};
use dss_nn::{Carry, Model};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use crate::error::{Error, Result};
use crate::run_dir::atomic;

/// Name of the file.
pub(super) const FILE: &str = "carry.safetensors";

/// Writes it; [`load`] gives it back bit for bit.
pub(super) fn save(path: &Path, carry: &Carry) -> Result<()> {
    let layers = carry.to_data();
    let mut views = Vec::new();
    for (i, data) in layers.iter().enumerate() {
        let shape = data.shape().as_slice().to_vec();
        let view = TensorView::new(Dtype::F32, shape, data.as_bytes());
        views.push((format!("layers.{i}"), view.map_err(|error| damaged(path, &error))?));
    }
    let bytes = safetensors::serialize(views, None).map_err(|error| damaged(path, &error))?;
    atomic::write_file(path, &bytes)
}

/// Reads it.
pub(super) fn load(path: &Path, model: &Model, batch: usize) -> Result<Carry> {
    let bytes = std::fs::read(path).map_err(Error::io("cannot read", path))?;
    let file = SafeTensors::deserialize(&bytes).map_err(|error| damaged(path, &error))?;
    let read = |i: usize| {
        let view = file.tensor(&format!("layers.{i}")).map_err(|error| damaged(path, &error))?;
        if view.dtype() != Dtype::F32 {
            return Err(damaged(path, &"a tensor is not F32"));
        }
        Ok(TensorData::from_bytes_vec(view.data().to_vec(), view.shape().to_vec(), DType::F32))
    };
    let layers = (0..model.layers.len()).map(read).collect::<Result<Vec<_>>>()?;
    let carry = Carry::new(model, batch)?;
    carry.with_data(layers).map_err(|error| damaged(path, &error))
}

fn damaged(path: &Path, what: &dyn std::fmt::Display) -> Error {
    Error::Damaged { path: path.into(), what: what.to_string() }
}
