//! The layer (§3.2): y = Out(GELU(K * u + D·u)), K made of the parameters of a state space.

use burn::config::Config;
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use dss_kernels::init;

use crate::composed;
use crate::config::{Delta, Discretisation, Form, LambdaInit, MixerKind, S4dInit, Variant};
use crate::error::{Error, Result};
use crate::linear::{Linear, parameter};
use crate::mixer::SequenceMixer;
use crate::random::{normal, stream};
use crate::ssm::Ssm;
use crate::state::SsmState;

/// The longest kernel of S4, which is made at its full length always.
const S4_TAPS: usize = 1 << 24;

/// How to make an [`SsmLayer`]: DSS unless another mixer is named.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use dss_nn::config::{MixerKind, Variant};
/// use dss_nn::{SequenceMixer, SsmLayerConfig};
///
/// # fn main() -> dss_nn::Result<()> {
/// let device = Device::flex();
/// // H = 8 channels, N = 16 states, sequences of length up to 100.
/// let config = SsmLayerConfig::new(8, 16, 100);
/// for config in [config.clone().with_variant(Variant::Exp), config.with_mixer(MixerKind::S4)] {
///     let layer = config.init(&device)?;
///     let y = layer.forward(Tensor::zeros([2, 100, 8], &device)); // [B, L, H]
///     assert_eq!(y.dims(), [2, 100, 8]);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Config, Debug)]
pub struct SsmLayerConfig {
    /// H: channels.
    pub h: usize,
    /// N: states per channel; even for S4 and S4D, which store one of each conjugate pair.
    pub n: usize,
    /// L: the longest sequence; the length of the softmax's normaliser and of S4's C̃.
    pub len: usize,
    /// Which state space.
    #[config(default = "MixerKind::Dss")]
    pub mixer: MixerKind,
    /// Which kernel of DSS.
    #[config(default = "Variant::Softmax")]
    pub variant: Variant,
    /// One Δ per channel of DSS or two; S4 and S4D have one.
    #[config(default = "Delta::Separate")]
    pub delta: Delta,
    /// The least Δ at initialisation.
    #[config(default = 0.001)]
    pub delta_min: f64,
    /// The greatest Δ at initialisation.
    #[config(default = 0.1)]
    pub delta_max: f64,
    /// How Λ of DSS starts out.
    #[config(default = "LambdaInit::SkewHippo")]
    pub lambda_init: LambdaInit,
    /// How Λ of S4D starts out.
    #[config(default = "S4dInit::Legs")]
    pub s4d_init: S4dInit,
    /// How S4D becomes steps.
    #[config(default = "Discretisation::Zoh")]
    pub discretisation: Discretisation,
    /// 0: the kernel is as long as the sequence; else it is made at this length and the layer sees no further.
    #[config(default = 0)]
    pub kernel_len: usize,
    /// A second kernel looks ahead.
    #[config(default = false)]
    pub bidirectional: bool,
    /// The output projection has 2H outputs that gate each other.
    #[config(default = false)]
    pub glu: bool,
    /// Which implementation runs.
    #[config(default = "Form::Auto")]
    pub form: Form,
    /// The initial numbers are those of this seed.
    #[config(default = 0)]
    pub seed: u64,
}

/// A layer of state spaces, one per channel: a [`crate::SequenceMixer`].
///
/// Alone, it takes the fused form for its kernel only; the [`crate::Block`] around it is fused as a whole.
#[derive(Module, Debug)]
pub struct SsmLayer {
    /// What the kernels are made of.
    pub ssm: Ssm,
    /// D: `[H]` ~ N(0, 1).
    pub d: Param<Tensor<1>>,
    /// The output projection, `[H, H]` or `[2H, H]`.
    pub out: Linear,
    #[module(skip)]
    config: SsmLayerConfig,
}

impl SsmLayerConfig {
    /// Every number is in its range, and the settings go together.
    pub fn validate(&self) -> Result<()> {
        for (key, value) in [(&["h"], self.h), (&["n"], self.n), (&["len"], self.len)] {
            if value == 0 {
                return Err(Error::config(key, format!("{} must be at least 1, but is 0", key[0])));
            }
        }
        let (low, high) = (self.delta_min, self.delta_max);
        if !(0.0 < low && low <= high && high.is_finite()) {
            let what =
                format!("0 < delta_min <= delta_max must hold, but they are {low} and {high}");
            return Err(Error::config(&["delta_min", "delta_max"], what));
        }
        self.validate_states()?;
        self.validate_kinds()
    }

    /// N, and for S4 the length, fit the mixer.
    fn validate_states(&self) -> Result<()> {
        let (n, max) = (self.n, init::MAX_N);
        if self.mixer == MixerKind::Dss {
            if self.lambda_init == LambdaInit::SkewHippo && n > max {
                let what = format!(
                    "n must be at most {max} with lambda_init = \"skew-hippo\", but is {n}"
                );
                return Err(Error::config(&["n", "lambda_init"], what));
            }
            return Ok(());
        }
        if !n.is_multiple_of(2) || n > 2 * max {
            let what = format!(
                "n must be even and at most {} with mixer = \"s4\" or \"s4d\", but is {n}",
                2 * max
            );
            return Err(Error::config(&["n", "mixer"], what));
        }
        let taps = self.taps(self.len);
        if self.mixer == MixerKind::S4 && taps > S4_TAPS {
            let what = format!(
                "S4 makes kernels of at most {S4_TAPS} taps, but its length is {taps}: set kernel_len"
            );
            return Err(Error::config(&["kernel_len", "mixer"], what));
        }
        Ok(())
    }

    /// No choice was made that the mixer does not know.
    fn validate_kinds(&self) -> Result<()> {
        let (dss, s4d) = (self.mixer == MixerKind::Dss, self.mixer == MixerKind::S4d);
        for (keys, chosen, known, mixer) in [
            (&["variant", "mixer"], self.variant != Variant::default(), dss, "dss"),
            (&["lambda_init", "mixer"], self.lambda_init != LambdaInit::default(), dss, "dss"),
            (&["s4d_init", "mixer"], self.s4d_init != S4dInit::default(), s4d, "s4d"),
            (
                &["discretisation", "mixer"],
                self.discretisation != Discretisation::default(),
                s4d,
                "s4d",
            ),
        ] {
            if chosen && !known {
                let what = format!(
                    "{} is a setting of mixer = \"{mixer}\": leave it at its default or change mixer",
                    keys[0]
                );
                return Err(Error::config(keys, what));
            }
        }
        Ok(())
    }

    /// A new layer. Its numbers depend on the seed alone.
    pub fn init(&self, device: &Device) -> Result<SsmLayer> {
        self.init_named("mixer", device)?.corrected()
    }

    /// A new layer whose random streams bear the name of its place in a model; see [`SsmLayer::corrected`].
    pub(crate) fn init_named(&self, name: &str, device: &Device) -> Result<SsmLayer> {
        self.validate()?;
        self.form.check_device(device)?;
        let Self { h, seed, .. } = *self;
        let outputs = if self.glu { 2 * h } else { h };
        let d = normal(h, &mut stream(seed, &format!("{name}.d")));
        Ok(SsmLayer {
            ssm: Ssm::new(self, name, device)?,
            d: parameter(d, [h], device),
            out: Linear::new(h, outputs, seed, &format!("{name}.out"), device),
            config: self.clone(),
        })
    }

    /// C: kernels per channel.
    pub fn channels(&self) -> usize {
        if self.bidirectional { 2 } else { 1 }
    }

    /// How many taps the kernel has for sequences of length l.
    pub fn taps(&self, l: usize) -> usize {
        if self.kernel_len == 0 { l } else { l.min(self.kernel_len) }
    }

    /// The taps at the training length: what the softmax's normaliser and S4's C̃ go by.
    pub fn norm_len(&self) -> usize {
        self.taps(self.len)
    }

    /// With r times the step: lengths become L/r (rounded up).
    fn at_step(&self, r: f64) -> Self {
        let scaled = |len: usize| ((len as f64 / r).ceil() as usize).max(usize::from(len > 0));
        Self { len: scaled(self.len), kernel_len: scaled(self.kernel_len), ..self.clone() }
    }
}

impl SsmLayer {
    /// What this layer is.
    pub fn config(&self) -> &SsmLayerConfig {
        &self.config
    }

    /// A new layer of S4 draws C and stores C̃: this makes it. O(H·N³·log L), and nothing for the others.
    pub(crate) fn corrected(mut self) -> Result<Self> {
        if let Ssm::S4(s4) = self.ssm {
            self.ssm = Ssm::S4(s4.corrected(&self.config)?);
        }
        Ok(self)
    }

    /// Sequences of length l are possible. The kernel of a softmax layer with Re λ > 0 ends at the training length; S4
    /// has a longer one unless its Δ is too small.
    pub fn check_len(&self, l: usize) -> Result<()> {
        if l == 0 {
            return Err(Error::invalid("SsmLayer", "a sequence must have at least one position"));
        }
        if self.config.taps(l) <= self.config.norm_len() {
            return Ok(());
        }
        self.ssm.get().check_longer(&self.config, l)
    }

    /// The same system read with r times the step: Δ becomes r·Δ, lengths L/r (rounded up).
    ///
    /// Kernels then are sums over r taps of the old one, up to the error of S4's bilinear rule. Exp-no-scale lacks the
    /// factor that does this, and its W is multiplied by r.
    pub(crate) fn at_step(mut self, r: f64) -> Result<Self> {
        let config = self.config.at_step(r);
        config.validate()?;
        self.ssm = self.ssm.get().at_step(&self.config, &config, r)?;
        self.config = config;
        Ok(self)
    }

    /// How many modes have Re λ > 0.
    pub fn growing_modes(&self) -> usize {
        self.ssm.get().growing_modes(&self.config)
    }

    /// K: `[C, H, min(l, kernel_len)]`, for sequences of length l. Of S4, K beyond the training length has no gradients.
    ///
    /// # Panics
    /// If [`Self::check_len`] refuses l.
    pub fn kernel(&self, l: usize) -> Tensor<3> {
        let kernel = self.check_len(l).and_then(|()| self.ssm.get().kernel(&self.config, l));
        kernel.unwrap_or_else(|error| panic!("{error}"))
    }
}

impl SequenceMixer for SsmLayer {
    type State = SsmState;

    /// # Panics
    /// If [`SsmLayer::check_len`] refuses the length.
    fn forward(&self, u: Tensor<3>) -> Tensor<3> {
        let k = self.kernel(u.dims()[1]);
        let y = composed::mix(u, k, self.d.val(), None, self.config.bidirectional);
        composed::project(y, self.out.weight.val(), self.out.bias.val(), self.config.glu)
    }

    fn state(&self, batch: usize) -> Result<SsmState> {
        let config = &self.config;
        let refuse = |why: &str| {
            let what = format!("{why}: such a layer takes whole sequences only");
            Err(Error::invalid("SsmLayer::state", what))
        };
        if config.bidirectional {
            return refuse("the layer looks ahead (bidirectional)");
        }
        if config.kernel_len != 0 && config.kernel_len < config.len {
            return refuse("the kernel is cut (kernel_len)");
        }
        Ok(SsmState::new(self.ssm.get().recurrence(config, batch)?, [batch, config.h]))
    }

    fn step(&self, state: &mut SsmState, u: Tensor<2>) -> Result<Tensor<2>> {
        let y = state.step(u.clone())?;
        let y = composed::gelu(y + u * self.d.val().unsqueeze());
        Ok(composed::project(y, self.out.weight.val(), self.out.bias.val(), self.config.glu))
    }
}
