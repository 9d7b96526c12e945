//! A model with the names that its authors' programs use: DSS as in ag1988/dss, S4D as `example.py` with `s4d.py`.

use std::collections::BTreeMap;

use dss_format::mixer::{Discretisation, DssConfig, S4dConfig, Variant};
use dss_format::{
    Gelu, InputKind, MixerConfig, ModelConfig, ModelFile, ModelIo, NormKind, OutputKind, Pool,
    Positions,
};
use safetensors::Dtype;
use safetensors::tensor::TensorView;

use super::reader::Arrays;
use crate::error::{Error, Result};

/// Tensors for `load_state_dict`, and the configuration of the model that they belong to.
pub struct TorchFiles {
    /// A safetensors file.
    pub tensors: Vec<u8>,
    /// The model part of its `config.yaml`.
    pub config: String,
}

/// The model with the authors' names.
///
/// # Errors
/// With the reason, if their programs have no such model.
pub fn to_torch(file: &ModelFile) -> Result<TorchFiles> {
    let (config, io) = (&file.meta().model, &file.meta().io);
    check(config)?;
    let mut out = Tensors { arrays: Arrays::new(file), all: BTreeMap::new() };
    let config = match &config.mixer {
        MixerConfig::Dss(dss) => out.dss(config, dss, io)?,
        MixerConfig::S4d(s4d) => out.s4d(config, s4d, io)?,
        other => {
            return Err(no(format!("its mixer is {}; only dss and s4d are written", other.kind())));
        }
    };
    Ok(TorchFiles { tensors: out.into_bytes()?, config })
}

fn no(what: impl Into<String>) -> Error {
    Error::Export { format: "tensors for the authors' programs", what: what.into() }
}

/// What neither program has.
fn check(config: &ModelConfig) -> Result<()> {
    let tanh = config.mixer.settings().ssm().is_some_and(|ssm| ssm.gelu == Gelu::Tanh);
    let refused = [
        (config.ff > 0, "they have no feed-forward parts (ff)"),
        (config.positions != Positions::None, "they have no position vectors (positions)"),
        (config.pool == Pool::Cls, "they have no pool = \"cls\""),
        (config.norm_eps != 1e-5, "their norms have ε = 1e-5 (norm_eps)"),
        (tanh, "their layers have the exact GELU (ssm_gelu)"),
    ];
    match refused.into_iter().find(|(is_so, _)| *is_so) {
        Some((_, what)) => Err(no(what)),
        None => Ok(()),
    }
}

struct Tensors<'a> {
    arrays: Arrays<'a>,
    all: BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)>,
}

impl Tensors<'_> {
    fn put(&mut self, name: String, shape: &[usize], numbers: &[f64]) {
        let bytes = numbers.iter().flat_map(|x| (*x as f32).to_le_bytes()).collect();
        self.all.insert(name, (Dtype::F32, shape.to_vec(), bytes));
    }

    /// Ours under their name.
    fn copy(&mut self, ours: &str, theirs: String, shape: &[usize]) {
        let numbers = self.arrays.get(ours);
        self.put(theirs, shape, &numbers);
    }

    fn into_bytes(self) -> Result<Vec<u8>> {
        let failed = |e| no(format!("{e}"));
        let mut views = Vec::new();
        for (name, (dtype, shape, bytes)) in &self.all {
            let view = TensorView::new(*dtype, shape.clone(), bytes).map_err(failed)?;
            views.push((name, view));
        }
        safetensors::serialize(views, None).map_err(failed)
    }

    fn encoder(&mut self, io: &ModelIo, h: usize) {
        match io.input {
            InputKind::Tokens { vocab } => {
                self.copy("encoder.weight", "encoder.weight".into(), &[vocab, h]);
            }
            InputKind::Values { channels } => {
                self.copy("encoder.weight", "encoder.weight".into(), &[h, channels]);
                self.copy("encoder.bias", "encoder.bias".into(), &[h]);
            }
        }
    }

    fn norm(&mut self, kind: NormKind, ours: &str, theirs: &str, h: usize) {
        let (size, names): (usize, &[(&str, &str)]) = match kind {
            NormKind::LayerScalar => (1, &[("gamma", "s"), ("beta", "m")]),
            NormKind::Layer => (h, &[("gamma", "ln.weight"), ("beta", "ln.bias")]),
            NormKind::Batch => (
                h,
                &[
                    ("gamma", "weight"),
                    ("beta", "bias"),
                    ("running_mean", "running_mean"),
                    ("running_var", "running_var"),
                ],
            ),
        };
        for (part, name) in names {
            self.copy(&format!("{ours}.{part}"), format!("{theirs}.{name}"), &[size]);
        }
        if kind == NormKind::Batch {
            let count = (Dtype::I64, Vec::new(), 0i64.to_le_bytes().to_vec());
            self.all.insert(format!("{theirs}.num_batches_tracked"), count);
        }
    }

    /// ag1988/dss, with `transposed: true`.
    fn dss(&mut self, config: &ModelConfig, dss: &DssConfig, io: &ModelIo) -> Result<String> {
        let ModelConfig { h, layers, norm, prenorm, bidirectional, .. } = *config;
        let pairs = matches!(io.output, OutputKind::Pair { .. });
        if prenorm && !config.last_norm {
            return Err(no("theirs have a norm after the last block (last_norm)"));
        }
        if dss.ssms != 1 {
            return Err(no("theirs have one Λ for all channels (ssms)"));
        }
        if bidirectional && dss.kernel_len > 0 {
            return Err(no("theirs cannot cut kernels of two directions (kernel_len)"));
        }
        if config.head_hidden > 0 && !pairs {
            return Err(no("their heads have no hidden layer (head_hidden)"));
        }
        let (n, kernels) = (dss.n, if bidirectional { 2 } else { 1 });
        self.encoder(io, h);
        for i in 0..layers {
            let (ours, theirs) = (format!("layers.{i}.mixer"), format!("model.layers.{i}.layer"));
            let lambda = self.arrays.get(&format!("{ours}.lambda"));
            if dss.variant == Variant::Softmax {
                self.put(format!("{theirs}.kernel.Lambda"), &[n, 2], &lambda);
            } else {
                let part =
                    |skip| -> Vec<f64> { lambda.iter().skip(skip).step_by(2).copied().collect() };
                self.put(format!("{theirs}.kernel.Lambda_log_neg_re"), &[n], &part(0));
                self.put(format!("{theirs}.kernel.Lambda_im"), &[n], &part(1));
            }
            let delta = [h, dss.delta.per_channel()];
            let delta = if delta[1] == 1 { &delta[..1] } else { &delta[..] };
            self.copy(&format!("{ours}.delta_log"), format!("{theirs}.kernel.log_dt"), delta);
            self.copy(&format!("{ours}.w"), format!("{theirs}.kernel.W"), &[kernels, h, n, 2]);
            self.copy(&format!("{ours}.d"), format!("{theirs}.D"), &[1, h]);
            let (out, rows) = match dss.glu {
                true => (format!("{theirs}.output_linear.0"), 2 * h),
                false => (format!("{theirs}.output_linear"), h),
            };
            self.copy(&format!("{ours}.out.weight"), format!("{out}.weight"), &[rows, h]);
            self.copy(&format!("{ours}.out.bias"), format!("{out}.bias"), &[rows, 1]);
            self.norm(norm, &format!("layers.{i}.norm"), &format!("model.layers.{i}.norm.norm"), h);
        }
        if prenorm {
            self.norm(norm, "norm", "model.norm.norm", h);
        }
        let outputs = io.output.outputs();
        if pairs {
            let (width, theirs) = (config.pair_width(), "decoder.retrieval.classifier");
            self.copy("head.hidden.weight", format!("{theirs}.0.weight"), &[width, 4 * h]);
            self.copy("head.hidden.bias", format!("{theirs}.0.bias"), &[width]);
            self.copy("head.out.weight", format!("{theirs}.2.weight"), &[outputs, width]);
            self.copy("head.out.bias", format!("{theirs}.2.bias"), &[outputs]);
        } else {
            self.copy("head.weight", "decoder.output_transform.weight".into(), &[outputs, h]);
            self.copy("head.bias", "decoder.output_transform.bias".into(), &[outputs]);
        }
        Ok(dss_config(config, dss, io))
    }

    /// `S4Model` of example.py with the layers of s4d.py; Λ is repeated for every channel.
    fn s4d(&mut self, config: &ModelConfig, s4d: &S4dConfig, io: &ModelIo) -> Result<String> {
        let ModelConfig { h, layers, prenorm, .. } = *config;
        let values = matches!(io.input, InputKind::Values { .. });
        let mean = matches!(io.output, OutputKind::Sequence { .. }) && config.pool == Pool::Mean;
        let refused = [
            (s4d.discretisation != Discretisation::Zoh, "s4d.py has zoh only (discretisation)"),
            (!s4d.glu, "s4d.py has gated projections only (glu)"),
            (s4d.kernel_len > 0, "s4d.py does not cut kernels (kernel_len)"),
            (config.bidirectional, "s4d.py has one direction (bidirectional)"),
            (config.norm != NormKind::Layer, "example.py has LayerNorm only (norm)"),
            (config.has_last_norm(), "example.py has no norm after the last block (last_norm)"),
            (config.head_hidden > 0, "example.py has a head without a hidden layer (head_hidden)"),
            (!values, "example.py reads numbers, not tokens"),
            (!mean, "example.py answers by the mean of all positions (pool)"),
        ];
        if let Some((_, what)) = refused.into_iter().find(|(is_so, _)| *is_so) {
            return Err(no(what));
        }
        let pairs = s4d.n / 2;
        self.encoder(io, h);
        for i in 0..layers {
            let (ours, theirs) = (format!("layers.{i}.mixer"), format!("s4_layers.{i}"));
            for (own, name) in [("lambda_re", "log_A_real"), ("lambda_im", "A_imag")] {
                let rows = self.arrays.get(&format!("{ours}.{own}"));
                let all: Vec<f64> = rows.iter().cycle().take(h * pairs).copied().collect();
                self.put(format!("{theirs}.kernel.{name}"), &[h, pairs], &all);
            }
            self.copy(&format!("{ours}.c"), format!("{theirs}.kernel.C"), &[h, pairs, 2]);
            self.copy(&format!("{ours}.delta_log"), format!("{theirs}.kernel.log_dt"), &[h]);
            self.copy(&format!("{ours}.d"), format!("{theirs}.D"), &[h]);
            let out = format!("{theirs}.output_linear.0");
            self.copy(&format!("{ours}.out.weight"), format!("{out}.weight"), &[2 * h, h, 1]);
            self.copy(&format!("{ours}.out.bias"), format!("{out}.bias"), &[2 * h]);
            for (own, name) in [("gamma", "weight"), ("beta", "bias")] {
                self.copy(&format!("layers.{i}.norm.{own}"), format!("norms.{i}.{name}"), &[h]);
            }
        }
        let outputs = io.output.outputs();
        self.copy("head.weight", "decoder.weight".into(), &[outputs, h]);
        self.copy("head.bias", "decoder.bias".into(), &[outputs]);
        let InputKind::Values { channels } = io.input else { unreachable!("it was checked") };
        Ok(format!(
            "d_input: {channels}\nd_output: {outputs}\nd_model: {h}\nn_layers: {layers}\nprenorm: {prenorm}\n\
             dropout: {}\nlayer:\n  class_: S4D\n  d_state: {}\n",
            config.dropout, s4d.n
        ))
    }
}

/// The model part of Hydra's configuration.
fn dss_config(config: &ModelConfig, dss: &DssConfig, io: &ModelIo) -> String {
    let norm = match config.norm {
        NormKind::Batch => "batch",
        NormKind::LayerScalar => "layer",
        NormKind::Layer => "{_name_: layer, scalar: false}",
    };
    let version = match dss.variant {
        Variant::Softmax => "softmax",
        Variant::Exp => "exp",
        Variant::ExpNoScale => "exp-no-scale",
    };
    let or_null = |text: String, is_there: bool| if is_there { text } else { "null".to_owned() };
    let (encoder, input) = match io.input {
        InputKind::Tokens { vocab } => ("embedding", format!("n_tokens: {vocab}")),
        InputKind::Values { channels } => ("linear", format!("d_input: {channels}")),
    };
    let mode = if config.pool == Pool::Last { "last" } else { "pool" };
    let decoder = match io.output {
        OutputKind::Pair { .. } => {
            let width = config.pair_width();
            format!(
                "  _name_: retrieval\n  mode: {mode}\n  nli: true\n  activation: gelu\n  d_model: {width}"
            )
        }
        _ => format!("  _name_: sequence\n  mode: {mode}"),
    };
    format!(
        "model:\n  _name_: model\n  prenorm: {prenorm}\n  transposed: true\n  n_layers: {layers}\n  d_model: {h}\n  \
         residual: R\n  pool: {{_name_: sample, pool: 1, expand: 1}}\n  norm: {norm}\n  dropout: {dropout}\n  layer:\n    \
         _name_: dss\n    d_state: {n}\n    bidirectional: {two}\n    activation: gelu\n    postact: {postact}\n    \
         hyper_act: null\n    dropout: {dropout}\n    dt_min: {low}\n    dt_max: {high}\n    sep_dt_re_im: {separate}\n    \
         max_kernel_length: {taps}\n    version: {version}\nencoder: {encoder}\ndecoder:\n{decoder}\ndataset:\n  \
         l_max: {len}\n  d_output: {outputs}\n  {input}\n",
        prenorm = config.prenorm,
        layers = config.layers,
        h = config.h,
        dropout = config.dropout,
        n = dss.n,
        two = config.bidirectional,
        postact = or_null("glu".into(), dss.glu),
        low = dss.delta_min,
        high = dss.delta_max,
        separate = dss.delta.per_channel() == 2,
        taps = or_null(dss.kernel_len.to_string(), dss.kernel_len > 0),
        len = io.len,
        outputs = io.output.outputs(),
    )
}
