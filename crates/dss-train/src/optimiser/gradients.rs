//! The gradients of a step by parameter name: summed over micro-batches, measured, searched for NaN.

use std::collections::{BTreeMap, HashMap};

use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::tensor::{Tensor, TensorData};
use dss_nn::Model;

/// Gradients by parameter name, each as a flat vector.
#[derive(Debug, Default)]
pub struct Gradients {
    by_name: BTreeMap<String, Tensor<1>>,
}

impl Gradients {
    /// Adds what a backward pass found for the parameters of `model`.
    pub fn add(&mut self, model: &Model, found: &mut burn::tensor::Gradients) {
        struct Collect<'a> {
            names: HashMap<ParamId, String>,
            found: &'a mut burn::tensor::Gradients,
            sum: &'a mut BTreeMap<String, Tensor<1>>,
        }

        impl ModuleVisitor for Collect<'_> {
            fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
                let Some(gradient) = param.val().grad_remove(self.found) else { return };
                let Some(name) = self.names.remove(&param.id) else { return };
                let gradient = gradient.flatten(0, D - 1);
                let sum = match self.sum.remove(&name) {
                    Some(before) => before + gradient,
                    None => gradient,
                };
                self.sum.insert(name, sum);
            }
        }

        let names = model.parameters().into_iter().map(|p| (p.id, p.name)).collect();
        model.visit(&mut Collect { names, found, sum: &mut self.by_name });
    }

    /// Puts in the gradient of one parameter.
    pub(super) fn insert(&mut self, name: String, gradient: Tensor<1>) {
        self.by_name.insert(name, gradient);
    }

    /// The gradient of one parameter.
    pub fn get(&self, name: &str) -> Option<&Tensor<1>> {
        self.by_name.get(name)
    }

    /// ‖g‖₂ over all parameters, in f64, in the order of the names; NaN or ∞ if any entry is.
    pub fn norm(&self) -> f64 {
        let squares = |gradient: &Tensor<1>| -> f64 {
            let data = gradient.to_data();
            if let Ok(values) = data.as_slice::<f32>() {
                values.iter().map(|x| f64::from(*x) * f64::from(*x)).sum()
            } else {
                data.iter::<f64>().map(|x| x * x).sum()
            }
        };
        self.by_name.values().map(squares).sum::<f64>().sqrt()
    }

    /// The first entry that is not finite.
    pub fn first_bad(&self) -> Option<NonFinite> {
        first_bad(self.by_name.iter().map(|(name, gradient)| (name.clone(), gradient.to_data())))
    }
}

/// The place of a NaN or an infinity.
#[derive(Clone, Debug, PartialEq)]
pub struct NonFinite {
    /// Name of the tensor.
    pub name: String,
    /// Flat index of the first one.
    pub index: usize,
    /// NaN, ∞ or −∞.
    pub value: f64,
}

/// The first entry of the named tensors that is not finite.
pub fn first_bad(tensors: impl Iterator<Item = (String, TensorData)>) -> Option<NonFinite> {
    for (name, data) in tensors {
        let found = data.iter::<f64>().enumerate().find(|(_, value)| !value.is_finite());
        if let Some((index, value)) = found {
            return Some(NonFinite { name, index, value });
        }
    }
    None
}
