//! Reading the golden tensors and comparing with them.

pub mod configs;
pub mod gradients;
pub mod layers;
pub mod names;
pub mod random;
pub mod saved;

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::{Path, PathBuf};

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{DType, Device, Gradients, Tensor, TensorData};
use dss_nn::Model;
use dss_nn::config::{Delta, Form, Variant};
use safetensors::{Dtype, SafeTensors};

pub const FORMS: [Form; 2] = [Form::Composed, Form::Fused];

/// Where a golden file is. A package has only its own small ones: of the others this says that they are missing.
fn golden_path(home: &str, name: &str) -> Option<PathBuf> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let checkout = package.join("..").join(home);
    let in_checkout = checkout.is_dir();
    let folder = if in_checkout { checkout } else { package.into() };
    let path = folder.join(format!("tests/golden/{name}.safetensors"));
    if in_checkout || path.exists() {
        return Some(path);
    }
    // Not by eprintln!, which tests show only when they fail.
    let _ = writeln!(std::io::stderr(), "skipped: {name}.safetensors is not part of this package");
    None
}

/// A file of float64 tensors computed in PyTorch from the paper's formulas.
pub struct Golden {
    pub name: String,
    tensors: HashMap<String, (Vec<usize>, Vec<f64>)>,
    meta: HashMap<String, String>,
}

impl Golden {
    /// None where a package does without the file.
    pub fn read(name: &str) -> Option<Self> {
        let kernel =
            ["kernel_", "s4_", "attention", "nrde"].iter().any(|start| name.starts_with(start));
        let path = golden_path(if kernel { "dss-kernels" } else { "dss-nn" }, name)?;
        let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
        let meta = header.metadata().clone().unwrap_or_default();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let tensors = file.iter().filter_map(|(name, view)| {
            let eights = || view.data().chunks_exact(8).map(|b| b.try_into().unwrap());
            let data = match view.dtype() {
                Dtype::F64 => eights().map(f64::from_le_bytes).collect(),
                Dtype::I64 => eights().map(|b| i64::from_le_bytes(b) as f64).collect(),
                _ => return None,
            };
            Some((name.to_string(), (view.shape().to_vec(), data)))
        });
        Some(Self { name: name.into(), tensors: tensors.collect(), meta })
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    pub fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    pub fn get(&self, name: &str) -> &[f64] {
        let found = self.tensors.get(name);
        &found.unwrap_or_else(|| panic!("{}: no tensor {name}", self.name)).1
    }

    pub fn shape(&self, name: &str) -> &[usize] {
        &self.tensors[name].0
    }

    pub fn meta(&self, key: &str) -> Option<&str> {
        self.meta.get(key).map(|s| s.trim_matches('"'))
    }

    pub fn usize(&self, key: &str) -> usize {
        self.meta(key).unwrap_or_else(|| panic!("no {key}")).parse().unwrap()
    }

    pub fn flag(&self, key: &str) -> bool {
        self.meta(key).is_some_and(|x| x.eq_ignore_ascii_case("true"))
    }

    pub fn variant(&self) -> Variant {
        match self.meta("version").unwrap_or("softmax") {
            "softmax" => Variant::Softmax,
            "exp" => Variant::Exp,
            "exp-no-scale" => Variant::ExpNoScale,
            other => panic!("version {other}"),
        }
    }

    pub fn delta(&self, log_dt: &str) -> Delta {
        if self.shape(log_dt).len() == 1 { Delta::Tied } else { Delta::Separate }
    }

    /// Λ `[N, 2]` under `prefix`, which the authors store as one tensor or two.
    pub fn lambda(&self, prefix: &str) -> Vec<f64> {
        let whole = format!("{prefix}Lambda");
        if self.has(&whole) {
            return self.get(&whole).to_vec();
        }
        let re = self.get(&format!("{prefix}Lambda_log_neg_re"));
        let im = self.get(&format!("{prefix}Lambda_im"));
        re.iter().zip(im).flat_map(|(&re, &im)| [re, im]).collect()
    }

    pub fn tensor<const D: usize>(&self, name: &str, shape: [usize; D]) -> Tensor<D> {
        tensor(self.get(name), shape)
    }
}

/// An f64 tensor on the autodiff CPU device.
pub fn tensor<const D: usize>(data: &[f64], shape: [usize; D]) -> Tensor<D> {
    Tensor::from_data(TensorData::new(data.to_vec(), shape), (&device(), DType::F64))
}

pub fn device() -> Device {
    Device::flex().autodiff()
}

pub fn values<const D: usize>(x: &Tensor<D>) -> Vec<f64> {
    x.to_data().convert::<f64>().try_into_vec().unwrap()
}

pub fn grad<const D: usize>(x: &Tensor<D>, grads: &Gradients) -> Vec<f64> {
    values(&x.grad(grads).expect("a gradient"))
}

/// The gradients of a model's parameters by name; those that have none are left out.
pub fn grads(model: &Model, grads: &Gradients) -> BTreeMap<String, Vec<f64>> {
    struct Visit<'a>(&'a Gradients, Vec<Option<Vec<f64>>>);
    impl ModuleVisitor for Visit<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.1.push(param.val().grad(self.0).map(|g| values(&g)));
        }
    }
    let mut visit = Visit(grads, Vec::new());
    model.visit(&mut visit);
    let names = model.parameters().into_iter().map(|p| p.name);
    names.zip(visit.1).filter_map(|(name, g)| Some((name, g?))).collect()
}

/// `[rows, columns]` transposed.
pub fn transposed(x: &[f64], rows: usize, columns: usize) -> Vec<f64> {
    (0..rows * columns).map(|i| x[(i % rows) * columns + i / rows]).collect()
}

/// `[B, H, L]` as `[B, L, H]`.
pub fn channels_last(x: &[f64], h: usize, l: usize) -> Vec<f64> {
    x.chunks_exact(h * l).flat_map(|x| transposed(x, h, l)).collect()
}

/// The largest difference is within `tolerance` of the largest value.
pub fn assert_close(what: &str, got: &[f64], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len(), "{what}: number of values");
    let scale = want.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    let error = got.iter().zip(want).fold(0.0f64, |m, (a, b)| {
        let d = (a - b).abs();
        if d.is_nan() { f64::INFINITY } else { m.max(d) }
    });
    assert!(error <= tolerance * scale, "{what}: off by {error:e}, the largest value is {scale:e}");
}
