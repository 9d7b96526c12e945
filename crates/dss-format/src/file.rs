//! Model files: one safetensors file with named arrays and, as JSON under the metadata key `dss`, everything that is
//! needed to build the model again, with a checksum over both ([`crate::checksum`]). Any safetensors library can read it, and reading never executes anything.

use std::collections::BTreeMap;
use std::path::Path;

use half::f16;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use crate::checksum;
use crate::error::{Error, Result};
use crate::meta::{CheckpointMeta, FORMAT};
use crate::tensors::TensorSpec;

/// The metadata key of the description.
const KEY: &str = "dss";

/// A model file in memory. Names, shapes and numbers are those of the model that the description describes.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelFile {
    meta: CheckpointMeta,
    arrays: BTreeMap<String, Array>,
}

/// Numbers with a shape.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// The sizes, slowest first.
    pub shape: Vec<usize>,
    /// The numbers.
    pub numbers: Numbers,
}

/// Numbers in one of two precisions.
#[derive(Debug, Clone, PartialEq)]
pub enum Numbers {
    /// Single precision; what a file holds in half precision is read as this.
    F32(Vec<f32>),
    /// Double precision.
    F64(Vec<f64>),
}

/// How the large tensors of a file are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// As they are.
    Full,
    /// Large weights rounded to 11 bits, which halves the file, and all others to f32. Λ and Δ, whose errors a long
    /// memory multiplies, stay f32.
    F16,
}

impl Numbers {
    /// How many.
    pub fn len(&self) -> usize {
        match self {
            Self::F32(numbers) => numbers.len(),
            Self::F64(numbers) => numbers.len(),
        }
    }

    /// Whether there are no tensors.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of them in single precision.
    pub fn into_f32(self) -> Vec<f32> {
        match self {
            Self::F32(numbers) => numbers,
            Self::F64(numbers) => numbers.into_iter().map(|x| x as f32).collect(),
        }
    }

    /// All of them in double precision, one by one.
    fn iter(&self) -> Box<dyn Iterator<Item = f64> + '_> {
        match self {
            Self::F32(numbers) => Box::new(numbers.iter().map(|&x| x.into())),
            Self::F64(numbers) => Box::new(numbers.iter().copied()),
        }
    }
}

impl ModelFile {
    /// The file of a model with these arrays.
    ///
    /// # Errors
    /// If they are not exactly those of the model that `meta` describes, or not finite.
    pub fn new(meta: CheckpointMeta, arrays: BTreeMap<String, Array>) -> Result<Self> {
        if meta.format != FORMAT {
            return Err(Error::file(format!("the format must be `{FORMAT}`")));
        }
        // Before anything of the promised size is made.
        let count =
            arrays.values().try_fold(0usize, |sum, array| sum.checked_add(array.numbers.len()));
        if meta.model.layers > arrays.len() || meta.model.tensor_elements(&meta.io) != count {
            let missing = first_missing(&meta, &arrays);
            return Err(Error::file(match missing {
                Some(what) => what,
                None => "the tensors are not those of the configuration in the metadata".to_owned(),
            }));
        }
        let specs = meta.model.tensors(&meta.io);
        for spec in &specs {
            check(spec, arrays.get(&spec.name))?;
        }
        if arrays.len() != specs.len() {
            let known = |name: &String| specs.iter().any(|spec| spec.name == *name);
            let name = arrays.keys().find(|name| !known(name)).map_or("", |name| name);
            let what = format!("it has a tensor {name} that its description lacks");
            return Err(Error::file(what));
        }
        Ok(Self { meta, arrays })
    }

    /// Reads the file at `path`.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        Self::from_bytes(&read(path.as_ref())?)
    }

    /// Takes a file apart. Memory stays within a small multiple of the bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let text = read_text(bytes)?;
        let mut meta = CheckpointMeta::from_json(&text)?;
        meta.extra.remove(checksum::KEY);
        let file = SafeTensors::deserialize(bytes).map_err(damaged)?;
        let mut arrays = BTreeMap::new();
        for (name, view) in file.iter() {
            let numbers = decode(&view).ok_or_else(|| {
                let kind = view.dtype();
                Error::file(format!("{name} is {kind:?}, but must be F32, F64 or F16"))
            })?;
            arrays.insert(name.to_owned(), Array { shape: view.shape().to_vec(), numbers });
        }
        let file_of_model = Self::new(meta, arrays)?;
        if !checksum::is_right(&text, file.iter().map(|(name, view)| (name, view.data()))) {
            return Err(Error::file("the file is damaged: its checksum is wrong"));
        }
        Ok(file_of_model)
    }

    /// What the file says about its model.
    pub fn meta(&self) -> &CheckpointMeta {
        &self.meta
    }

    /// Description and arrays.
    pub fn into_parts(self) -> (CheckpointMeta, BTreeMap<String, Array>) {
        (self.meta, self.arrays)
    }

    /// The arrays by name.
    pub fn arrays(&self) -> &BTreeMap<String, Array> {
        &self.arrays
    }

    /// The file's bytes. Equal descriptions and numbers give equal bytes.
    ///
    /// # Errors
    /// If a number is beyond the range of the precision.
    pub fn to_bytes(&self, precision: Precision) -> Result<Vec<u8>> {
        let mut data = Vec::new();
        for (spec, array) in self.specs_and_arrays() {
            let (dtype, bytes) = match precision {
                Precision::Full => encode(&array.numbers),
                Precision::F16 if spec.suits_half_precision() => {
                    (Dtype::F16, encode_f16(&spec, array)?)
                }
                Precision::F16 => encode(&Numbers::F32(array.numbers.clone().into_f32())),
            };
            data.push((spec.name, dtype, &array.shape, bytes));
        }
        let unwritable = |e| Error::file(format!("it cannot be written ({e})"));
        let mut views = Vec::new();
        for (name, dtype, shape, bytes) in &data {
            let view = TensorView::new(*dtype, shape.to_vec(), bytes).map_err(unwritable)?;
            views.push((name, view));
        }
        let mut meta = self.meta.clone();
        meta.extra.insert(checksum::KEY.into(), checksum::UNSIGNED.into());
        let text = serde_json::to_string(&meta).map_err(|e| Error::file(e.to_string()))?;
        let text = checksum::sign(&text, data.iter().map(|(name, .., bytes)| (&**name, &**bytes)));
        safetensors::serialize(views, Some([(KEY.to_owned(), text)].into())).map_err(unwritable)
    }

    /// The greatest change of a number by writing it in f16, relative to its tensor's largest, over all tensors.
    pub fn f16_error(&self) -> f64 {
        let large = self.specs_and_arrays().filter(|(spec, _)| spec.suits_half_precision());
        let errors = large.map(|(_, array)| {
            let numbers = array.numbers.clone().into_f32();
            let largest = numbers.iter().fold(0.0f32, |a, x| a.max(x.abs()));
            let error = |&x: &f32| (f16::from_f32(x).to_f32() - x).abs();
            let error = numbers.iter().map(error).fold(0.0f32, f32::max);
            f64::from(error) / f64::from(largest).max(f64::MIN_POSITIVE)
        });
        errors.fold(0.0, f64::max)
    }

    fn specs_and_arrays(&self) -> impl Iterator<Item = (TensorSpec, &Array)> {
        self.meta.model.tensors(&self.meta.io).into_iter().zip(self.arrays.values())
    }
}

impl CheckpointMeta {
    /// Reads only the description of the file at `path`.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let mut meta = Self::from_json(&read_text(&read(path.as_ref())?)?)?;
        meta.extra.remove(checksum::KEY);
        Ok(meta)
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|source| Error::Io { path: path.into(), source })
}

fn damaged(error: safetensors::SafeTensorError) -> Error {
    Error::file(format!("not a safetensors file, or a damaged one ({error})"))
}

/// The description.
fn read_text(bytes: &[u8]) -> Result<String> {
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(damaged)?;
    let text = header.metadata().as_ref().and_then(|all| all.get(KEY)).cloned();
    text.ok_or_else(|| {
        Error::file(format!("its metadata has no key `{KEY}`; `dss train` writes such files"))
    })
}

/// The first tensor of the model that is not among the arrays, or not in its shape.
fn first_missing(meta: &CheckpointMeta, arrays: &BTreeMap<String, Array>) -> Option<String> {
    // One layer more than there can be is enough to find it.
    let layers = meta.model.layers.min(arrays.len() + 1);
    let model = crate::ModelConfig { layers, ..meta.model.clone() };
    let specs = model.tensors(&meta.io);
    specs.iter().find_map(|spec| check(spec, arrays.get(&spec.name)).err().map(|e| e.to_string()))
}

fn check(spec: &TensorSpec, array: Option<&Array>) -> Result<()> {
    let Array { shape, numbers } = array.ok_or_else(|| spec.missing())?;
    spec.check(shape, numbers.iter())
}

fn decode(view: &TensorView) -> Option<Numbers> {
    fn read<const N: usize, T>(bytes: &[u8], number: impl Fn([u8; N]) -> T) -> Vec<T> {
        let chunks = bytes.chunks_exact(N);
        chunks.map(|x| number(x.try_into().expect("chunks of this size"))).collect()
    }
    let bytes = view.data();
    match view.dtype() {
        Dtype::F32 => Some(Numbers::F32(read(bytes, f32::from_le_bytes))),
        Dtype::F64 => Some(Numbers::F64(read(bytes, f64::from_le_bytes))),
        Dtype::F16 => Some(Numbers::F32(read(bytes, |x| f16::from_le_bytes(x).to_f32()))),
        _ => None,
    }
}

fn encode(numbers: &Numbers) -> (Dtype, Vec<u8>) {
    match numbers {
        Numbers::F32(numbers) => {
            (Dtype::F32, numbers.iter().flat_map(|x| x.to_le_bytes()).collect())
        }
        Numbers::F64(numbers) => {
            (Dtype::F64, numbers.iter().flat_map(|x| x.to_le_bytes()).collect())
        }
    }
}

fn encode_f16(spec: &TensorSpec, array: &Array) -> Result<Vec<u8>> {
    if let Some(x) = array.numbers.iter().find(|x| x.abs() >= 65520.0) {
        let what = format!("{} has the number {x}, beyond the range of f16", spec.name);
        return Err(Error::file(format!("{what}: write the file in f32")));
    }
    let numbers = array.numbers.clone().into_f32();
    Ok(numbers.iter().flat_map(|&x| f16::from_f32(x).to_le_bytes()).collect())
}
