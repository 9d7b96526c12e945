//! From a file's arrays to a model.

use dss_format::{
    CheckpointMeta, Gelu, InputKind, MixerConfig, MixerContext, ModelConfig, ModelFile, NormKind,
    OutputKind, Pool, Positions,
};
use dss_kernels::frozen::{Norm, gelu, gelu_tanh};
use serde_json::Value;

use crate::arrays::{AllArrays, Arrays};
use crate::error::{Error, Result};
use crate::hash::Hash;
use crate::layer::{Layer, Residual};
use crate::linear::{TwoLayers, relu};
use crate::mixer;
use crate::model::{Encoder, Head, Model, ModelParts};
use crate::positions::PositionVectors;
use crate::side::SideStream;
use crate::stage::Stack;

impl Model {
    /// The model of a file.
    ///
    /// # Errors
    /// If a number is beyond the range of f32.
    pub fn from_file(file: ModelFile) -> Result<Self> {
        let (meta, arrays) = file.into_parts();
        let mut arrays = AllArrays::new(arrays)?;
        let mut hash = Hash::new();
        hash.bytes(description(&meta).map_err(|e| Error::File(e.to_string()))?.as_bytes());
        arrays.hash(&mut hash);
        let mut arrays = arrays.root();
        let config = &meta.model;
        let context = MixerContext::new(config, meta.io.len);
        let encoder = match meta.io.input {
            InputKind::Tokens { .. } => Encoder::Tokens(arrays.take("encoder.weight")),
            InputKind::Values { .. } if config.stages(&meta.io).is_some_and(|s| !s.encoded) => {
                Encoder::Raw
            }
            InputKind::Values { .. } => Encoder::Values(arrays.linear("encoder").map()?),
        };
        let stack = match &config.mixer {
            MixerConfig::WaveganD(own) => Some(Stack::new(own, config, &meta.io, &mut arrays)?),
            _ => None,
        };
        let blocks = if stack.is_some() { 0 } else { config.layers };
        let layers =
            (0..blocks).map(|i| layer(config, context, arrays.within(&format!("layers.{i}"))));
        let layers = layers.collect::<Result<_>>()?;
        let side = config.mixer.settings().side_stream();
        let side = side.map(|_| SideStream::new(config.h, config.positions, arrays.within("side")));
        let mut norm = match config.has_last_norm() {
            true => self::norm(config, arrays.within("norm")),
            false => Norm::Identity,
        };
        let head = head(config, meta.io.output, &mut norm, &mut arrays)?;
        let numbers = ModelParts {
            encoder,
            cls: (config.pool == Pool::Cls).then(|| arrays.take("cls")),
            positions: match config.positions {
                Positions::None => PositionVectors::None,
                Positions::Fixed => PositionVectors::Fixed,
                Positions::Learned => PositionVectors::Learned(arrays.take("positions")),
            },
            layers,
            stack,
            side,
            norm,
            head,
        };
        Ok(Self::new(meta, numbers, hash.0))
    }
}

/// What a saved state is compared by: the settings that differ from the defaults, so that a setting that a later version
/// adds does not turn an old model into another one.
fn description(meta: &CheckpointMeta) -> serde_json::Result<String> {
    let mut settings = serde_json::to_value(&meta.model)?;
    let kind = meta.model.mixer.kind();
    let mixer = MixerConfig::default_for(kind).unwrap_or_default();
    let defaults = serde_json::to_value(ModelConfig { mixer, ..ModelConfig::default() })?;
    strip(&mut settings, &defaults);
    serde_json::to_string(&(kind, settings, &meta.io))
}

/// Removes all entries that are as in `defaults`.
fn strip(settings: &mut Value, defaults: &Value) {
    let Some(entries) = settings.as_object_mut() else { return };
    entries.retain(|key, value| *value != defaults[key]);
    entries.iter_mut().for_each(|(key, value)| strip(value, &defaults[key]));
}

fn layer(config: &ModelConfig, context: MixerContext, mut arrays: Arrays<'_>) -> Result<Layer> {
    let ModelConfig { h, prenorm, .. } = *config;
    let residual = Residual { norm: norm(config, arrays.within("norm")), prenorm, h };
    let (mixer, around) = mixer::load(&config.mixer, context, arrays.within("mixer"), residual)?;
    let ff = if config.ff > 0 {
        let activation = match config.gelu {
            Gelu::Erf => gelu,
            Gelu::Tanh => gelu_tanh,
        };
        let norm = norm(config, arrays.within("ff_norm"));
        let (hidden, out) = (arrays.linear("ff.hidden"), arrays.linear("ff.out"));
        Some((Residual { norm, prenorm, h }, TwoLayers::new(&hidden, activation, &out)?))
    } else {
        None
    };
    Ok(Layer { mixer, around, ff })
}

/// A norm with its statistics fixed.
pub(crate) fn norm(config: &ModelConfig, mut arrays: Arrays<'_>) -> Norm<f32> {
    let eps = config.norm_eps;
    let (gamma, beta) = (arrays.take("gamma"), arrays.take("beta"));
    match config.norm {
        NormKind::Layer => Norm::Layer { gamma, beta, eps },
        NormKind::LayerScalar => Norm::LayerScalar { gamma: gamma[0], beta: beta[0] },
        NormKind::Batch => {
            let (mean, var) = (arrays.take("running_mean"), arrays.take("running_var"));
            let (mut scale, mut shift) = (Vec::new(), Vec::new());
            for (((&gamma, &beta), &mean), &var) in gamma.iter().zip(&beta).zip(&mean).zip(&var) {
                let factor = f64::from(gamma) / (f64::from(var) + eps).sqrt();
                scale.push(factor as f32);
                shift.push((f64::from(beta) - factor * f64::from(mean)) as f32);
            }
            Norm::Affine { scale, shift }
        }
    }
}

/// The head. A BatchNorm before it becomes part of its first map, unless that sees more than the activations.
fn head(
    config: &ModelConfig,
    output: OutputKind,
    norm: &mut Norm<f32>,
    arrays: &mut Arrays<'_>,
) -> Result<Head> {
    let pairs = matches!(output, OutputKind::Pair { .. });
    let one_map = !pairs && config.head_hidden == 0;
    let mut first = arrays.linear(if one_map { "head" } else { "head.hidden" });
    if let (false, Norm::Affine { scale, shift }) = (pairs, &*norm) {
        first.fold(scale, shift);
        *norm = Norm::Identity;
    }
    if one_map {
        return Ok(Head::Linear(first.map()?));
    }
    let activation = if pairs { gelu } else { relu };
    Ok(Head::Hidden(TwoLayers::new(&first, activation, &arrays.linear("head.out"))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_with_its_default_does_not_describe_a_model() {
        let defaults = serde_json::json!({"h": 128, "mixer": {"kind": "dss", "n": 64, "new": 1}});
        let mut settings = serde_json::json!({"h": 8, "mixer": {"kind": "dss", "n": 4, "new": 1}});
        strip(&mut settings, &defaults);
        assert_eq!(settings, serde_json::json!({"h": 8, "mixer": {"n": 4}}));
    }
}
