//! The arrays of a model file by name.

use std::collections::BTreeMap;

use dss_format::{Array, ModelFile, Numbers};

pub(super) struct Arrays<'a>(&'a BTreeMap<String, Array>);

impl<'a> Arrays<'a> {
    pub(super) fn new(file: &'a ModelFile) -> Self {
        Self(file.arrays())
    }

    /// # Panics
    /// If the name is not of the model: the file was checked.
    pub(super) fn get(&self, name: &str) -> Vec<f64> {
        match self.0.get(name).map(|array| &array.numbers) {
            Some(Numbers::F32(numbers)) => numbers.iter().map(|x| (*x).into()).collect(),
            Some(Numbers::F64(numbers)) => numbers.clone(),
            None => panic!("a checked file has {name}"),
        }
    }
}
