//! The settings of the mixers, which work along the sequence: one file for each.
//!
//! A new mixer is a file here, with its settings and the tensors they bring, and a line in the list below; then a file
//! in `dss-nn` that trains it and, where it can run without Burn, one in `dss-infer`.

mod attention;
mod bigbird;
mod ckconv;
mod dss;
mod exp_rnn;
mod fnet;
mod gru;
mod h_transformer_1d;
mod heads;
mod linear_attention;
mod lipschitz_rnn;
mod lru;
mod lstm;
mod luna;
mod mega_ema;
mod nrde;
mod nystrom;
mod ode_rnn;
mod performer;
mod recurrent;
mod reformer;
mod s4;
mod s4d;
mod s5;
mod settings;
pub mod ssm;
mod wavegan_d;

use documented::DocumentedFields;
use serde::{Deserialize, Deserializer, Serialize};

use crate::config::{Form, ModelConfig, Pool, Positions};
use crate::error::{Error, Result};
use crate::io::ModelIo;
use crate::tensors::TensorSpec;

pub use attention::AttentionConfig;
pub use bigbird::BigbirdConfig;
pub use ckconv::CkconvConfig;
pub use dss::{Delta, DssConfig, LambdaInit, Variant};
pub use exp_rnn::{ExpRnnConfig, RotationInit};
pub use fnet::FnetConfig;
pub use gru::GruConfig;
pub use h_transformer_1d::HTransformer1dConfig;
pub use linear_attention::LinearAttentionConfig;
pub use lipschitz_rnn::{LipschitzRnnConfig, SolverKind};
pub use lru::LruConfig;
pub use lstm::LstmConfig;
pub use luna::LunaConfig;
pub use mega_ema::MegaEmaConfig;
pub use nrde::NrdeConfig;
pub use nystrom::NystromConfig;
pub use ode_rnn::OdeRnnConfig;
pub use performer::{PerformerConfig, PerformerKernel};
pub use reformer::{ReformerConfig, ReformerSizes, ReformerVariant};
pub use s4::S4Config;
pub use s4d::{Discretisation, S4dConfig, S4dInit};
pub use s5::S5Config;
pub use wavegan_d::{WaveganDConfig, WaveganVariant};

macro_rules! mixers {
    ($($(#[$doc:meta])* $kind:ident($config:ident) = $name:literal,)*) => {
        /// Which mixer, and its settings.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "kind")]
        pub enum MixerConfig {
            $($(#[$doc])* #[serde(rename = $name)] $kind($config),)*
        }

        impl MixerConfig {
            /// The name of every mixer.
            pub const KINDS: &[&str] = &[$($name),*];

            /// The mixer of this name with its defaults.
            pub fn default_for(kind: &str) -> Option<Self> {
                match kind {
                    $($name => Some(Self::$kind($config::default())),)*
                    _ => None,
                }
            }

            /// The mixer of this name with the settings of a table, which has no key `kind`.
            ///
            /// `Deserialize` has to copy a table to look for its `kind`, so that errors do not know their keys.
            pub fn from_table<'de, D: Deserializer<'de>>(kind: &str, table: D) -> Result<Self, D::Error> {
                match kind {
                    $($name => $config::deserialize(table).map(Self::$kind),)*
                    _ => Err(serde::de::Error::unknown_variant(kind, Self::KINDS)),
                }
            }

            /// The settings of the mixer of this name, in their order, each with its doc comment.
            pub fn field_docs(kind: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
                let (names, docs): (&[&str], &[&str]) = match kind {
                    $($name => ($config::FIELD_NAMES, $config::FIELD_DOCS),)*
                    _ => (&[], &[]),
                };
                names.iter().copied().zip(docs.iter().copied())
            }

            /// The name of this mixer.
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Self::$kind(_) => $name,)*
                }
            }

            /// What is known about a mixer from its settings.
            pub fn settings(&self) -> &dyn MixerSettings {
                match self {
                    $(Self::$kind(config) => config,)*
                }
            }
        }

        $(impl From<$config> for MixerConfig {
            fn from(config: $config) -> Self {
                Self::$kind(config)
            }
        })*
    };
}

mixers! {
    /// Diagonal state spaces, in one of the paper's three variants.
    Dss(DssConfig) = "dss",
    /// Diagonal plus low rank (Gu, Goel, Ré 2022): the system the paper compares with.
    S4(S4Config) = "s4",
    /// Diagonal, in the parameterisation of Gu, Gupta, Goel and Ré 2022.
    S4d(S4dConfig) = "s4d",
    /// Softmax attention.
    Attention(AttentionConfig) = "attention",
    /// The gated recurrent unit.
    Gru(GruConfig) = "gru",
    /// Long short-term memory.
    Lstm(LstmConfig) = "lstm",
    /// The linear recurrent unit.
    Lru(LruConfig) = "lru",
    /// One diagonal state space for all channels.
    S5(S5Config) = "s5",
    /// Mega's damped exponential moving average.
    MegaEma(MegaEmaConfig) = "mega-ema",
    /// A recurrent net with an orthogonal matrix.
    ExpRnn(ExpRnnConfig) = "exp-rnn",
    /// A recurrent net from a stable differential equation.
    LipschitzRnn(LipschitzRnnConfig) = "lipschitz-rnn",
    /// A GRU with a differential equation between its positions.
    OdeRnn(OdeRnnConfig) = "ode-rnn",
    /// A differential equation driven by log-signatures.
    Nrde(NrdeConfig) = "nrde",
    /// A convolution whose kernels are a network.
    Ckconv(CkconvConfig) = "ckconv",
    /// Attention with φ = elu + 1 in place of the softmax.
    LinearAttention(LinearAttentionConfig) = "linear-attention",
    /// Attention with relu or random features in place of the softmax.
    Performer(PerformerConfig) = "performer",
    /// A Fourier transform over positions and channels.
    Fnet(FnetConfig) = "fnet",
    /// Attention between blocks, some of them drawn at random.
    Bigbird(BigbirdConfig) = "bigbird",
    /// Attention within the buckets of a hash.
    Reformer(ReformerConfig) = "reformer",
    /// Attention that is coarser for what is further away.
    HTransformer1d(HTransformer1dConfig) = "h-transformer-1d",
    /// Attention through landmarks.
    Nystrom(NystromConfig) = "nystromformer",
    /// Attention packed into a second stream.
    Luna(LunaConfig) = "luna",
    /// Strided convolutions: a stack of its own.
    WaveganD(WaveganDConfig) = "wavegan-d",
}

impl Default for MixerConfig {
    fn default() -> Self {
        Self::Dss(DssConfig::default())
    }
}

impl MixerConfig {
    /// The same mixer for input with r times the step.
    ///
    /// # Errors
    /// If it has no step.
    pub fn at_step(&self, r: f64) -> Result<Self> {
        self.settings().at_step(r).ok_or_else(|| {
            let kind = self.kind();
            let what = format!("mixer = \"{kind}\" has no step, so it cannot run at another rate");
            Error::setting(&["model.mixer.kind"], what)
        })
    }
}

/// What is known about a mixer from its settings.
pub trait MixerSettings {
    /// The name that people know it by, such as "DSS-softmax".
    fn title(&self) -> &'static str;

    /// Its size in words, such as "N = 64 states".
    fn size(&self) -> String;

    /// Every number is in its range, and the settings go together.
    fn validate(&self, context: &MixerContext) -> Result<()>;

    /// Its tensors, with names relative to the mixer.
    fn tensors(&self, context: &MixerContext) -> Vec<TensorSpec>;

    /// The settings for input with r times the step, so that lengths are divided by r; `None` if it has no step.
    fn at_step(&self, _r: f64) -> Option<MixerConfig> {
        None
    }

    /// Whether a state can be carried from window to window of a long stream in training.
    ///
    /// # Errors
    /// What to change.
    fn check_carry(&self) -> Result<()> {
        let what =
            "only mixer = \"dss\" with variant \"exp\" or \"exp-no-scale\" carries its state";
        Err(Error::setting(&["model.mixer.kind"], what))
    }

    /// Bytes that one layer keeps for the backward pass besides activations of the block.
    fn kept_for_backward(&self, _context: &MixerContext) -> u64 {
        0
    }

    /// The same for every sequence of a batch.
    fn kept_per_sequence(&self, _context: &MixerContext) -> u64 {
        0
    }

    /// How many positions a second stream has that passes from layer to layer beside the sequence, if there is one.
    fn side_stream(&self) -> Option<usize> {
        None
    }

    /// What such a model has in place of blocks, if it is a stack of its own.
    fn stages(&self, _model: &ModelConfig, _io: &ModelIo) -> Option<Stages> {
        None
    }

    /// The other settings of the model go together with it.
    fn validate_model(&self, _model: &ModelConfig) -> Result<()> {
        Ok(())
    }

    /// It can give such answers.
    fn validate_io(&self, _io: &ModelIo) -> Result<()> {
        Ok(())
    }

    /// The settings that state spaces share, if it is one.
    fn ssm(&self) -> Option<ssm::SsmSettings> {
        None
    }
}

/// What a model has in place of blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stages {
    /// The tensors of all stages, with their names in the model.
    pub tensors: Vec<TensorSpec>,
    /// Numbers of a sequence that the head reads.
    pub features: usize,
    /// Numbers that all convolutions together give for a sequence.
    pub activations: usize,
    /// Whether an encoder comes before the first stage.
    pub encoded: bool,
    /// The length that every sequence is padded to with zeros.
    pub padded_len: usize,
}

/// What a mixer needs to know about the model around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MixerContext {
    /// H: channels.
    pub h: usize,
    /// L: how many positions it is made for.
    pub len: usize,
    /// Whether positions see what follows them.
    pub bidirectional: bool,
    /// Which implementation runs.
    pub form: Form,
}

impl MixerContext {
    /// For the blocks of a model of sequences of length `len`.
    pub fn new(model: &ModelConfig, len: usize) -> Self {
        let ModelConfig { h, bidirectional, form, .. } = *model;
        Self { h, len: model.positions_for(len), bidirectional, form }
    }

    /// The same with r times the step.
    pub fn at_step(self, r: f64) -> Self {
        Self { len: length_at_step(self.len, r), ..self }
    }
}

/// A number of bytes.
fn saturating_product(sizes: &[usize]) -> u64 {
    sizes.iter().fold(1, |product: u64, &size| product.saturating_mul(size as u64))
}

/// L/r, rounded up, and at least 1 if L is.
pub fn length_at_step(len: usize, r: f64) -> usize {
    ((len as f64 / r).ceil() as usize).max(usize::from(len > 0))
}

impl ModelConfig {
    /// The same model for input with r times the step.
    ///
    /// # Errors
    /// If its mixer has no step, or other settings count the steps of training.
    pub fn at_step(&self, r: f64) -> Result<Self> {
        if !(1e-3..=1e3).contains(&r) {
            let what = format!("the ratio of the rates must be from 0.001 to 1000, but is {r}");
            return Err(Error::setting(&[], what));
        }
        if self.positions != Positions::None {
            let what =
                "a model with positions = \"fixed\" or \"learned\" has one sampling rate only";
            return Err(Error::setting(&["model.positions"], what));
        }
        if self.pool == Pool::Cls {
            let what = "a model with pool = \"cls\" has one sampling rate only";
            return Err(Error::setting(&["model.pool"], what));
        }
        Ok(Self { mixer: self.mixer.at_step(r)?, ..self.clone() })
    }

    /// Whether the layers of such a model can carry their states from window to window in training.
    ///
    /// # Errors
    /// What to change.
    pub fn check_carry(&self) -> Result<()> {
        self.mixer.settings().check_carry()?;
        if self.bidirectional {
            return Err(Error::setting(&["model.bidirectional"], "set bidirectional to false"));
        }
        if self.positions != Positions::None {
            return Err(Error::setting(&["model.positions"], "set positions to \"none\""));
        }
        Ok(())
    }
}
