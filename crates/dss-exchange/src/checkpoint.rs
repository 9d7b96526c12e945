//! A checkpoint in any container: named tensors, read one by one after their shapes have been checked.

use std::collections::BTreeMap;

use half::{bf16, f16};

use crate::error::{Error, Result};
use crate::settings::Settings;
use crate::torch::Storages;
use crate::{msgpack, safetensors_file, torch, zip};

/// The type of a tensor's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dtype {
    F64,
    F32,
    F16,
    Bf16,
    I64,
    I32,
    I16,
    I8,
    U8,
    Bool,
    Complex64,
    Complex128,
}

impl Dtype {
    /// Of a class such as `FloatStorage`.
    pub(crate) fn of_storage(class: &str) -> Option<Self> {
        Some(match class {
            "DoubleStorage" => Self::F64,
            "FloatStorage" => Self::F32,
            "HalfStorage" => Self::F16,
            "BFloat16Storage" => Self::Bf16,
            "LongStorage" => Self::I64,
            "IntStorage" => Self::I32,
            "ShortStorage" => Self::I16,
            "CharStorage" => Self::I8,
            "ByteStorage" => Self::U8,
            "BoolStorage" => Self::Bool,
            "ComplexFloatStorage" => Self::Complex64,
            "ComplexDoubleStorage" => Self::Complex128,
            _ => return None,
        })
    }

    /// Of a name such as `float32`.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        Some(match name {
            "float64" | "F64" => Self::F64,
            "float32" | "F32" => Self::F32,
            "float16" | "F16" => Self::F16,
            "bfloat16" | "BF16" => Self::Bf16,
            "int64" | "I64" => Self::I64,
            "int32" | "I32" => Self::I32,
            "int16" | "I16" => Self::I16,
            "int8" | "I8" => Self::I8,
            "uint8" | "U8" => Self::U8,
            "bool" | "BOOL" => Self::Bool,
            "complex64" | "C64" => Self::Complex64,
            "complex128" => Self::Complex128,
            _ => return None,
        })
    }

    /// Bytes of one.
    pub(crate) fn size(self) -> usize {
        match self {
            Self::I8 | Self::U8 | Self::Bool => 1,
            Self::F16 | Self::Bf16 | Self::I16 => 2,
            Self::F32 | Self::I32 => 4,
            Self::F64 | Self::I64 | Self::Complex64 => 8,
            Self::Complex128 => 16,
        }
    }
}

/// Where a tensor is, and what it looks like.
#[derive(Debug, Clone)]
pub(crate) struct Tensor {
    pub dtype: Dtype,
    pub shape: Vec<usize>,
    pub strides: Vec<usize>,
    /// Of its first number in the storage.
    pub offset: usize,
    /// Where the storage begins, in bytes, if it is a part of something larger.
    pub base: usize,
    /// The storage, and how many numbers it has.
    pub key: String,
    pub count: usize,
}

impl Tensor {
    /// One whose numbers are `held` bytes in the order of its axes, `base` bytes into the file.
    pub(crate) fn contiguous(dtype: Dtype, shape: Vec<usize>, base: usize, held: usize) -> Self {
        let mut strides = vec![1; shape.len()];
        for i in (1..strides.len()).rev() {
            strides[i - 1] = strides[i] * shape[i];
        }
        let (offset, key, count) = (0, String::new(), held / dtype.size());
        Self { dtype, shape, strides, offset, base, key, count }
    }
}

/// What a state dict has under a name.
#[derive(Debug, Clone)]
pub(crate) enum Entry {
    Tensor(Tensor),
    /// Something else, in words.
    Other(String),
}

enum Data<'a> {
    Torch(Storages<'a>),
    /// The bytes of all tensors.
    Plain(&'a [u8]),
}

/// A checkpoint in memory.
pub(crate) struct Checkpoint<'a> {
    entries: BTreeMap<String, Entry>,
    /// The configuration inside the file.
    pub settings: Option<Settings>,
    data: Data<'a>,
    big_endian: bool,
}

impl<'a> Checkpoint<'a> {
    /// Recognises the container.
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Self> {
        if bytes.is_empty() {
            return Err(Error::file("the file is empty"));
        }
        if zip::is_archive(bytes) {
            return torch::open_zip(bytes);
        }
        if torch::is_legacy(bytes) {
            return torch::open_legacy(bytes);
        }
        if safetensors_file::looks_like_it(bytes) {
            let (entries, data) = safetensors_file::open(bytes)?;
            return Ok(Self::plain(entries, data));
        }
        if msgpack::looks_like_it(bytes) {
            return Ok(Self::plain(msgpack::open(bytes)?, bytes));
        }
        Err(Error::file(
            "not a checkpoint that can be read: expected a file of torch.save (.pt, .pth, .ckpt), a safetensors \
             file, or one of flax (.msgpack)",
        ))
    }

    fn plain(entries: BTreeMap<String, Entry>, data: &'a [u8]) -> Self {
        let data = Data::Plain(data);
        Self { entries: renamed(entries), settings: None, data, big_endian: false }
    }

    pub(crate) fn new(
        entries: BTreeMap<String, Entry>,
        settings: Option<Settings>,
        storages: Storages<'a>,
        big_endian: bool,
    ) -> Self {
        Self { entries: renamed(entries), settings, data: Data::Torch(storages), big_endian }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Entry> {
        self.entries.get(name)
    }

    /// The numbers of a tensor in the order of its axes.
    pub(crate) fn numbers(&self, name: &str, tensor: &Tensor) -> Result<Vec<f64>> {
        let size = tensor.dtype.size();
        let damaged = |what: &str| Error::file(format!("the tensor {name} is damaged: {what}"));
        let bytes = match &self.data {
            Data::Torch(storages) => {
                let len = (tensor.count as u64).checked_mul(size as u64);
                let len = len.ok_or_else(|| damaged("its storage is too large"))?;
                storages.read(&tensor.key, len)?
            }
            Data::Plain(bytes) => (*bytes).into(),
        };
        let elements: usize = tensor.shape.iter().product();
        let mut numbers = Vec::with_capacity(elements);
        let mut index = vec![0; tensor.shape.len()];
        for _ in 0..elements {
            let steps = index.iter().zip(&tensor.strides).map(|(i, stride)| i * stride);
            let at = tensor.base + (tensor.offset + steps.sum::<usize>()) * size;
            let element = bytes.get(at..at + size).ok_or_else(|| damaged("it is too short"))?;
            numbers.push(self.number(tensor.dtype, element).ok_or_else(|| {
                damaged(&format!("its numbers are {:?}, but must be real", tensor.dtype))
            })?);
            for (i, &size) in index.iter_mut().zip(&tensor.shape).rev() {
                *i += 1;
                if *i < size {
                    break;
                }
                *i = 0;
            }
        }
        Ok(numbers)
    }

    fn number(&self, dtype: Dtype, element: &[u8]) -> Option<f64> {
        let mut bytes = [0; 8];
        let bytes = bytes.get_mut(..element.len())?;
        bytes.copy_from_slice(element);
        if self.big_endian {
            bytes.reverse();
        }
        let two = || bytes.first_chunk().copied();
        let four = || bytes.first_chunk().copied();
        let eight = || bytes.first_chunk().copied();
        Some(match dtype {
            Dtype::F64 => f64::from_le_bytes(eight()?),
            Dtype::F32 => f32::from_le_bytes(four()?).into(),
            Dtype::F16 => f16::from_le_bytes(two()?).into(),
            Dtype::Bf16 => bf16::from_le_bytes(two()?).into(),
            Dtype::I64 => i64::from_le_bytes(eight()?) as f64,
            Dtype::I32 => i32::from_le_bytes(four()?).into(),
            _ => return None,
        })
    }
}

/// Without what wrappers put in front of names: `module.` of data-parallel training, `params.` of flax's variables,
/// `_orig_mod.` of a compiled model.
fn renamed(entries: BTreeMap<String, Entry>) -> BTreeMap<String, Entry> {
    let around = |prefix: &&str| entries.keys().all(|name| name.starts_with(prefix));
    let wrapper = ["module.", "params."].into_iter().find(around).unwrap_or_default();
    let plain = |name: String| {
        let name = name.replace("_orig_mod.", "");
        name.strip_prefix(wrapper).map(ToOwned::to_owned).unwrap_or(name)
    };
    entries.into_iter().map(|(name, entry)| (plain(name), entry)).collect()
}
