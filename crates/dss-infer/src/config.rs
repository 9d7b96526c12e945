//! What a model file says about its model: the settings that matter for running it.
//!
//! Settings of the training alone are read over; ones that this version does not know are refused, since they may change
//! what the model computes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The only format there is so far.
pub const FORMAT: &str = "dss-1";

/// Which state space the kernels are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mixer {
    /// Diagonal, in one of the paper's three variants.
    #[default]
    Dss,
    /// Diagonal plus low rank.
    S4,
    /// Diagonal, in conjugate pairs.
    S4d,
}

/// The three kernels of DSS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// Rows normalised by their sum; Re λ may have any sign.
    #[default]
    Softmax,
    /// Λ = −exp(Λ_re) + i·Λ_im.
    Exp,
    /// As `Exp`, without the factor Λ⁻¹(e^{ΛΔ} − I).
    ExpNoScale,
}

/// One Δ per channel, or one for the real and one for the imaginary part of Λ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Delta {
    /// `[H, 2]`
    #[default]
    Separate,
    /// `[H]`
    Tied,
}

/// How S4D becomes steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Discretisation {
    /// Zero-order hold.
    #[default]
    Zoh,
    /// Tustin's rule.
    Bilinear,
}

/// What normalises the activations of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NormKind {
    /// Each channel by its running statistics.
    #[default]
    Batch,
    /// Each position over its channels.
    Layer,
    /// As `Layer` with one gain and one offset for all channels and no ε.
    LayerScalar,
}

/// How a sequence becomes one vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pool {
    /// The mean over all positions.
    #[default]
    Mean,
    /// The last position.
    Last,
}

/// A stack of blocks.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelConfig {
    /// Blocks.
    pub layers: usize,
    /// H: channels.
    pub h: usize,
    /// N: states per channel.
    pub n: usize,
    /// Which state space.
    pub mixer: Mixer,
    /// Which kernel of DSS.
    pub variant: Variant,
    /// One Δ per channel of DSS or two.
    pub delta: Delta,
    /// How S4D becomes steps.
    pub discretisation: Discretisation,
    /// 0, or the length at which the kernels are cut.
    pub kernel_len: usize,
    /// A second kernel looks ahead.
    pub bidirectional: bool,
    /// The output projection has 2H outputs that gate each other.
    pub glu: bool,
    /// Which norm.
    pub norm: NormKind,
    /// x + f(norm(x)) and one more norm at the end, or norm(x + f(x)).
    pub prenorm: bool,
    /// How a sequence becomes one vector.
    pub pool: Pool,
}

/// Settings that only the training needs.
const TRAINING: [&str; 8] = [
    "delta_min",
    "delta_max",
    "lambda_init",
    "s4d_init",
    "last_gain",
    "dropout",
    "mask_padding",
    "form",
];

impl Default for ModelConfig {
    fn default() -> Self {
        Self {
            layers: 6,
            h: 128,
            n: 64,
            mixer: Mixer::default(),
            variant: Variant::default(),
            delta: Delta::default(),
            discretisation: Discretisation::default(),
            kernel_len: 0,
            bidirectional: false,
            glu: false,
            norm: NormKind::default(),
            prenorm: false,
            pool: Pool::default(),
        }
    }
}

impl ModelConfig {
    /// C: kernels per channel.
    pub fn channels(&self) -> usize {
        if self.bidirectional { 2 } else { 1 }
    }

    /// How many taps the kernels have for sequences of length l.
    pub fn taps(&self, l: usize) -> usize {
        if self.kernel_len == 0 { l } else { l.min(self.kernel_len) }
    }
}

/// What a sequence is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
pub enum InputKind {
    /// Token ids below `vocab`.
    Tokens {
        /// How many ids there are.
        vocab: usize,
    },
    /// Vectors of numbers.
    Values {
        /// Numbers per position.
        channels: usize,
    },
}

/// What a model says about its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
pub enum OutputKind {
    /// One vector per sequence.
    Sequence {
        /// Its size.
        outputs: usize,
    },
    /// One vector per position.
    Position {
        /// Its size.
        outputs: usize,
    },
    /// One vector per two sequences.
    Pair {
        /// Its size.
        outputs: usize,
    },
}

impl OutputKind {
    /// The size of an output vector.
    pub fn outputs(&self) -> usize {
        match *self {
            Self::Sequence { outputs } | Self::Position { outputs } | Self::Pair { outputs } => {
                outputs
            }
        }
    }
}

/// The two ends of a model, and the length it was trained at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Io {
    /// What comes in.
    pub input: InputKind,
    /// What goes out.
    pub output: OutputKind,
    /// L: the training length.
    pub len: usize,
}

/// Everything that a model file says besides its numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Meta {
    /// The model.
    pub model: ModelConfig,
    /// Its two ends and its training length.
    pub io: Io,
    /// The task's settings; null if there is none.
    pub task: serde_json::Value,
    /// Names of the classes; empty if there are none.
    pub labels: Vec<String>,
    /// Anything else, such as how files become input.
    pub extra: BTreeMap<String, String>,
}

impl Meta {
    pub(crate) fn from_text(text: &str) -> Result<Self> {
        #[derive(Deserialize)]
        struct Raw {
            format: String,
            model: serde_json::Map<String, serde_json::Value>,
            io: Io,
            #[serde(default)]
            task: serde_json::Value,
            #[serde(default)]
            labels: Vec<String>,
            #[serde(default)]
            extra: BTreeMap<String, String>,
        }
        let invalid = |e: serde_json::Error| Error::file(format!("its description is wrong: {e}"));
        let value: serde_json::Value = serde_json::from_str(text).map_err(invalid)?;
        if let Some(format) = value.get("format").and_then(|f| f.as_str())
            && format != FORMAT
        {
            let what = format!("its format is `{format}`, and this version reads `{FORMAT}` only");
            return Err(Error::file(what));
        }
        let mut raw: Raw = serde_json::from_value(value).map_err(invalid)?;
        debug_assert_eq!(raw.format, FORMAT);
        TRAINING.iter().for_each(|key| drop(raw.model.remove(*key)));
        let model: ModelConfig = serde_json::from_value(raw.model.into()).map_err(|e| {
            Error::file(format!("its settings are not those of this version of the program: {e}"))
        })?;
        let meta = Self { model, io: raw.io, task: raw.task, labels: raw.labels, extra: raw.extra };
        meta.validate()?;
        Ok(meta)
    }

    fn validate(&self) -> Result<()> {
        let ModelConfig { layers, h, n, mixer, .. } = self.model;
        let input = match self.io.input {
            InputKind::Tokens { vocab } => vocab,
            InputKind::Values { channels } => channels,
        };
        let sizes = [
            ("layers", layers),
            ("h", h),
            ("n", n),
            ("the size of its input", input),
            ("the number of its outputs", self.io.output.outputs()),
            ("its training length", self.io.len),
        ];
        if let Some((name, _)) = sizes.iter().find(|(_, size)| *size == 0) {
            return Err(Error::file(format!("{name} is 0")));
        }
        if mixer != Mixer::Dss && !n.is_multiple_of(2) {
            return Err(Error::file(format!("n must be even, but is {n}")));
        }
        let outputs = self.io.output.outputs();
        if !self.labels.is_empty() && self.labels.len() != outputs {
            let count = self.labels.len();
            return Err(Error::file(format!("it has {outputs} outputs, but {count} labels")));
        }
        Ok(())
    }
}
