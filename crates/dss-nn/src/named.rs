//! A model's numbers by name: for checkpoints, parameter groups and inspection.
//!
//! | name | shape |
//! |------|-------|
//! | `encoder.weight` | `[V, H]` of tokens, `[H, channels]` of numbers (then also `encoder.bias` `[H]`) |
//! | `layers.{i}.mixer.lambda`, `.delta_log`, `.w` | `[N, 2]`, `[H]` or `[H, 2]`, `[C, H, N, 2]`, of DSS |
//! | `layers.{i}.mixer.lambda_re`, `.lambda_im`, `.c`, `.delta_log` | `[N/2]`, `[N/2]`, `[C, H, N/2, 2]`, `[H]`, of S4 and S4D |
//! | `layers.{i}.mixer.p`, `.b` | `[N/2, 2]` each, of S4 |
//! | `layers.{i}.mixer.d` | `[H]` |
//! | `layers.{i}.mixer.out.weight`, `.bias` | `[H or 2H, H]`, `[H or 2H]` |
//! | `layers.{i}.norm.gamma`, `.beta` | `[H]` each (`[1]` for layer-scalar) |
//! | `layers.{i}.norm.running_mean`, `.running_var` | `[H]` each, BatchNorm only |
//! | `norm.*` | the last norm of a pre-norm stack |
//! | `head.weight`, `.bias` | `[O, H]`, `[O]`; of pairs `head.hidden.*` `[H, 4H]` and `head.out.*` `[O, H]` |
//!
//! Weight matrices are `[out, in]` as in PyTorch. For the exp variants `lambda[:, 0]`, and for S4 and S4D
//! `lambda_re`, is log(−Re λ). `c` of S4 is C̃ = C·(I − Ā^L), L the training length or `kernel_len`.

use std::collections::BTreeMap;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::tensor::{Shape, Tensor, TensorData};

use crate::error::{Error, Result};
use crate::model::Model;

/// Parameters that have a learning rate in common (§4: those of the state space have their own and no weight decay).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ParamGroup {
    /// Λ; P and B of S4.
    Lambda,
    /// Δ_log.
    Delta,
    /// W; C of S4 and S4D.
    W,
    /// Everything else.
    Other,
}

impl ParamGroup {
    /// The group of the parameter with this name.
    pub fn of(name: &str) -> Self {
        match name.rsplit('.').next() {
            Some("lambda" | "lambda_re" | "lambda_im" | "p" | "b") => Self::Lambda,
            Some("delta_log") => Self::Delta,
            Some("w" | "c") => Self::W,
            _ => Self::Other,
        }
    }
}

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
    /// false for the running statistics of BatchNorm.
    pub trained: bool,
}

impl Model {
    /// All tensors in a fixed order, without their numbers.
    pub fn parameters(&self) -> Vec<Parameter> {
        self.collect(|name, param| {
            let trained = !name.ends_with("running_mean") && !name.ends_with("running_var");
            let group = ParamGroup::of(&name);
            Parameter { id: param.id(), shape: param.shape(&name), group, trained, name }
        })
    }

    /// All tensors in a fixed order.
    pub fn named_tensors(&self) -> Vec<(String, TensorData)> {
        self.collect(|name, param| {
            let shape = param.shape(&name);
            let data = reshaped(param.data(), shape);
            (name, data)
        })
    }

    /// This model with the numbers of `tensors`, in its own float type. Exactly the names of
    /// [`Self::named_tensors`] must be there, with their shapes, and all numbers must be finite.
    pub fn load_named(self, mut tensors: BTreeMap<String, TensorData>) -> Result<Self> {
        let op = "load_named";
        let mut ready = BTreeMap::new();
        for Parameter { name, shape, .. } in self.parameters() {
            let Some(data) = tensors.remove(&name) else {
                return Err(Error::invalid(op, format!("the tensor {name} {shape:?} is missing")));
            };
            if data.shape().as_slice() != shape {
                let what =
                    format!("{name} must be {shape:?}, but is {:?}", data.shape().as_slice());
                return Err(Error::invalid(op, what));
            }
            let data = data.convert::<f64>();
            let numbers = data.as_slice::<f64>().expect("just converted");
            if let Some(at) = numbers.iter().position(|x| !x.is_finite()) {
                let what = format!("{name} has the number {} at index {at}", numbers[at]);
                return Err(Error::invalid(op, what));
            }
            if name.ends_with("running_var") && numbers.iter().any(|&x| x < 0.0) {
                return Err(Error::invalid(op, format!("{name} has a negative variance")));
            }
            ready.insert(name, data);
        }
        if let Some(name) = tensors.keys().next() {
            let what = format!("this model has no tensor {name}: the file is of another model");
            return Err(Error::invalid(op, what));
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
    fn shape(&self, name: &str) -> Vec<usize>;
    fn data(&self) -> TensorData;
}

impl<const D: usize> AnyParam for Param<Tensor<D>> {
    fn id(&self) -> ParamId {
        self.id
    }

    /// A tied Δ_log `[H, 1]` is `[H]` to the world.
    fn shape(&self, name: &str) -> Vec<usize> {
        let mut shape = self.val().dims().to_vec();
        if ParamGroup::of(name) == ParamGroup::Delta && D == 2 && shape[1] == 1 {
            shape.pop();
        }
        shape
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

/// Where a walk through the modules stands. The variants of enums are no part of a name, nor is the field of a layer
/// that holds its state space.
#[derive(Default)]
struct Path(Vec<String>);

impl Path {
    fn enter(&mut self, name: &str, container: &str) {
        if Self::named(name, container) {
            self.0.push(name.to_string());
        }
    }

    fn exit(&mut self, name: &str, container: &str) {
        if Self::named(name, container) {
            self.0.pop();
        }
    }

    fn named(name: &str, container: &str) -> bool {
        !container.starts_with("Enum:") && (container, name) != ("Struct:SsmLayer", "ssm")
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

    fn exit_module(&mut self, name: &str, container: &str) {
        self.path.exit(name, container);
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

    fn exit_module(&mut self, name: &str, container: &str) {
        self.path.exit(name, container);
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
