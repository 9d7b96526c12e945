//! What `torch.save` writes: a pickle whose tensors name storages, which are entries of a ZIP archive or, before torch
//! 1.6, follow the pickle.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::checkpoint::{Checkpoint, Dtype, Entry, Tensor};
use crate::error::{Error, Result};
use crate::pickle::{self, Pickle, Value};
use crate::settings::Settings;
use crate::zip::Archive;

/// The number that the older container begins with, as a pickled integer.
const MAGIC: &[u8] = b"\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.";
/// The longest pickle that is read.
const MAX_PICKLE: usize = 1 << 26;
/// Where a program may keep the state dict in a larger dictionary, the most usual first.
const NESTED: [&str; 5] = ["state_dict", "model_state_dict", "model", "net", "module"];
/// A tensor that repeats its storage may have this many numbers.
const MAX_EXPANDED: usize = 1 << 20;

/// Where the numbers are.
pub(crate) enum Storages<'a> {
    Zip {
        archive: Archive<'a>,
        folder: String,
        /// The last that was read: tensors often share one.
        last: RefCell<Option<(String, Rc<[u8]>)>>,
    },
    Legacy {
        bytes: &'a [u8],
        places: BTreeMap<String, (usize, usize)>,
    },
}

/// Whether it is the container of torch before 1.6.
pub(crate) fn is_legacy(bytes: &[u8]) -> bool {
    let rest = if bytes.starts_with(&[0x80]) { bytes.get(2..) } else { Some(bytes) };
    rest.is_some_and(|rest| rest.starts_with(MAGIC))
}

/// A ZIP archive of `torch.save`.
pub(crate) fn open_zip(bytes: &[u8]) -> Result<Checkpoint<'_>> {
    let archive = Archive::open(bytes)?;
    let pickles = archive.names().filter_map(|name| name.strip_suffix("/data.pkl"));
    let folders: Vec<String> = pickles.map(str::to_owned).collect();
    let Ok([folder]) = <[String; 1]>::try_from(folders) else {
        return Err(Error::file(
            "it is a ZIP archive, but not of torch.save: it must have one entry data.pkl in one folder",
        ));
    };
    if archive.contains(&format!("{folder}/constants.pkl")) {
        return Err(Error::file(
            "it is a TorchScript archive, a program and not a checkpoint: save model.state_dict() instead",
        ));
    }
    let order = format!("{folder}/byteorder");
    let big_endian = match archive.contains(&order) {
        true => match &*archive.read(&order, None)? {
            b"little" => false,
            b"big" => true,
            _ => return Err(Error::file("its byteorder is neither little nor big")),
        },
        false => false,
    };
    let data = archive.read(&format!("{folder}/data.pkl"), None)?;
    if data.len() > MAX_PICKLE {
        return Err(Error::file(format!("its pickle has {} bytes, too many", data.len())));
    }
    let (pickle, _) = pickle::read(&data, 0)?;
    let (tensors, settings) = read_root(&pickle)?;
    let storages = Storages::Zip { archive, folder, last: RefCell::default() };
    Ok(Checkpoint::new(tensors, settings, storages, big_endian))
}

/// The container before torch 1.6: magic number, protocol, system, object, names of storages, their numbers.
pub(crate) fn open_legacy(bytes: &[u8]) -> Result<Checkpoint<'_>> {
    let (_, at) = pickle::read(bytes, 0)?;
    let (protocol, at) = pickle::read(bytes, at)?;
    if protocol.root() != Value::Int(1001) {
        return Err(Error::file("its container has an unknown version"));
    }
    let (system, at) = pickle::read(bytes, at)?;
    let big_endian = system.get(system.root(), "little_endian") == Some(Value::Bool(false));
    let (pickle, at) = pickle::read(bytes, at)?;
    if at > MAX_PICKLE {
        return Err(Error::file("its pickle is too long"));
    }
    let (tensors, settings) = read_root(&pickle)?;
    let (keys, mut at) = pickle::read(bytes, at)?;
    let short = || Error::file("it is cut off: its storages are missing");
    let keys_of = keys.items(keys.root()).ok_or_else(|| Error::file("it names no storages"))?;
    // The size of an element is said by the tensors alone.
    let sizes = storage_sizes(&pickle);
    let mut places = BTreeMap::new();
    for key in keys_of {
        let key = keys.text(*key).ok_or_else(|| Error::file("a storage has no name"))?;
        let count = bytes.get(at..at + 8).ok_or_else(short)?.try_into().expect("eight bytes");
        let count = if big_endian { i64::from_be_bytes(count) } else { i64::from_le_bytes(count) };
        let size = *sizes.get(key).ok_or_else(|| Error::file("a storage belongs to no tensor"))?;
        let len = usize::try_from(count).ok().and_then(|count| count.checked_mul(size));
        let end = len.and_then(|len| len.checked_add(at + 8)).filter(|end| *end <= bytes.len());
        let end = end.ok_or_else(short)?;
        places.insert(key.to_owned(), (at + 8, end));
        at = end;
    }
    Ok(Checkpoint::new(tensors, settings, Storages::Legacy { bytes, places }, big_endian))
}

impl Storages<'_> {
    /// The bytes of a storage, which must be `len`.
    pub(crate) fn read(&self, key: &str, len: u64) -> Result<Cow<'_, [u8]>> {
        match self {
            Self::Zip { archive, folder, last } => {
                let name = format!("{folder}/data/{key}");
                let cached =
                    last.borrow().as_ref().filter(|(k, _)| k == key).map(|(_, b)| b.clone());
                if let Some(bytes) = cached.filter(|bytes| bytes.len() as u64 == len) {
                    return Ok(Cow::Owned(bytes.to_vec()));
                }
                let bytes = archive.read(&name, Some(len))?;
                if let Cow::Owned(bytes) = &bytes {
                    *last.borrow_mut() = Some((key.to_owned(), bytes.as_slice().into()));
                }
                Ok(bytes)
            }
            Self::Legacy { bytes, places } => {
                let place = places.get(key);
                let &(start, end) = place.ok_or_else(|| {
                    Error::file(format!("it is damaged: the storage {key} is missing"))
                })?;
                if (end - start) as u64 != len {
                    let found = end - start;
                    return Err(Error::file(format!(
                        "it is damaged: the storage {key} has {found} bytes, but {len} were announced"
                    )));
                }
                Ok(Cow::Borrowed(&bytes[start..end]))
            }
        }
    }
}

/// Bytes per element of each storage that the pickle names.
fn storage_sizes(pickle: &Pickle<'_>) -> BTreeMap<String, usize> {
    let ids = pickle.persistent_ids();
    let storages = ids.filter_map(|id| storage(pickle, id).ok());
    storages.map(|storage| (storage.key, storage.dtype.size())).collect()
}

/// The tensors of the state dict, and the configuration beside it if there is one.
fn read_root(pickle: &Pickle<'_>) -> Result<(BTreeMap<String, Entry>, Option<Settings>)> {
    let root = pickle.root();
    let dict = match root {
        Value::Dict(_) => root,
        Value::Call(_) => {
            let what = pickle.describe(root);
            return Err(Error::file(format!(
                "it holds {what}, not a dictionary of tensors: a whole model cannot be read without running its code; \
                 save model.state_dict() instead"
            )));
        }
        _ => {
            let what = pickle.describe(root);
            return Err(Error::file(format!("it holds {what}, not a dictionary of tensors")));
        }
    };
    let nested = NESTED
        .iter()
        .find_map(|key| pickle.get(dict, key).filter(|value| matches!(value, Value::Dict(_))));
    let tensors = read_tensors(pickle, nested.unwrap_or(dict))?;
    let settings =
        pickle.get(dict, "hyper_parameters").and_then(|value| Settings::from_pickle(pickle, value));
    Ok((tensors, settings))
}

fn read_tensors(pickle: &Pickle<'_>, dict: Value) -> Result<BTreeMap<String, Entry>> {
    let mut all = BTreeMap::new();
    for &(key, value) in pickle.pairs(dict).unwrap_or_default() {
        let name = pickle.text(key).filter(|name| !name.is_empty()).ok_or_else(|| {
            Error::file("its state dict has an entry whose name is not a string of letters")
        })?;
        let entry = match tensor(pickle, value) {
            Some(tensor) => Entry::Tensor(
                tensor
                    .map_err(|what| Error::file(format!("the tensor {name} is damaged: {what}")))?,
            ),
            None => Entry::Other(pickle.describe(value)),
        };
        all.insert(name.to_owned(), entry);
    }
    Ok(all)
}

/// A value as a tensor, if it is meant as one.
fn tensor(pickle: &Pickle<'_>, value: Value) -> Option<Result<Tensor, String>> {
    let ((module, name), args) = pickle.call(value)?;
    match (module, name) {
        ("torch._utils", "_rebuild_parameter" | "_rebuild_parameter_with_state") => {
            // One of a parameter is none.
            let data = *args.first()?;
            let ((_, inner), _) = pickle.call(data)?;
            if inner.starts_with("_rebuild_parameter") { None } else { tensor(pickle, data) }
        }
        ("torch._utils", "_rebuild_tensor" | "_rebuild_tensor_v2" | "_rebuild_tensor_v3") => {
            Some(strided(pickle, args))
        }
        _ => None,
    }
}

struct Storage {
    key: String,
    dtype: Dtype,
    count: usize,
}

/// `('storage', type, key, location, count)`
fn storage(pickle: &Pickle<'_>, id: Value) -> Result<Storage, String> {
    let parts = pickle.items(id).unwrap_or_default();
    let [kind, class, key, _, count, ..] = parts else {
        return Err("its storage is not described".into());
    };
    if pickle.text(*kind) != Some("storage") {
        return Err("its storage is not described".into());
    }
    let (module, class) = pickle.global(*class).ok_or("its storage has no type")?;
    let dtype = (module == "torch").then(|| Dtype::of_storage(class)).flatten();
    let untyped = ("torch.storage", "UntypedStorage");
    let dtype = dtype.or(((module, class) == untyped).then_some(Dtype::U8));
    let dtype = dtype.ok_or_else(|| format!("its storage type {module}.{class} is unknown"))?;
    let key = pickle.text(*key).ok_or("its storage has no name")?.to_owned();
    Ok(Storage { key, dtype, count: natural(*count).ok_or("its storage has no size")? })
}

fn natural(value: Value) -> Option<usize> {
    match value {
        Value::Int(value) => usize::try_from(value).ok(),
        _ => None,
    }
}

/// `(storage, offset, sizes, strides, ..)`; in the third version with a type at the end.
fn strided(pickle: &Pickle<'_>, args: &[Value]) -> Result<Tensor, String> {
    let [id, offset, sizes, strides, rest @ ..] = args else {
        return Err("it is not described".into());
    };
    let id = pickle.persistent(*id).ok_or("it has no storage")?;
    let Storage { key, mut dtype, mut count } = storage(pickle, id)?;
    let typed = rest.iter().find_map(|value| match pickle.global(*value) {
        Some(("torch", name)) => Dtype::of_name(name),
        _ => None,
    });
    if let Some(typed) = typed {
        count /= typed.size() / dtype.size().min(typed.size());
        dtype = typed;
    }
    let numbers = |value: Value| -> Option<Vec<usize>> {
        pickle.items(value)?.iter().map(|x| natural(*x)).collect()
    };
    let shape = numbers(*sizes).ok_or("its sizes are not natural numbers")?;
    let strides = numbers(*strides).ok_or("its strides are not natural numbers")?;
    let offset = natural(*offset).ok_or("its offset is not a natural number")?;
    if shape.len() != strides.len() || shape.len() > 8 {
        return Err(format!("it has {} sizes and {} strides", shape.len(), strides.len()));
    }
    let elements = shape.iter().try_fold(1usize, |a, &b| a.checked_mul(b));
    let last = shape.iter().zip(&strides).try_fold(offset, |last, (&size, &stride)| {
        last.checked_add(size.saturating_sub(1).checked_mul(stride)?)
    });
    let inside = last.is_some_and(|last| last < count);
    match elements {
        Some(0) => {}
        Some(_) if !inside => return Err(format!("it goes beyond its storage of {count} numbers")),
        Some(elements) if elements > count.max(MAX_EXPANDED) => {
            return Err(format!("it repeats a storage of {count} numbers to {elements}"));
        }
        Some(_) => {}
        None => return Err("it has more numbers than can be counted".into()),
    }
    Ok(Tensor { dtype, shape, strides, offset, base: 0, key, count })
}
