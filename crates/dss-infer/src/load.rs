//! From a file's tensors to a model. Names, shapes and numbers are checked; what is made is as large as what is there.

use dss_kernels::frozen::{Linear, Norm};

use crate::config::{Delta, InputKind, Mixer as MixerKind, ModelConfig, NormKind, OutputKind};
use crate::error::{Error, Result};
use crate::file::{ModelFile, Tensor};
use crate::hash::Hash;
use crate::layer::{Layer, NORM_EPS, Surround};
use crate::mixer::Mixer;
use crate::model::{Encoder, Head, Model};

impl Model {
    /// The model of a file.
    pub fn from_file(mut file: ModelFile) -> Result<Self> {
        let meta = file.meta().clone();
        let mut hash = Hash::new();
        hash.bytes(format!("{:?}{:?}", meta.model, meta.io).as_bytes());
        for (name, tensor) in &file.tensors {
            hash.bytes(name.as_bytes());
            hash.floats(&tensor.values);
        }
        let mut take = Take { file: &mut file, config: &meta.model };
        let h = meta.model.h;
        let encoder = match meta.io.input {
            InputKind::Tokens { vocab } => {
                Encoder::Tokens(take.tensor("encoder.weight", &[vocab, h])?)
            }
            InputKind::Values { channels } => {
                Encoder::Values(take.linear("encoder", channels, h)?.map()?)
            }
        };
        let mut layers = Vec::new();
        for i in 0..meta.model.layers {
            layers.push(take.layer(&format!("layers.{i}"))?);
        }
        let mut norm = match meta.model.prenorm {
            true => take.norm("norm")?,
            false => Norm::Identity,
        };
        let head = match meta.io.output {
            OutputKind::Sequence { outputs } | OutputKind::Position { outputs } => {
                let mut weights = take.linear("head", h, outputs)?;
                if let Norm::Affine { scale, shift } = &norm {
                    weights.fold(scale, shift);
                    norm = Norm::Identity;
                }
                Head::Linear(weights.map()?)
            }
            OutputKind::Pair { outputs } => Head::Pair {
                hidden: take.linear("head.hidden", 4 * h, h)?.map()?,
                out: take.linear("head.out", h, outputs)?.map()?,
            },
        };
        if let Some(name) = file.tensors.keys().next() {
            return Err(Error::file(format!("it has a tensor {name} that its description lacks")));
        }
        Ok(Self::new(meta, encoder, layers, norm, head, hash.0))
    }
}

/// Takes tensors out of a file.
struct Take<'a> {
    file: &'a mut ModelFile,
    config: &'a ModelConfig,
}

/// W `[out, in]` and b `[out]` of a linear map.
struct Weights {
    weight: Vec<f32>,
    bias: Vec<f32>,
}

impl Weights {
    /// This map of scale·x + shift as a map of x.
    fn fold(&mut self, scale: &[f32], shift: &[f32]) {
        for (row, bias) in self.weight.chunks_exact_mut(scale.len()).zip(&mut self.bias) {
            let moved = row.iter().zip(shift).map(|(&w, &s)| f64::from(w) * f64::from(s));
            *bias = (f64::from(*bias) + moved.sum::<f64>()) as f32;
            row.iter_mut().zip(scale).for_each(|(w, scale)| *w *= scale);
        }
    }

    fn map(self) -> Result<Linear<f32>> {
        Ok(Linear::new(&self.weight, &self.bias)?)
    }
}

impl Take<'_> {
    fn tensor(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        match self.file.tensors.remove(name) {
            Some(Tensor { shape: found, values }) if found == shape => Ok(values),
            Some(Tensor { shape: found, .. }) => {
                Err(Error::file(format!("{name} must be {shape:?}, but is {found:?}")))
            }
            None => Err(Error::file(format!("the tensor {name} {shape:?} is missing"))),
        }
    }

    fn linear(&mut self, name: &str, inputs: usize, outputs: usize) -> Result<Weights> {
        Ok(Weights {
            weight: self.tensor(&format!("{name}.weight"), &[outputs, inputs])?,
            bias: self.tensor(&format!("{name}.bias"), &[outputs])?,
        })
    }

    fn norm(&mut self, name: &str) -> Result<Norm<f32>> {
        let kind = self.config.norm;
        let h = if kind == NormKind::LayerScalar { 1 } else { self.config.h };
        let gamma = self.tensor(&format!("{name}.gamma"), &[h])?;
        let beta = self.tensor(&format!("{name}.beta"), &[h])?;
        Ok(match kind {
            NormKind::Layer => Norm::Layer { gamma, beta, eps: NORM_EPS },
            NormKind::LayerScalar => Norm::LayerScalar { gamma: gamma[0], beta: beta[0] },
            NormKind::Batch => {
                let mean = self.tensor(&format!("{name}.running_mean"), &[h])?;
                let var = self.tensor(&format!("{name}.running_var"), &[h])?;
                if let Some(x) = var.iter().find(|x| **x < 0.0) {
                    return Err(Error::file(format!("{name}.running_var has the number {x}")));
                }
                let (mut scale, mut shift) = (Vec::new(), Vec::new());
                for (((&gamma, &beta), &mean), &var) in gamma.iter().zip(&beta).zip(&mean).zip(&var)
                {
                    let factor = f64::from(gamma) / (f64::from(var) + NORM_EPS).sqrt();
                    scale.push(factor as f32);
                    shift.push((f64::from(beta) - factor * f64::from(mean)) as f32);
                }
                Norm::Affine { scale, shift }
            }
        })
    }

    fn layer(&mut self, name: &str) -> Result<Layer> {
        let ModelConfig { h, glu, prenorm, .. } = *self.config;
        let outputs = if glu { h.checked_mul(2) } else { Some(h) };
        let outputs = outputs.ok_or_else(|| Error::file(format!("h is {h}")))?;
        let mixer = self.mixer(&format!("{name}.mixer"))?;
        let d = self.tensor(&format!("{name}.mixer.d"), &[h])?;
        let Weights { weight, bias } = self.linear(&format!("{name}.mixer.out"), h, outputs)?;
        let norm = self.norm(&format!("{name}.norm"))?;
        Ok(Layer { mixer, rows: Surround { d, weight, bias, norm, prenorm, glu }.rows()? })
    }

    fn mixer(&mut self, name: &str) -> Result<Mixer> {
        let ModelConfig { h, n, mixer, delta, .. } = *self.config;
        let channels = self.config.channels();
        let mut part = |part: &str, shape: &[usize]| self.tensor(&format!("{name}.{part}"), shape);
        if mixer == MixerKind::Dss {
            let lambda = part("lambda", &[n, 2])?;
            return Ok(Mixer::Dss {
                lambda_re: lambda.iter().step_by(2).copied().collect(),
                lambda_im: lambda.iter().skip(1).step_by(2).copied().collect(),
                delta_log: match delta {
                    Delta::Tied => part("delta_log", &[h])?,
                    Delta::Separate => part("delta_log", &[h, 2])?,
                },
                w: part("w", &[channels, h, n, 2])?,
            });
        }
        let pairs = n / 2;
        let (lambda_re, lambda_im) = (part("lambda_re", &[pairs])?, part("lambda_im", &[pairs])?);
        let c = part("c", &[channels, h, pairs, 2])?;
        let delta_log = part("delta_log", &[h])?;
        Ok(match mixer {
            MixerKind::S4 => {
                let (p, b) = (part("p", &[pairs, 2])?, part("b", &[pairs, 2])?);
                Mixer::S4 { lambda_re, lambda_im, p, b, c, delta_log }
            }
            _ => Mixer::S4d { lambda_re, lambda_im, c, delta_log },
        })
    }
}
