//! Model files: safetensors with a description in the metadata, in f32, f64 or f16.

use std::collections::BTreeMap;
use std::path::Path;

use dss_format::checksum;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use crate::config::Meta;
use crate::error::{Error, Result};
use crate::half;

/// The key of the description.
const KEY: &str = "dss";

/// A model file in memory: names, shapes and numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelFile {
    /// The description as it stands in the file.
    text: String,
    meta: Meta,
    pub(crate) tensors: BTreeMap<String, Tensor>,
}

/// Numbers with a shape.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tensor {
    pub shape: Vec<usize>,
    pub values: Vec<f32>,
}

/// How the large tensors of a file are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// As they are.
    F32,
    /// Rounded to 11 bits, which halves the file. Λ and Δ, whose errors a long memory multiplies, and what is small
    /// stay f32.
    F16,
}

impl ModelFile {
    /// Reads the file at `path`.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes =
            std::fs::read(path).map_err(|source| Error::Io { path: path.into(), source })?;
        Self::from_bytes(&bytes)
    }

    /// Takes a file apart. Memory stays within a small multiple of the bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let damaged = |e| Error::file(format!("not a safetensors file, or a damaged one ({e})"));
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(damaged)?;
        let text = header.metadata().as_ref().and_then(|all| all.get(KEY)).ok_or_else(|| {
            Error::file(format!("its metadata has no key `{KEY}`; `dss train` writes such files"))
        })?;
        let meta = Meta::from_text(text)?;
        let file = SafeTensors::deserialize(bytes).map_err(damaged)?;
        let mut tensors = BTreeMap::new();
        for (name, view) in file.iter() {
            let values = numbers(&view).ok_or_else(|| {
                let kind = view.dtype();
                Error::file(format!("{name} is {kind:?}, and must be F32, F64 or F16"))
            })?;
            if let Some(at) = values.iter().position(|x| !x.is_finite()) {
                return Err(Error::file(format!("{name} has the number {} at {at}", values[at])));
            }
            tensors.insert(name.to_string(), Tensor { shape: view.shape().to_vec(), values });
        }
        if !checksum::is_right(text, file.iter().map(|(name, view)| (name, view.data()))) {
            return Err(Error::file("the file is damaged: its checksum is wrong"));
        }
        Ok(Self { text: text.clone(), meta, tensors })
    }

    /// What the file says about its model.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The file's bytes, in the given precision; reading and writing in f32 gives the same numbers.
    ///
    /// # Errors
    /// If a number is beyond the range of f16, ±65504.
    pub fn to_bytes(&self, precision: Precision) -> Result<Vec<u8>> {
        let mut data = Vec::new();
        for (name, tensor) in &self.tensors {
            let Tensor { shape, values } = tensor;
            if precision == Precision::F16 && is_large(name, shape) {
                if let Some(x) = values.iter().find(|x| x.abs() >= 65520.0) {
                    let what = format!("{name} has the number {x}, beyond the range of f16");
                    return Err(Error::input(format!("{what}: write the file in f32")));
                }
                let bytes = values.iter().flat_map(|&x| half::from_f32(x).to_le_bytes());
                data.push((name, Dtype::F16, shape, bytes.collect::<Vec<u8>>()));
            } else {
                let bytes = values.iter().flat_map(|x| x.to_le_bytes());
                data.push((name, Dtype::F32, shape, bytes.collect()));
            }
        }
        let wrong = |e| Error::file(format!("it cannot be written ({e})"));
        let mut views = Vec::new();
        for (name, dtype, shape, bytes) in &data {
            let view = TensorView::new(*dtype, shape.to_vec(), bytes).map_err(wrong)?;
            views.push((name, view));
        }
        let parts = data.iter().map(|(name, _, _, bytes)| (name.as_str(), &bytes[..]));
        let text = checksum::sign(&self.text, parts);
        safetensors::serialize(views, Some([(KEY.to_string(), text)].into())).map_err(wrong)
    }

    /// The greatest change of a number by writing it in f16, in parts of its tensor's largest, over all tensors.
    pub fn f16_error(&self) -> f64 {
        let large = self.tensors.iter().filter(|(name, t)| is_large(name, &t.shape));
        let errors = large.map(|(_, tensor)| {
            let largest = tensor.values.iter().fold(0.0f32, |a, x| a.max(x.abs()));
            let error = |&x: &f32| (half::to_f32(half::from_f32(x)) - x).abs();
            let error = tensor.values.iter().map(error).fold(0.0f32, f32::max);
            f64::from(error) / f64::from(largest).max(f64::MIN_POSITIVE)
        });
        errors.fold(0.0, f64::max)
    }
}

/// Weights that half precision is for.
fn is_large(name: &str, shape: &[usize]) -> bool {
    let part = name.rsplit('.').next().unwrap_or(name);
    matches!(part, "weight" | "w" | "c") && shape.iter().product::<usize>() >= 256
}

fn numbers(view: &TensorView) -> Option<Vec<f32>> {
    fn read<const N: usize>(bytes: &[u8], number: impl Fn([u8; N]) -> f32) -> Vec<f32> {
        let chunks = bytes.chunks_exact(N);
        chunks.map(|x| number(x.try_into().expect("chunks of this size"))).collect()
    }
    let bytes = view.data();
    match view.dtype() {
        Dtype::F32 => Some(read(bytes, f32::from_le_bytes)),
        Dtype::F64 => Some(read(bytes, |x| f64::from_le_bytes(x) as f32)),
        Dtype::F16 => Some(read(bytes, |x| half::to_f32(u16::from_le_bytes(x)))),
        _ => None,
    }
}
