//! The numbers of a model file, taken out by name.

use std::collections::BTreeMap;

use dss_format::Array;
use dss_kernels::frozen::Norm;

use crate::error::{Error, Result};
use crate::hash::Hash;
use crate::linear::LinearWeights;

/// All numbers of a file, in f32.
pub(crate) struct AllArrays(BTreeMap<String, Vec<f32>>);

/// Those of one module, by names relative to it. The file was checked to be that of its configuration: one that is
/// missing is a mistake of this program.
pub(crate) struct Arrays<'a> {
    all: &'a mut AllArrays,
    /// With a dot at its end.
    module: String,
}

impl AllArrays {
    /// # Errors
    /// A number in f64 that is beyond the range of f32.
    pub(crate) fn new(arrays: BTreeMap<String, Array>) -> Result<Self> {
        let mut all = BTreeMap::new();
        for (name, array) in arrays {
            let numbers = array.numbers.into_f32();
            if let Some(at) = numbers.iter().position(|x| !x.is_finite()) {
                let what = format!("{name} has a number at index {at} beyond the range of f32");
                return Err(Error::File(what));
            }
            all.insert(name, numbers);
        }
        Ok(Self(all))
    }

    pub(crate) fn hash(&self, hash: &mut Hash) {
        for (name, numbers) in &self.0 {
            hash.bytes(name.as_bytes());
            hash.floats(numbers);
        }
    }

    pub(crate) fn root(&mut self) -> Arrays<'_> {
        Arrays { all: self, module: String::new() }
    }
}

impl Arrays<'_> {
    pub(crate) fn within(&mut self, module: &str) -> Arrays<'_> {
        Arrays { module: format!("{}{module}.", self.module), all: self.all }
    }

    pub(crate) fn take(&mut self, name: &str) -> Vec<f32> {
        let name = format!("{}{name}", self.module);
        self.all.0.remove(&name).unwrap_or_else(|| panic!("a checked file has {name}"))
    }

    pub(crate) fn layer_norm(&mut self, name: &str, eps: f64) -> Norm<f32> {
        let mut arrays = self.within(name);
        Norm::Layer { gamma: arrays.take("gamma"), beta: arrays.take("beta"), eps }
    }

    pub(crate) fn linear(&mut self, name: &str) -> LinearWeights {
        let mut arrays = self.within(name);
        LinearWeights { weight: arrays.take("weight"), bias: arrays.take("bias") }
    }
}
