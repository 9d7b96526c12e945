//! A model's numbers by name: for checkpoints, parameter groups and inspection. Names, shapes and groups are those that
//! `dss_format::tensors` declares; a parameter that is not declared there is a mistake in the program and panics.

use std::collections::BTreeMap;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::tensor::{Shape, Tensor, TensorData};
use dss_format::{ParamGroup, TensorSpec};

use crate::error::{Error, Result};
use crate::model::Model;

/// One of a model's tensors.
#[derive(Debug, Clone)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Burn's id for it: what optimisers and gradients are kept by.
    pub id: ParamId,
    /// Its group.
    pub group: ParamGroup,
    /// Its shape.
    pub shape: Vec<usize>,
    /// false for the running statistics of BatchNorm, and for what a mixer draws once.
    pub trained: bool,
}

impl Model {
    /// All tensors in a fixed order, without their numbers.
    ///
    /// # Panics
    /// If a module has a parameter that the format does not declare.
    pub fn parameters(&self) -> Vec<Parameter> {
        let declared = self.config().tensors(self.io()).into_iter();
        let mut declared: BTreeMap<_, _> =
            declared.map(|tensor| (tensor.name.clone(), tensor)).collect();
        let found = self.collect(|name, param| (name, param.id(), param.elements()));
        let parameters = found.into_iter().map(|(name, id, elements)| {
            let spec = declared.remove(&name).filter(|spec| spec.elements() == Some(elements));
            let TensorSpec { name, shape, group, trained, .. } = spec.unwrap_or_else(|| {
                panic!("the parameter {name} with {elements} numbers is not declared in dss-format")
            });
            Parameter { name, id, group, shape, trained }
        });
        let parameters = parameters.collect();
        assert!(declared.is_empty(), "declared, but not a parameter: {:?}", declared.keys());
        parameters
    }

    /// All tensors in a fixed order.
    pub fn named_tensors(&self) -> Vec<(String, TensorData)> {
        let data = self.collect(|_, param| param.data());
        let parameters = self.parameters().into_iter().zip(data);
        parameters.map(|(p, data)| (p.name, reshaped(data, p.shape))).collect()
    }

    /// This model with the numbers of `tensors`, in its own float type. Exactly the names of
    /// [`Self::named_tensors`] must be there, with their shapes and with numbers that they can have.
    pub fn load_named(self, mut tensors: BTreeMap<String, TensorData>) -> Result<Self> {
        let mut ready = BTreeMap::new();
        for spec in self.config().tensors(self.io()) {
            let data = tensors.remove(&spec.name).ok_or_else(|| spec.missing())?;
            let data = data.convert::<f64>();
            spec.check(data.shape().as_slice(), data.iter::<f64>())?;
            ready.insert(spec.name, data);
        }
        if let Some(name) = tensors.keys().next() {
            let what = format!("this model has no tensor {name}: the file is of another model");
            return Err(Error::invalid("load_named", what));
        }
        Ok(self.map(&mut Load { path: Path::default(), ready }))
    }

    fn collect<T>(&self, f: impl Fn(String, &dyn AnyParam) -> T) -> Vec<T> {
        let mut visitor = Collect { path: Path::default(), f, found: Vec::new() };
        self.visit(&mut visitor);
        visitor.found
    }
}

/// A parameter of any rank.
trait AnyParam {
    fn id(&self) -> ParamId;
    fn elements(&self) -> usize;
    fn data(&self) -> TensorData;
}

impl<const D: usize> AnyParam for Param<Tensor<D>> {
    fn id(&self) -> ParamId {
        self.id
    }

    fn elements(&self) -> usize {
        self.val().dims().iter().product()
    }

    fn data(&self) -> TensorData {
        self.val().into_data()
    }
}

/// The same numbers in another shape.
fn reshaped(data: TensorData, shape: impl Into<Shape>) -> TensorData {
    let (bytes, _, dtype) = data.into_parts();
    TensorData::from_bytes(bytes, shape, dtype)
}

/// The path of a walk through the modules. The variants of enums are not part of a name.
#[derive(Default)]
struct Path(Vec<String>);

impl Path {
    fn enter(&mut self, name: &str, container: &str) {
        if !container.starts_with("Enum:") {
            self.0.push(name.to_string());
        }
    }

    fn exit(&mut self, container: &str) {
        if !container.starts_with("Enum:") {
            self.0.pop();
        }
    }

    fn name(&self) -> String {
        self.0.join(".")
    }
}

struct Collect<F, T> {
    path: Path,
    f: F,
    found: Vec<T>,
}

impl<T, F: Fn(String, &dyn AnyParam) -> T> ModuleVisitor for Collect<F, T> {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.enter(name, container);
    }

    fn exit_module(&mut self, _name: &str, container: &str) {
        self.path.exit(container);
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.found.push((self.f)(self.path.name(), param));
    }
}

struct Load {
    path: Path,
    ready: BTreeMap<String, TensorData>,
}

impl ModuleMapper for Load {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.enter(name, container);
    }

    fn exit_module(&mut self, _name: &str, container: &str) {
        self.path.exit(container);
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let data = self.ready.remove(&self.path.name()).expect("every name was checked");
        param.map(|old| {
            let data = reshaped(data, old.dims());
            let new = Tensor::from_data(data, (&old.device(), old.dtype()));
            new.set_require_grad(old.is_require_grad())
        })
    }
}
