//! What a model is made of: every choice, with its default, as it stands in configuration files and checkpoints.

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

use crate::block::BlockConfig;
use crate::error::{Error, Result};
use crate::layer::SsmLayerConfig;

/// Which state space a layer's kernels are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MixerKind {
    /// Diagonal, in one of the paper's three variants.
    #[default]
    Dss,
    /// Diagonal plus low rank (Gu, Goel, Ré 2022): the system the paper compares with.
    S4,
    /// Diagonal, in the parameterisation of Gu, Gupta, Goel and Ré 2022.
    S4d,
}

/// The three kernels of the paper (§3.1, §4); of DSS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// Prop. 1(b): rows normalised by their sum; Re λ may have any sign.
    #[default]
    Softmax,
    /// Prop. 1(a) with Λ = −exp(Λ_re) + i·Λ_im.
    Exp,
    /// As `Exp`, without the factor Λ⁻¹(e^{ΛΔ} − I).
    ExpNoScale,
}

impl From<Variant> for dss_kernels::kernel::Variant {
    fn from(variant: Variant) -> Self {
        match variant {
            Variant::Softmax => Self::Softmax,
            Variant::Exp => Self::Exp,
            Variant::ExpNoScale => Self::ExpNoScale,
        }
    }
}

/// One Δ per channel, or one for the real and one for the imaginary part of Λ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Delta {
    /// Δ_log: `[H, 2]`, (re, im) (the code that made the paper's numbers).
    #[default]
    Separate,
    /// Δ_log: `[H]` (the paper's text).
    Tied,
}

impl Delta {
    /// Values of Δ_log per channel.
    pub fn per_channel(self) -> usize {
        dss_kernels::kernel::Delta::from(self).per_channel()
    }
}

impl From<Delta> for dss_kernels::kernel::Delta {
    fn from(delta: Delta) -> Self {
        match delta {
            Delta::Separate => Self::Separate,
            Delta::Tied => Self::Tied,
        }
    }
}

/// How Λ starts out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LambdaInit {
    /// Eigenvalues of the skew-symmetric part of HiPPO (§3.3).
    #[default]
    SkewHippo,
    /// Both parts ~ N(0, 1) (§4.1); folded to Re λ < 0 for the exp variants.
    Random,
}

/// How Λ of S4D starts out; Re λ = −½ in all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum S4dInit {
    /// As Λ of S4: the normal part of HiPPO-LegS.
    #[default]
    Legs,
    /// Im λ_n = πn.
    Lin,
    /// Im λ_n = (N/π)·(N/(2n+1) − 1).
    Inv,
}

impl From<S4dInit> for dss_kernels::init::S4dInit {
    fn from(init: S4dInit) -> Self {
        match init {
            S4dInit::Legs => Self::Legs,
            S4dInit::Lin => Self::Lin,
            S4dInit::Inv => Self::Inv,
        }
    }
}

/// How the continuous system of S4D becomes steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Discretisation {
    /// Zero-order hold: the input is constant over a step.
    #[default]
    Zoh,
    /// Tustin's rule, as in S4.
    Bilinear,
}

impl From<Discretisation> for dss_kernels::s4d::Discretisation {
    fn from(discretisation: Discretisation) -> Self {
        match discretisation {
            Discretisation::Zoh => Self::ZeroOrderHold,
            Discretisation::Bilinear => Self::Bilinear,
        }
    }
}

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
#[serde(deny_unknown_fields, default)]
pub struct ModelConfig {
    /// Number of blocks.
    pub layers: usize,
    /// Channels H.
    pub h: usize,
    /// States N per channel: at most 512 with skew-hippo; even for s4 and s4d, which store N/2 conjugate pairs.
    pub n: usize,
    /// State space of the layers: dss, s4 or s4d.
    pub mixer: MixerKind,
    /// Kernel of dss: softmax, exp or exp-no-scale.
    pub variant: Variant,
    /// Time scales Δ of dss: separate (one for Re Λ, one for Im Λ) or tied (one per channel, as s4 and s4d have).
    pub delta: Delta,
    /// Smallest Δ at initialisation.
    pub delta_min: f64,
    /// Largest Δ at initialisation.
    pub delta_max: f64,
    /// Initial Λ of dss: skew-hippo or random.
    pub lambda_init: LambdaInit,
    /// Initial Λ of s4d: legs, lin or inv.
    pub s4d_init: S4dInit,
    /// Discretisation of s4d: zoh (zero-order hold) or bilinear.
    pub discretisation: Discretisation,
    /// Length of the convolution kernel: a layer sees no further back than this; 0 = the length of the sequence.
    pub kernel_len: usize,
    /// Whether a second kernel reads the sequence backwards.
    pub bidirectional: bool,
    /// Whether the output projection is gated: 2H outputs, one half gating the other.
    pub glu: bool,
    /// Normalisation: batch, layer or layer-scalar.
    pub norm: NormKind,
    /// true: x + f(norm(x)), with one more norm after the last block; false: norm(x + f(x)).
    pub prenorm: bool,
    /// Initial gain γ of the norm after the last block (prenorm only).
    pub last_gain: f64,
    /// Probability of dropping a channel of a sequence, at least 0 and less than 1.
    pub dropout: f64,
    /// Whether padding is left out of the statistics of BatchNorm.
    pub mask_padding: bool,
    /// How a sequence becomes one vector: mean (over its true length) or last (position).
    pub pool: Pool,
    /// Implementation: fused (CPU), composed (any device) or auto.
    pub form: Form,
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self {
            layers: 6,
            h: 128,
            n: 64,
            mixer: MixerKind::default(),
            variant: Variant::default(),
            delta: Delta::default(),
            delta_min: dss_kernels::init::DT_MIN,
            delta_max: dss_kernels::init::DT_MAX,
            lambda_init: LambdaInit::default(),
            s4d_init: S4dInit::default(),
            discretisation: Discretisation::default(),
            kernel_len: 0,
            bidirectional: false,
            glu: false,
            norm: NormKind::default(),
            prenorm: false,
            last_gain: 1.0,
            dropout: 0.0,
            mask_padding: false,
            pool: Pool::default(),
            form: Form::default(),
        }
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

/// The two ends of a model, and the length it is trained at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Io {
    /// What comes in.
    pub input: InputKind,
    /// What goes out.
    pub output: OutputKind,
    /// L: the training length. The softmax's normaliser and the C̃ of S4 always use it, so that a kernel does not depend
    /// on the batch.
    pub len: usize,
}

impl ModelConfig {
    /// Every number is in its range.
    pub fn validate(&self) -> Result<()> {
        if self.layers == 0 {
            return Err(Error::config(&["layers"], "layers must be at least 1, but is 0"));
        }
        if !(self.last_gain > 0.0 && self.last_gain <= 1e4) {
            let gain = self.last_gain;
            let what = format!("last_gain must be above 0 and at most 10000, but is {gain}");
            return Err(Error::config(&["last_gain"], what));
        }
        self.block(1, 0).validate()
    }

    /// Each block of such a model, for sequences of length `len`.
    pub fn block(&self, len: usize, seed: u64) -> BlockConfig {
        BlockConfig {
            layer: SsmLayerConfig {
                h: self.h,
                n: self.n,
                len,
                mixer: self.mixer,
                variant: self.variant,
                delta: self.delta,
                delta_min: self.delta_min,
                delta_max: self.delta_max,
                lambda_init: self.lambda_init,
                s4d_init: self.s4d_init,
                discretisation: self.discretisation,
                kernel_len: self.kernel_len,
                bidirectional: self.bidirectional,
                glu: self.glu,
                form: self.form,
                seed,
            },
            norm: self.norm,
            prenorm: self.prenorm,
            dropout: self.dropout,
            mask_padding: self.mask_padding,
        }
    }

    /// How many numbers a model of this kind has, running statistics included; `None` if more than can be counted.
    pub fn tensor_elements(&self, io: &Io) -> Option<usize> {
        let product = |factors: &[usize]| factors.iter().try_fold(1usize, |a, &b| a.checked_mul(b));
        let sum = |terms: &[usize]| terms.iter().try_fold(0usize, |a, &b| a.checked_add(b));
        let linear = |inputs, outputs| sum(&[product(&[inputs, outputs])?, outputs]);
        let Self { h, n, .. } = *self;
        let norm = match self.norm {
            NormKind::Batch => product(&[4, h])?,
            NormKind::Layer => product(&[2, h])?,
            NormKind::LayerScalar => 2,
        };
        let ssm = match self.mixer {
            MixerKind::Dss => [
                product(&[2, n])?,
                product(&[h, self.delta.per_channel()])?,
                product(&[self.channels(), h, n, 2])?,
            ],
            // Λ, P and B; Λ alone.
            MixerKind::S4 => [product(&[3, n])?, h, product(&[self.channels(), h, n])?],
            MixerKind::S4d => [n, h, product(&[self.channels(), h, n])?],
        };
        let layer =
            sum(&[sum(&ssm)?, h, linear(h, if self.glu { h.checked_mul(2)? } else { h })?, norm])?;
        let encoder = match io.input {
            InputKind::Tokens { vocab } => product(&[vocab, h])?,
            InputKind::Values { channels } => linear(channels, h)?,
        };
        let head = match io.output {
            OutputKind::Sequence { outputs } | OutputKind::Position { outputs } => {
                linear(h, outputs)?
            }
            OutputKind::Pair { outputs } => {
                sum(&[linear(h.checked_mul(4)?, h)?, linear(h, outputs)?])?
            }
        };
        let last_norm = if self.prenorm { norm } else { 0 };
        sum(&[encoder, product(&[self.layers, layer])?, last_norm, head])
    }

    /// C: kernels per channel.
    pub fn channels(&self) -> usize {
        if self.bidirectional { 2 } else { 1 }
    }
}

impl Io {
    /// Every number is in its range.
    pub fn validate(&self) -> Result<()> {
        let input = match self.input {
            InputKind::Tokens { vocab } => ("the vocabulary", vocab),
            InputKind::Values { channels } => ("the number of input channels", channels),
        };
        let outputs = ("the number of outputs", self.output.outputs());
        for (name, value) in [input, outputs, ("the training length", self.len)] {
            if value == 0 {
                return Err(Error::config(&[], format!("{name} must be at least 1, but is 0")));
            }
        }
        Ok(())
    }
}
