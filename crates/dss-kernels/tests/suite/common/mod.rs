//! Reading the golden tensors, and comparing with them.

pub mod random;
pub mod s4;

use dss_kernels::kernel::{Delta, KernelConfig, ParamGrads, Params, Variant};
use safetensors::{Dtype, SafeTensors};
use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};

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

pub struct Golden {
    tensors: HashMap<String, (Vec<usize>, Vec<f64>)>,
    meta: HashMap<String, String>,
}

impl Golden {
    /// None where a package does without the file.
    pub fn read(name: &str) -> Option<Self> {
        let path = golden_path("dss-kernels", name)?;
        let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
        let meta = header.metadata().clone().unwrap_or_default();
        let tensors = SafeTensors::deserialize(&bytes)
            .unwrap()
            .iter()
            .map(|(name, view)| {
                let data = match view.dtype() {
                    Dtype::F64 => view
                        .data()
                        .chunks_exact(8)
                        .map(|b| f64::from_le_bytes(b.try_into().unwrap()))
                        .collect(),
                    Dtype::F32 => view
                        .data()
                        .chunks_exact(4)
                        .map(|b| f32::from_le_bytes(b.try_into().unwrap()).into())
                        .collect(),
                    Dtype::I64 => view
                        .data()
                        .chunks_exact(8)
                        .map(|b| i64::from_le_bytes(b.try_into().unwrap()) as f64)
                        .collect(),
                    other => panic!("{name}: {other:?}"),
                };
                (name.to_string(), (view.shape().to_vec(), data))
            })
            .collect();
        Some(Self { tensors, meta })
    }

    pub fn get(&self, name: &str) -> &[f64] {
        &self.tensors.get(name).unwrap_or_else(|| panic!("no tensor {name}")).1
    }

    pub fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    pub fn shape(&self, name: &str) -> &[usize] {
        &self.tensors[name].0
    }

    /// The true gradient, under either name.
    pub fn grad(&self, name: &str) -> &[f64] {
        let truth = format!("grad_true.{name}");
        if self.has(&truth) { self.get(&truth) } else { self.get(&format!("grad.{name}")) }
    }

    pub fn variant(&self) -> Variant {
        match self.meta["version"].trim_matches('"') {
            "softmax" => Variant::Softmax,
            "exp" => Variant::Exp,
            "exp-no-scale" => Variant::ExpNoScale,
            other => panic!("version {other}"),
        }
    }

    pub fn config(&self, len: usize) -> KernelConfig {
        let w = self.shape("W");
        let delta = if self.shape("log_dt").len() == 1 { Delta::Tied } else { Delta::Separate };
        KernelConfig::new(self.variant(), w[1], w[2], len).delta(delta).channels(w[0])
    }

    /// Λ_re and Λ_im as this crate stores them.
    pub fn lambda(&self) -> (Vec<f64>, Vec<f64>) {
        if self.has("Lambda_log_neg_re") {
            return (self.get("Lambda_log_neg_re").to_vec(), self.get("Lambda_im").to_vec());
        }
        let (re, im) = split(self.get("Lambda"));
        if self.variant() == Variant::Softmax {
            (re, im)
        } else {
            (re.iter().map(|x| (-x).ln()).collect(), im)
        }
    }

    pub fn lambda_grad(&self) -> (Vec<f64>, Vec<f64>) {
        if self.has("Lambda_log_neg_re") {
            return (self.grad("Lambda_log_neg_re").to_vec(), self.grad("Lambda_im").to_vec());
        }
        split(self.grad("Lambda"))
    }
}

/// [.., 2] into the two parts.
pub fn split(x: &[f64]) -> (Vec<f64>, Vec<f64>) {
    (x.iter().copied().step_by(2).collect(), x[1..].iter().copied().step_by(2).collect())
}

/// [B, H, L] into [B, L, H].
pub fn channels_last(x: &[f64], b: usize, h: usize, l: usize) -> Vec<f64> {
    let mut y = vec![0.0; x.len()];
    for s in 0..b {
        for c in 0..h {
            for t in 0..l {
                y[(s * l + t) * h + c] = x[(s * h + c) * l + t];
            }
        }
    }
    y
}

/// Largest |a − b| relative to the largest |b|.
pub fn error(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    let max = b.iter().fold(0f64, |m, x| m.max(x.abs()));
    let worst = a
        .iter()
        .zip(b)
        .fold(0f64, |m, (a, b)| if m.is_nan() { m } else { (a - b).abs().max(m) + (a - b) * 0.0 });
    worst / max
}

pub fn to_f32(x: &[f64]) -> Vec<f32> {
    x.iter().map(|&x| x as f32).collect()
}

pub fn to_f64(x: &[f32]) -> Vec<f64> {
    x.iter().map(|&x| x.into()).collect()
}

/// Owned parameters.
#[derive(Debug, Clone)]
pub struct Owned<T> {
    pub lambda_re: Vec<T>,
    pub lambda_im: Vec<T>,
    pub delta_log: Vec<T>,
    pub w: Vec<T>,
}

impl Owned<f64> {
    pub fn to_f32(&self) -> Owned<f32> {
        Owned {
            lambda_re: to_f32(&self.lambda_re),
            lambda_im: to_f32(&self.lambda_im),
            delta_log: to_f32(&self.delta_log),
            w: to_f32(&self.w),
        }
    }
}

impl<T> Owned<T> {
    /// These tensors as the place for gradients.
    pub fn grads(&mut self) -> ParamGrads<'_, T> {
        ParamGrads {
            lambda_re: &mut self.lambda_re,
            lambda_im: &mut self.lambda_im,
            delta_log: &mut self.delta_log,
            w: &mut self.w,
        }
    }

    pub fn params(&self) -> Params<'_, T> {
        Params {
            lambda_re: &self.lambda_re,
            lambda_im: &self.lambda_im,
            delta_log: &self.delta_log,
            w: &self.w,
        }
    }
}
