//! safetensors files with others' names.

use std::collections::BTreeMap;

use safetensors::SafeTensors;

use crate::checkpoint::{Dtype, Entry, Tensor};
use crate::error::{Error, Result};

/// Whether the bytes begin with the length of a header and a header.
pub(crate) fn looks_like_it(bytes: &[u8]) -> bool {
    bytes.get(8) == Some(&b'{')
}

/// Whether the bytes are a model file of ours, which needs no import.
pub fn is_model_file(bytes: &[u8]) -> bool {
    let header = looks_like_it(bytes).then(|| SafeTensors::read_metadata(bytes).ok()).flatten();
    let metadata = header.and_then(|(_, header)| header.metadata().clone());
    metadata.is_some_and(|metadata| metadata.contains_key("dss"))
}

/// The tensors, and the bytes that their offsets count in.
pub(crate) fn open(bytes: &[u8]) -> Result<(BTreeMap<String, Entry>, &[u8])> {
    let damaged = |e| Error::file(format!("not a safetensors file, or a damaged one ({e})"));
    let (header, metadata) = SafeTensors::read_metadata(bytes).map_err(damaged)?;
    SafeTensors::deserialize(bytes).map_err(damaged)?;
    let data = bytes.get(8 + header..).unwrap_or_default();
    let mut entries = BTreeMap::new();
    for (name, info) in metadata.tensors() {
        let dtype = Dtype::of_name(&format!("{:?}", info.dtype));
        let Some(dtype) = dtype else {
            entries.insert(name, Entry::Other(format!("a tensor of type {:?}", info.dtype)));
            continue;
        };
        let (start, end) = info.data_offsets;
        let tensor = Tensor::contiguous(dtype, info.shape.clone(), start, end - start);
        entries.insert(name, Entry::Tensor(tensor));
    }
    Ok((entries, data))
}
