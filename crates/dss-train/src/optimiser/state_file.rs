//! The optimiser's state as a safetensors file: `m.NAME` and `v.NAME` of every parameter, and the number of steps.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use burn::tensor::{DType, Device, Tensor, TensorData};
use dss_nn::Parameter;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use super::Depth;
use super::adamw::{AdamW, Moments};
use crate::error::{Error, Result};
use crate::run_dir::atomic;

/// The one metadata key.
const STEPS: &str = "steps";

impl AdamW {
    /// Writes the state; [`AdamW::load`] gives it back bit for bit.
    pub fn save(&self, path: &Path) -> Result<()> {
        let mut tensors: BTreeMap<String, TensorData> = BTreeMap::new();
        for (name, moments) in &self.moments {
            tensors.insert(format!("m.{name}"), moments.m.to_data());
            tensors.insert(format!("v.{name}"), moments.v.to_data());
        }
        let damaged = |error: &dyn std::fmt::Display| damaged(path, error);
        let views = tensors
            .iter()
            .map(|(name, data)| {
                let dtype = if data.dtype() == DType::F64 { Dtype::F64 } else { Dtype::F32 };
                let view = TensorView::new(dtype, vec![data.num_elements()], data.as_bytes());
                Ok((name.as_str(), view.map_err(|error| damaged(&error))?))
            })
            .collect::<Result<Vec<_>>>()?;
        let metadata = HashMap::from([(STEPS.to_owned(), self.step.to_string())]);
        let bytes =
            safetensors::serialize(views, Some(metadata)).map_err(|error| damaged(&error))?;
        atomic::write_file(path, &bytes)
    }

    /// Reads a state.
    pub fn load(path: &Path, device: &Device) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(Error::io("cannot read", path))?;
        let damaged = |error: &dyn std::fmt::Display| damaged(path, error);
        let file = SafeTensors::deserialize(&bytes).map_err(|error| damaged(&error))?;
        let (_, header) = SafeTensors::read_metadata(&bytes).map_err(|error| damaged(&error))?;
        let steps = header.metadata().as_ref().and_then(|map| map.get(STEPS)?.parse().ok());
        let step = steps.ok_or_else(|| damaged(&"it does not say how many steps were taken"))?;

        let read = |name: &str| -> Result<Tensor<1>> {
            let view = file.tensor(name).map_err(|error| damaged(&error))?;
            let dtype = match view.dtype() {
                Dtype::F32 => DType::F32,
                Dtype::F64 => DType::F64,
                other => return Err(damaged(&format!("`{name}` is {other:?}, not F32 or F64"))),
            };
            let length = view.shape().iter().product::<usize>();
            let data = TensorData::from_bytes_vec(view.data().to_vec(), [length], dtype);
            Ok(Tensor::from_data(data, (device, dtype)).inner())
        };
        let mut moments = BTreeMap::new();
        for name in file.names() {
            if let Some(parameter) = name.strip_prefix("m.") {
                let pair = Moments { m: read(name)?, v: read(&format!("v.{parameter}"))? };
                if pair.m.dims() != pair.v.dims() {
                    return Err(damaged(&format!("m and v of `{parameter}` differ in size")));
                }
                moments.insert(parameter.to_owned(), pair);
            }
        }
        Ok(Self { step, moments, depth: Depth::default() })
    }

    /// Whether the state belongs to these parameters; says what does not fit.
    pub fn check(&self, path: &Path, parameters: &[Parameter]) -> Result<()> {
        let sizes: HashMap<&str, usize> =
            parameters.iter().map(|p| (p.name.as_str(), p.shape.iter().product())).collect();
        for (name, moments) in &self.moments {
            let [found] = moments.m.dims();
            match sizes.get(name.as_str()) {
                Some(expected) if *expected == found => {}
                Some(expected) => {
                    let what = format!("`{name}` has {found} entries, the model's {expected}");
                    return Err(damaged(path, &what));
                }
                None => return Err(damaged(path, &format!("the model has no `{name}`"))),
            }
        }
        Ok(())
    }
}

fn damaged(path: &Path, what: &dyn std::fmt::Display) -> Error {
    Error::Damaged { path: path.into(), what: what.to_string() }
}
