//! The settings of a model, with their defaults, as they are written in configuration files and checkpoints.

use documented::DocumentedFields;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::error::{Error, Result};
use crate::flat;
use crate::io::{ModelIo, OutputKind};
use crate::mixer::{MixerConfig, MixerContext};
use crate::range::validate_count;

/// What normalises the activations of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NormKind {
    /// Each channel over the batch; running statistics in evaluation.
    #[default]
    Batch,
    /// Each position over its channels.
    Layer,
    /// As `Layer` with one gain and one offset for all channels and no ε. Composed form only; a constant position
    /// gives NaN.
    LayerScalar,
}

/// How a sequence becomes one vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pool {
    /// Mean over the true length.
    #[default]
    Mean,
    /// The last true position.
    Last,
    /// A learned vector is put in front of the sequence, and its position is read at the end.
    Cls,
}

/// What tells the blocks where in the sequence a position is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Positions {
    /// Nothing: for mixers that know the order.
    #[default]
    None,
    /// Sines and cosines of t·10000^(−2i/H), interleaved, added to the encoder's output.
    Fixed,
    /// A learned vector per position, added likewise.
    Learned,
}

/// The form of GELU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gelu {
    /// x·Φ(x) with the error function.
    #[default]
    Erf,
    /// Its approximation by tanh.
    Tanh,
}

#[cfg(feature = "kernels")]
impl From<Gelu> for dss_kernels::block::Gelu {
    fn from(gelu: Gelu) -> Self {
        match gelu {
            Gelu::Erf => Self::Erf,
            Gelu::Tanh => Self::Tanh,
        }
    }
}

/// Which implementation runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// Fused where it exists, else composed.
    #[default]
    Auto,
    /// One custom operation per layer, on the CPU backend Flex.
    Fused,
    /// Burn tensor operations, on any backend.
    Composed,
}

/// A stack of blocks. The defaults are the paper's for ListOps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(remote = "Self", deny_unknown_fields, default)]
pub struct ModelConfig {
    /// Number of blocks.
    pub layers: usize,
    /// Channels H.
    pub h: usize,
    /// The mixer, which works along the sequence, and its settings.
    pub mixer: MixerConfig,
    /// Whether positions also see what follows them.
    pub bidirectional: bool,
    /// Normalisation: batch, layer or layer-scalar.
    pub norm: NormKind,
    /// ε of the norms.
    pub norm_eps: f64,
    /// true: x + f(norm(x)), with one more norm after the last block; false: norm(x + f(x)).
    pub prenorm: bool,
    /// Whether there is a norm after the last block (prenorm only).
    pub last_norm: bool,
    /// Initial gain γ of the norm after the last block (prenorm only).
    pub last_gain: f64,
    /// Width of a feed-forward part after the mixer of each block; 0 = none.
    pub ff: usize,
    /// GELU of the feed-forward part: erf, or tanh (its approximation).
    pub gelu: Gelu,
    /// Probability of dropping a channel of a sequence, at least 0 and less than 1.
    pub dropout: f64,
    /// Whether padding is left out of the statistics of BatchNorm.
    pub mask_padding: bool,
    /// Position vectors added to the encoder's output: none, fixed (sines and cosines) or learned.
    pub positions: Positions,
    /// How a sequence becomes one vector: mean (over its true length), last (position) or cls (an extra first position).
    pub pool: Pool,
    /// Width of a hidden relu layer in the head; 0 = none. For pairs, width of their GELU layer; 0 = h.
    pub head_hidden: usize,
    /// Implementation: fused (CPU), composed (any device) or auto.
    pub form: Form,
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self {
            layers: 6,
            h: 128,
            mixer: MixerConfig::default(),
            bidirectional: false,
            norm: NormKind::default(),
            norm_eps: 1e-5,
            prenorm: false,
            last_norm: true,
            last_gain: 1.0,
            ff: 0,
            gelu: Gelu::default(),
            dropout: 0.0,
            mask_padding: false,
            positions: Positions::default(),
            pool: Pool::default(),
            head_hidden: 0,
            form: Form::default(),
        }
    }
}

impl ModelConfig {
    /// Every number is in its range, and the settings go together, for sequences of length `len`.
    pub fn validate(&self, len: usize) -> Result<()> {
        if len == 0 {
            return Err(Error::setting(&[], "the training length must be at least 1, but is 0"));
        }
        validate_count(&["model.layers"], "layers", self.layers)?;
        validate_count(&["model.h"], "h", self.h)?;
        let Self { last_gain, dropout, norm_eps, .. } = *self;
        if !(last_gain > 0.0 && last_gain <= 1e4) {
            let what = format!("last_gain must be above 0 and at most 10000, but is {last_gain}");
            return Err(Error::setting(&["model.last_gain"], what));
        }
        if !(0.0..1.0).contains(&dropout) {
            let what = format!("dropout must be at least 0 and below 1, but is {dropout}");
            return Err(Error::setting(&["model.dropout"], what));
        }
        if !(norm_eps > 0.0 && norm_eps <= 1.0) {
            let what = format!("norm_eps must be above 0 and at most 1, but is {norm_eps}");
            return Err(Error::setting(&["model.norm_eps"], what));
        }
        if !self.last_norm && !self.prenorm {
            let what = "last_norm = false is for prenorm = true: other models have no norm after the last block";
            return Err(Error::setting(&["model.last_norm"], what));
        }
        if self.form == Form::Fused && self.norm == NormKind::LayerScalar {
            let what =
                "norm = \"layer-scalar\" has no fused form: set form to \"auto\" or \"composed\"";
            return Err(Error::setting(&["model.form"], what));
        }
        if self.pool == Pool::Cls && !self.bidirectional {
            let what = "pool = \"cls\" reads a position in front of the sequence, which sees the sequence only if \
                        bidirectional is true";
            return Err(Error::setting(&["model.pool"], what));
        }
        let mixer = self.mixer.settings();
        mixer.validate_model(self)?;
        mixer.validate(&MixerContext::new(self, len))
    }

    /// The same for a model with these ends.
    pub fn validate_for(&self, io: &ModelIo) -> Result<()> {
        io.validate()?;
        if self.pool == Pool::Cls && matches!(io.output, OutputKind::Position { .. }) {
            let what =
                "pool = \"cls\" is for answers about whole sequences, not about every position";
            return Err(Error::setting(&["model.pool"], what));
        }
        self.mixer.settings().validate_io(io)?;
        self.validate(io.len)
    }

    /// Whether there is a norm between the last block and the head.
    pub fn has_last_norm(&self) -> bool {
        self.prenorm && self.last_norm
    }

    /// Width of the hidden layer in a head of pairs.
    pub fn pair_width(&self) -> usize {
        if self.head_hidden == 0 { self.h } else { self.head_hidden }
    }

    /// How many positions the blocks see of a sequence of length l: one more with cls pooling.
    pub fn positions_for(&self, l: usize) -> usize {
        l.saturating_add(usize::from(self.pool == Pool::Cls))
    }
}

/// PE of position t, `[H]`: sin(t·10000^(−2i/H)) at 2i, cos of the same at 2i + 1.
pub fn fixed_position(t: usize, h: usize) -> impl Iterator<Item = f64> {
    (0..h).map(move |c| {
        let angle = t as f64 * 10000f64.powf(-((c - c % 2) as f64) / h as f64);
        if c % 2 == 0 { angle.sin() } else { angle.cos() }
    })
}

impl Serialize for ModelConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

/// Also reads the flat settings of version 0.1.
impl<'de> Deserialize<'de> for ModelConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut model = serde_json::Map::deserialize(deserializer)?;
        flat::nest(&mut model).map_err(de::Error::custom)?;
        Self::deserialize(serde_json::Value::from(model)).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_by_hand() {
        // H = 4: the second pair of channels turns 100 times more slowly.
        let found: Vec<f64> = fixed_position(3, 4).collect();
        let known = [3f64.sin(), 3f64.cos(), 0.03f64.sin(), 0.03f64.cos()];
        assert!(found.iter().zip(known).all(|(a, b)| (a - b).abs() < 1e-15), "{found:?}");
        assert_eq!(fixed_position(0, 3).collect::<Vec<_>>(), [0.0, 1.0, 0.0]);
    }
}
