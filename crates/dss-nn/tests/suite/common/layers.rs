//! Single layers with the numbers of a golden file, and their gradients by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Gradients, Tensor};
use dss_nn::mixer::Pass;
use dss_nn::{Mixer, ModelConfig};

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

/// What `get` finds for each tensor of a layer, by name.
struct Visit<G: Get>(Vec<String>, G, BTreeMap<String, Vec<f64>>);

trait Get {
    fn get<const D: usize>(&self, x: &Tensor<D>) -> Option<Vec<f64>>;
}

impl<G: Get> ModuleVisitor for Visit<G> {
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

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(found) = self.1.get(&param.val()) {
            self.2.insert(self.0.join("."), found);
        }
    }
}

fn visit(layer: &Mixer, get: impl Get) -> BTreeMap<String, Vec<f64>> {
    let mut visit = Visit(Vec::new(), get, BTreeMap::new());
    layer.visit(&mut visit);
    visit.2
}

/// The numbers of a layer by name.
pub fn numbers(layer: &Mixer) -> BTreeMap<String, Vec<f64>> {
    struct Numbers;
    impl Get for Numbers {
        fn get<const D: usize>(&self, x: &Tensor<D>) -> Option<Vec<f64>> {
            Some(values(x))
        }
    }
    visit(layer, Numbers)
}

/// The gradients of a layer's trained tensors by name.
pub fn gradients(layer: &Mixer, grads: &Gradients) -> BTreeMap<String, Vec<f64>> {
    struct Gradient<'a>(&'a Gradients);
    impl Get for Gradient<'_> {
        fn get<const D: usize>(&self, x: &Tensor<D>) -> Option<Vec<f64>> {
            x.grad(self.0).map(|gradient| values(&gradient))
        }
    }
    visit(layer, Gradient(grads))
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
    let mut found: BTreeMap<_, _> =
        gradients(&layer, &grads).into_iter().map(|(ours, x)| (name(&ours), x)).collect();
    found.insert("u".to_owned(), grad(&u, &grads));
    let start = format!("{prefix}grad.");
    let known: Vec<_> = golden.names().filter_map(|name| name.strip_prefix(&start)).collect();
    assert_eq!(known.len(), found.len(), "{}: {known:?}, {:?}", what(""), found.keys());
    let largest = |x: &[f64]| x.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    let want = |name: &str| golden.get(&format!("{start}{name}"));
    let most = known.iter().map(|name| largest(want(name))).fold(0.0, f64::max);
    for name in known {
        let (found, want) = (&found[name], want(name));
        let error = found.iter().zip(want).fold(0.0f64, |m, (a, b)| {
            let error = (a - b).abs();
            if error.is_nan() { f64::INFINITY } else { m.max(error) }
        });
        let bound = 1e-10 * largest(want).max(1e-3 * most);
        assert!(found.len() == want.len() && error <= bound, "{}: off by {error:e}", what(name));
    }
}
