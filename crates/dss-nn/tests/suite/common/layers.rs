//! Single layers with the numbers of a golden file, and their gradients by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Gradients, Tensor};
use dss_nn::mixer::Pass;
use dss_nn::{Mixer, ModelConfig};

use super::gradients::assert_gradients;
use super::{Golden, assert_close, device, grad, tensor, values};

/// The layer in f64 with the numbers that `get` has for each of its names.
pub fn loaded(layer: Mixer, get: &dyn Fn(&str) -> Vec<f64>) -> Mixer {
    struct Load<'a>(Vec<String>, &'a dyn Fn(&str) -> Vec<f64>);
    impl ModuleMapper for Load<'_> {
        fn enter_module(&mut self, name: &str, container: &str) {
            if !container.starts_with("Enum:") {
                self.0.push(name.to_owned());
            }
        }

        fn exit_module(&mut self, _name: &str, container: &str) {
            if !container.starts_with("Enum:") {
                self.0.pop();
            }
        }

        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            let numbers = (self.1)(&self.0.join("."));
            param.map(|old| tensor(&numbers, old.dims()).set_require_grad(old.is_require_grad()))
        }
    }
    layer.map(&mut Load(Vec::new(), get))
}

/// The numbers of a layer's tensors by name, or their gradients where there are some.
struct Visit<'a> {
    path: Vec<String>,
    grads: Option<&'a Gradients>,
    found: BTreeMap<String, Vec<f64>>,
}

impl ModuleVisitor for Visit<'_> {
    fn enter_module(&mut self, name: &str, container: &str) {
        if !container.starts_with("Enum:") {
            self.path.push(name.to_owned());
        }
    }

    fn exit_module(&mut self, _name: &str, container: &str) {
        if !container.starts_with("Enum:") {
            self.path.pop();
        }
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let x = param.val();
        let found = match self.grads {
            Some(grads) => x.grad(grads).map(|gradient| values(&gradient)),
            None => Some(values(&x)),
        };
        self.found.extend(found.map(|numbers| (self.path.join("."), numbers)));
    }
}

fn visit(layer: &Mixer, grads: Option<&Gradients>) -> BTreeMap<String, Vec<f64>> {
    let mut visit = Visit { path: Vec::new(), grads, found: BTreeMap::new() };
    layer.visit(&mut visit);
    visit.found
}

/// The numbers of a layer by name.
pub fn numbers(layer: &Mixer) -> BTreeMap<String, Vec<f64>> {
    visit(layer, None)
}

/// The gradients of a layer's trained tensors by name.
pub fn gradients(layer: &Mixer, grads: &Gradients) -> BTreeMap<String, Vec<f64>> {
    visit(layer, Some(grads))
}

/// u [B, L, H] through a layer, with these lengths.
pub fn mixed(layer: &Mixer, u: Tensor<3>, lengths: Option<&[usize]>) -> Tensor<3> {
    let pass = Pass { lengths: lengths.map(Arc::from), ..Pass::default() };
    let prepared = layer.get().prepare(u.dims()[1]).unwrap();
    layer.get().mix(u, &prepared, &pass)
}

/// A case of a golden file: y within 1e-11, gradients within 1e-10 of the larger of their maximum and a thousandth of the
/// largest one. `name` gives the file's names of our tensors.
pub fn check_golden(
    golden: &Golden,
    prefix: &str,
    config: &ModelConfig,
    masked: bool,
    name: impl Fn(&str) -> String,
) {
    let (batch, l, h) = (golden.usize("B"), golden.usize("L"), golden.usize("H"));
    let lengths: Option<Vec<usize>> =
        masked.then(|| golden.get("lengths").iter().map(|&x| x as usize).collect());
    let layer = Mixer::new(config, l, 0, &device()).unwrap();
    let layer = loaded(layer, &|ours| golden.get(&name(ours)).to_vec());
    let u = golden.tensor("u", [batch, l, h]).require_grad();
    let y = mixed(&layer, u.clone(), lengths.as_deref());
    // The file has 0 where nothing is defined.
    let true_positions = (0..batch * l * h).map(|i| match &lengths {
        Some(lengths) => f64::from(i / h % l < lengths[i / (h * l)]),
        None => 1.0,
    });
    let y = y * tensor(&true_positions.collect::<Vec<_>>(), [batch, l, h]);
    let what = |part: &str| format!("{:?} {prefix}{part}", config.form);
    assert_close(&what("y"), &values(&y), golden.get(&format!("{prefix}y")), 1e-11);

    let grads = (y * golden.tensor("g", [batch, l, h])).sum().backward();
    let mut found: Vec<_> =
        gradients(&layer, &grads).into_iter().map(|(ours, x)| (name(&ours), x)).collect();
    found.push(("u".to_owned(), grad(&u, &grads)));
    assert_gradients(golden, prefix, &found);
}
