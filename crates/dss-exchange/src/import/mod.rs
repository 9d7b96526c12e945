//! From another program's checkpoint to a model file of ours.
//!
//! Names tell whose checkpoint it is (`names.rs`), tensors which kernel (`kernel.rs`). What the tensors do not say comes
//! from options, a configuration beside the file or inside it, or is assumed and then said (`choices.rs`). Every tensor
//! is asked for with the shape that it must have; what nobody asked for is surplus (`tensors.rs`).

mod annotated;
mod choices;
mod kernel;
mod names;
mod tensors;

use std::collections::BTreeMap;

use dss_format::encoder::{ENCODER, Encoder};
use dss_format::mixer::{Discretisation, Variant};
use dss_format::{
    Array, CheckpointMeta, InputKind, ModelConfig, ModelFile, ModelIo, NormKind, Numbers,
    OutputKind, Pool,
};
use serde::{Deserialize, Serialize};

use crate::checkpoint::Checkpoint;
use crate::error::{Error, Result};
use crate::nearby::Nearby;
use crate::settings::Settings;
use choices::Choices;
use names::{HeadNames, Names, NormNames};
use tensors::Tensors;

/// How Δ comes from what is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeltaTransform {
    /// Δ = exp(x).
    Exp,
    /// Δ = log(1 + exp(x)).
    Softplus,
}

/// What the head reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pooling {
    /// The mean over the true length.
    Mean,
    /// The last true position.
    Last,
    /// Every position: there is an answer at each.
    None,
}

/// What the tensors do not say. Everything left open comes from the configuration or is assumed.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// The configuration of its training; one inside the file is used if this is `None`.
    pub settings: Option<Settings>,
    /// A configuration that was found near the file, for one that has none inside: see [`Nearby::find`].
    pub nearby: Option<Nearby>,
    /// L: the length that the softmax is normalised over.
    pub len: Option<usize>,
    /// The kernel of DSS.
    pub variant: Option<Variant>,
    /// How a sequence becomes one vector.
    pub pooling: Option<Pooling>,
    /// The length at which kernels are cut.
    pub kernel_len: Option<usize>,
    /// Whether norms come before the mixers.
    pub prenorm: Option<bool>,
    /// How the continuous system becomes steps.
    pub discretisation: Option<Discretisation>,
    /// How Δ is stored.
    pub delta: Option<DeltaTransform>,
}

/// A model that was imported.
#[derive(Debug)]
pub struct Imported {
    /// The model.
    pub file: ModelFile,
    /// Whose checkpoint it was.
    pub origin: &'static str,
    /// What was assumed, a sentence each.
    pub notes: Vec<String>,
}

/// Reads a checkpoint of the DSS authors' program, of the S4 repository or of annotated-s4: the bytes of a file of
/// `torch.save` (plain, of Lightning, or as before torch 1.6), of flax, or of a safetensors file. Nothing in it is
/// executed, and memory stays within a small multiple of the bytes.
///
/// # Errors
/// If it is damaged, of another program, or of a model with an option that ours do not have; a tensor that is missing,
/// surplus or of a wrong shape is named.
pub fn import(bytes: &[u8], options: &ImportOptions) -> Result<Imported> {
    let checkpoint = Checkpoint::open(bytes)?;
    let said = options.settings.as_ref().or(checkpoint.settings.as_ref());
    let nearby = options.nearby.as_ref().filter(|_| said.is_none());
    let settings = said.or(nearby.map(|nearby| &nearby.settings)).cloned();
    let imported = if annotated::is_one(&checkpoint) {
        annotated::import(&checkpoint, settings, options)
    } else {
        import_torch(&checkpoint, settings, options)
    };
    let Some(Nearby { path, .. }) = nearby else { return imported };
    let note = format!("the configuration is {}; give --config for another", path.display());
    match imported {
        Ok(mut imported) => {
            imported.notes.insert(0, note);
            Ok(imported)
        }
        Err(error) => Err(error.with(&note)),
    }
}

/// Of the programs that use PyTorch.
fn import_torch(
    checkpoint: &Checkpoint<'_>,
    settings: Option<Settings>,
    options: &ImportOptions,
) -> Result<Imported> {
    let names = Names::recognise(checkpoint)?;
    let mut choices = Choices::new(settings, &names);
    let tensors = Tensors::new(checkpoint);
    names.refuse_tensors(&tensors)?;
    choices.refuse_settings()?;

    let mut arrays = BTreeMap::new();
    let encoder = &names.encoder;
    let weight = tensors.shape(&format!("{encoder}.weight"))?;
    let &[first, second] = weight else {
        let what = format!("{encoder}.weight must have two axes, but is {weight:?}");
        return Err(Error::model(what));
    };
    let linear = tensors.has(&format!("{encoder}.bias"));
    let (input, h) = match linear {
        true => (InputKind::Values { channels: second }, first),
        false => (InputKind::Tokens { vocab: first }, second),
    };
    let mut insert = |name: String, shape: &[usize], numbers: Vec<f64>| {
        arrays.insert(name, array(shape, numbers));
    };
    insert("encoder.weight".into(), weight, tensors.take(&format!("{encoder}.weight"), weight)?);
    if linear {
        insert("encoder.bias".into(), &[h], tensors.take(&format!("{encoder}.bias"), &[h])?);
    }

    let layers = names.layers;
    let prenorm = names.prenorm(&tensors, &mut choices, options.prenorm)?;
    let norm = norm_kind(&tensors, &names.norm(0))?;
    let kernel = kernel::Kernel::recognise(&tensors, &names, h, &mut choices, options)?;
    for i in 0..layers {
        for (name, shape, numbers) in kernel.layer(&tensors, &names, i)? {
            insert(format!("layers.{i}.mixer.{name}"), &shape, numbers);
        }
        for (name, shape, numbers) in norm_arrays(&tensors, norm, &names.norm(i), h)? {
            insert(format!("layers.{i}.norm.{name}"), &shape, numbers);
        }
    }
    let last_norm = prenorm && names.last_norm.is_some();
    if let (true, Some(last)) = (prenorm, &names.last_norm) {
        for (name, shape, numbers) in norm_arrays(&tensors, norm, last, h)? {
            insert(format!("norm.{name}"), &shape, numbers);
        }
    }

    let pooling = choices.pooling(options.pooling)?;
    let mut head_hidden = 0;
    let outputs = match &names.head {
        HeadNames::Linear(name) => {
            let outputs = tensors.rows(&format!("{name}.weight"))?;
            for (ours, numbers) in tensors.linear(name, h, outputs)? {
                let shape = if ours == "weight" { vec![outputs, h] } else { vec![outputs] };
                insert(format!("head.{ours}"), &shape, numbers);
            }
            outputs
        }
        HeadNames::Pair { hidden, out } => {
            let width = tensors.rows(&format!("{hidden}.weight"))?;
            let outputs = tensors.rows(&format!("{out}.weight"))?;
            head_hidden = if width == h { 0 } else { width };
            let parts = [("head.hidden", hidden, 4 * h, width), ("head.out", out, width, outputs)];
            for (ours, theirs, inputs, rows) in parts {
                for (part, numbers) in tensors.linear(theirs, inputs, rows)? {
                    let shape = if part == "weight" { vec![rows, inputs] } else { vec![rows] };
                    insert(format!("{ours}.{part}"), &shape, numbers);
                }
            }
            outputs
        }
    };
    tensors.refuse_surplus()?;

    let output = match (&names.head, pooling) {
        (HeadNames::Pair { .. }, Pooling::None) => {
            return Err(Error::Unknown("a model of pairs has no answer at every position".into()));
        }
        (HeadNames::Pair { .. }, _) => OutputKind::Pair { outputs },
        (_, Pooling::None) => OutputKind::Position { outputs },
        _ => OutputKind::Sequence { outputs },
    };
    let model = ModelConfig {
        layers,
        h,
        bidirectional: kernel.bidirectional(),
        mixer: kernel.mixer(),
        norm,
        prenorm,
        last_norm: last_norm || !prenorm,
        dropout: choices.dropout(),
        pool: if pooling == Pooling::Last { Pool::Last } else { Pool::Mean },
        head_hidden,
        ..ModelConfig::default()
    };
    let io = ModelIo { input, output, len: kernel.len };
    finished(&model, &io, arrays, names.origin, choices.notes)
}

/// In the precision of our files.
fn array(shape: &[usize], numbers: Vec<f64>) -> Array {
    let numbers = Numbers::F32(numbers.into_iter().map(|x| x as f32).collect());
    Array { shape: shape.to_vec(), numbers }
}

fn finished(
    model: &ModelConfig,
    io: &ModelIo,
    arrays: BTreeMap<String, Array>,
    origin: &'static str,
    notes: Vec<String>,
) -> Result<Imported> {
    let mut meta = CheckpointMeta::new(model, io);
    meta.extra.insert("origin".into(), origin.into());
    if let Some(encoder) = table_encoder(io) {
        let text = serde_json::to_string(&encoder).map_err(|e| Error::file(e.to_string()))?;
        meta.extra.insert(ENCODER.into(), text);
    }
    model.validate_for(io)?;
    Ok(Imported { file: ModelFile::new(meta, arrays)?, origin, notes })
}

/// Tables of tokens or numbers, so that `dss predict` can read them.
fn table_encoder(io: &ModelIo) -> Option<Encoder> {
    let len = io.len;
    match (io.input, io.output) {
        (_, OutputKind::Pair { .. }) => None,
        (InputKind::Tokens { vocab }, _) => Some(Encoder::TokenRows { vocab, len }),
        (InputKind::Values { channels }, _) => Some(Encoder::ValueSteps { channels, len }),
    }
}

fn norm_kind(tensors: &Tensors<'_>, names: &NormNames) -> Result<NormKind> {
    let prefix = &names.0;
    if tensors.has(&format!("{prefix}.s")) {
        return Ok(NormKind::LayerScalar);
    }
    if tensors.has(&format!("{prefix}.running_mean")) {
        return Ok(NormKind::Batch);
    }
    let affine = [format!("{prefix}.ln.weight"), format!("{prefix}.weight")];
    if affine.iter().any(|name| tensors.has(name)) {
        return Ok(NormKind::Layer);
    }
    let what =
        format!("{prefix}.* has no tensors: layers without a norm, or with one of another kind");
    Err(Error::unsupported("norm", what))
}

type NamedArray = (&'static str, Vec<usize>, Vec<f64>);

fn norm_arrays(
    tensors: &Tensors<'_>,
    kind: NormKind,
    names: &NormNames,
    h: usize,
) -> Result<Vec<NamedArray>> {
    let prefix = &names.0;
    let list: &[(&str, &str)] = match kind {
        NormKind::LayerScalar => &[("gamma", "s"), ("beta", "m")],
        NormKind::Layer if tensors.has(&format!("{prefix}.ln.weight")) => {
            &[("gamma", "ln.weight"), ("beta", "ln.bias")]
        }
        NormKind::Layer => &[("gamma", "weight"), ("beta", "bias")],
        NormKind::Batch => &[
            ("gamma", "weight"),
            ("beta", "bias"),
            ("running_mean", "running_mean"),
            ("running_var", "running_var"),
        ],
    };
    let size = if kind == NormKind::LayerScalar { 1 } else { h };
    let mut all = Vec::new();
    for (ours, theirs) in list {
        let name = format!("{prefix}.{theirs}");
        let numbers = tensors.take(&name, &[size])?;
        if let (&"running_var", Some(x)) = (ours, numbers.iter().find(|x| **x < 0.0)) {
            return Err(Error::model(format!("{name} has the variance {x}")));
        }
        all.push((*ours, vec![size], numbers));
    }
    tensors.ignore(&format!("{prefix}.num_batches_tracked"));
    Ok(all)
}
