//! The tensors of a checkpoint, each asked for with the shape that it must have.

use std::cell::RefCell;
use std::collections::BTreeSet;

use crate::checkpoint::{Checkpoint, Dtype, Entry, Tensor};
use crate::error::{Error, Result};

/// How many names a message has room for.
const SHOWN: usize = 6;

pub(super) struct Tensors<'a> {
    checkpoint: &'a Checkpoint<'a>,
    used: RefCell<BTreeSet<String>>,
}

impl<'a> Tensors<'a> {
    pub(super) fn new(checkpoint: &'a Checkpoint<'a>) -> Self {
        Self { checkpoint, used: RefCell::default() }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.checkpoint.get(name).is_some()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.checkpoint.names()
    }

    fn tensor(&self, name: &str) -> Result<&Tensor> {
        match self.checkpoint.get(name) {
            Some(Entry::Tensor(tensor)) => Ok(tensor),
            Some(Entry::Other(what)) => {
                Err(Error::model(format!("{name} must be a tensor, but is {what}")))
            }
            None => Err(Error::model(format!("the tensor {name} is missing"))),
        }
    }

    pub(super) fn shape(&self, name: &str) -> Result<&[usize]> {
        self.tensor(name).map(|tensor| tensor.shape.as_slice())
    }

    /// The first size of a tensor.
    pub(super) fn rows(&self, name: &str) -> Result<usize> {
        let rows = self.shape(name)?.first().copied();
        rows.ok_or_else(|| Error::model(format!("{name} must be a matrix, but is a number")))
    }

    /// The numbers of a tensor that must have this shape, axes of size 1 aside, and be finite.
    pub(super) fn take(&self, name: &str, shape: &[usize]) -> Result<Vec<f64>> {
        let tensor = self.tensor(name)?;
        let squeezed = |shape: &[usize]| -> Vec<usize> {
            shape.iter().copied().filter(|size| *size != 1).collect()
        };
        if squeezed(&tensor.shape) != squeezed(shape) {
            let found = &tensor.shape;
            return Err(Error::model(format!("{name} must be {shape:?}, but is {found:?}")));
        }
        if !matches!(tensor.dtype, Dtype::F64 | Dtype::F32 | Dtype::F16 | Dtype::Bf16) {
            let found = tensor.dtype;
            return Err(Error::model(format!("{name} must have real numbers, but has {found:?}")));
        }
        let numbers = self.checkpoint.numbers(name, tensor)?;
        // As it is stored here: a number beyond the range of f32 is infinite.
        if let Some(at) = numbers.iter().position(|x| !(*x as f32).is_finite()) {
            let found = numbers[at];
            return Err(Error::model(format!("{name} has the number {found} at index {at}")));
        }
        self.ignore(name);
        Ok(numbers)
    }

    /// A single integer.
    pub(super) fn take_integer(&self, name: &str) -> Result<i64> {
        let tensor = self.tensor(name)?;
        if tensor.shape.iter().any(|size| *size != 1) || tensor.dtype != Dtype::I64 {
            return Err(Error::model(format!("{name} must be one integer")));
        }
        self.ignore(name);
        Ok(self.checkpoint.numbers(name, tensor)?[0] as i64)
    }

    /// `weight` and `bias` of a linear map.
    pub(super) fn linear(
        &self,
        name: &str,
        inputs: usize,
        outputs: usize,
    ) -> Result<[(&'static str, Vec<f64>); 2]> {
        Ok([
            ("weight", self.take(&format!("{name}.weight"), &[outputs, inputs])?),
            ("bias", self.take(&format!("{name}.bias"), &[outputs])?),
        ])
    }

    /// A tensor that is known and not needed.
    pub(super) fn ignore(&self, name: &str) {
        self.used.borrow_mut().insert(name.to_owned());
    }

    /// Everything was asked for.
    pub(super) fn refuse_surplus(&self) -> Result<()> {
        let used = self.used.borrow();
        let surplus: Vec<&str> =
            self.checkpoint.names().filter(|name| !used.contains(*name)).collect();
        if surplus.is_empty() {
            return Ok(());
        }
        let (count, more) = (surplus.len(), surplus.len().saturating_sub(SHOWN));
        let shown: Vec<String> =
            surplus.iter().take(SHOWN).map(|name| self.described(name)).collect();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let what = if count == 1 { "entry" } else { "entries" };
        Err(Error::model(format!(
            "it has {count} {what} that such a model does not have: {}{more}",
            shown.join(", ")
        )))
    }

    fn described(&self, name: &str) -> String {
        match self.checkpoint.get(name) {
            Some(Entry::Tensor(tensor)) => format!("{name} {:?}", tensor.shape),
            Some(Entry::Other(what)) => format!("{name} ({what})"),
            None => name.to_owned(),
        }
    }
}
