//! The DSS layer (§3.2): y = Out(GELU(K * u + D·u)), K made of Λ, Δ and W.

use burn::config::Config;
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use dss_kernels::init;

use crate::composed;
use crate::config::{Delta, Form, LambdaInit, Variant};
use crate::error::{Error, Result};
use crate::linear::{Linear, parameter};
use crate::mixer::SequenceMixer;
use crate::ops::{KernelParams, KernelSpec};
use crate::random::{normal, stream};
use crate::state::DssState;

/// How to make a [`DssLayer`].
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use dss::SequenceMixer;
/// use dss::config::Variant;
/// use dss::layer::DssLayerConfig;
///
/// # fn main() -> dss::Result<()> {
/// let device = Device::flex();
/// // H = 8 channels, N = 16 states, sequences of length up to 100.
/// let layer = DssLayerConfig::new(8, 16, 100).with_variant(Variant::Exp).init(&device)?;
/// let y = layer.forward(Tensor::zeros([2, 100, 8], &device)); // [B, L, H]
/// assert_eq!(y.dims(), [2, 100, 8]);
/// # Ok(())
/// # }
/// ```
#[derive(Config, Debug)]
pub struct DssLayerConfig {
    /// H: channels.
    pub h: usize,
    /// N: states per channel.
    pub n: usize,
    /// L: the longest sequence; the length of the softmax's normaliser.
    pub len: usize,
    /// Which kernel.
    #[config(default = "Variant::Softmax")]
    pub variant: Variant,
    /// One Δ per channel or two.
    #[config(default = "Delta::Separate")]
    pub delta: Delta,
    /// The least Δ at initialisation.
    #[config(default = 0.001)]
    pub delta_min: f64,
    /// The greatest Δ at initialisation.
    #[config(default = 0.1)]
    pub delta_max: f64,
    /// How Λ starts out.
    #[config(default = "LambdaInit::SkewHippo")]
    pub lambda_init: LambdaInit,
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

/// A DSS layer: a [`crate::SequenceMixer`].
///
/// Alone, it takes the fused form for its kernel only; the [`crate::Block`] around it is fused as a whole.
#[derive(Module, Debug)]
pub struct DssLayer {
    /// Λ: `[N, 2]`, (re, im). Exp variants: Re λ = −exp(first column). Skew-HiPPO or random.
    pub lambda: Param<Tensor<2>>,
    /// Δ_log: `[H, 2]`, or `[H, 1]` if tied; ~ U(log Δmin, log Δmax).
    pub delta_log: Param<Tensor<2>>,
    /// W: `[C, H, N, 2]`; both parts ~ N(0, 1).
    pub w: Param<Tensor<4>>,
    /// D: `[H]` ~ N(0, 1).
    pub d: Param<Tensor<1>>,
    /// The output projection, `[H, H]` or `[2H, H]`.
    pub out: Linear,
    #[module(skip)]
    config: DssLayerConfig,
}

impl DssLayerConfig {
    /// Every number is in its range.
    pub fn validate(&self) -> Result<()> {
        for (name, value) in [("h", self.h), ("n", self.n), ("len", self.len)] {
            if value == 0 {
                return Err(Error::config(format!("{name} must be at least 1, but is 0")));
            }
        }
        if self.lambda_init == LambdaInit::SkewHippo && self.n > init::MAX_N {
            let (n, max) = (self.n, init::MAX_N);
            return Err(Error::config(format!(
                "n must be at most {max} with lambda_init = \"skew-hippo\", but is {n}"
            )));
        }
        let (low, high) = (self.delta_min, self.delta_max);
        if !(0.0 < low && low <= high && high.is_finite()) {
            return Err(Error::config(format!(
                "0 < delta_min <= delta_max must hold, but they are {low} and {high}"
            )));
        }
        Ok(())
    }

    /// A new layer. Its numbers depend on the seed alone.
    pub fn init(&self, device: &Device) -> Result<DssLayer> {
        self.init_named("mixer", device)
    }

    /// A new layer whose random streams bear the name of its place in a model.
    pub(crate) fn init_named(&self, name: &str, device: &Device) -> Result<DssLayer> {
        self.validate()?;
        self.form.check_device(device)?;
        let Self { h, n, seed, .. } = *self;
        let stream = |part: &str| stream(seed, &format!("{name}.{part}"));
        let lambda = match (self.lambda_init, self.variant) {
            (LambdaInit::SkewHippo, _) => init::skew_hippo(n)?,
            (LambdaInit::Random, Variant::Softmax) => init::random_lambda(n, &mut stream("lambda")),
            (LambdaInit::Random, _) => init::random_lambda_left(n, &mut stream("lambda")),
        };
        let stored = |re: f64| if self.variant == Variant::Softmax { re } else { (-re).ln() };
        let lambda = lambda.iter().flat_map(|z| [stored(z.re), z.im]).collect();
        let per = self.delta.per_channel();
        let delta_log =
            init::delta_log(h * per, self.delta_min, self.delta_max, &mut stream("delta_log"))?;
        let w = init::w(self.channels(), h, n, &mut stream("w"));
        let outputs = if self.glu { 2 * h } else { h };
        Ok(DssLayer {
            lambda: parameter(lambda, [n, 2], device),
            delta_log: parameter(delta_log, [h, per], device),
            w: parameter(w, [self.channels(), h, n, 2], device),
            d: parameter(normal(h, &mut stream("d")), [h], device),
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
}

impl DssLayer {
    /// What this layer is.
    pub fn config(&self) -> &DssLayerConfig {
        &self.config
    }

    /// The kernel parameters, as the operations take them.
    pub fn kernel_params(&self) -> KernelParams {
        KernelParams { lambda: self.lambda.val(), delta_log: self.delta_log.val(), w: self.w.val() }
    }

    /// Sequences of length l are possible. The kernel of a softmax layer with Re λ > 0 ends at the training length.
    pub fn check_len(&self, l: usize) -> Result<()> {
        let DssLayerConfig { variant, len, .. } = self.config;
        let taps = self.config.taps(l);
        if l == 0 {
            return Err(Error::invalid("DssLayer", "a sequence must have at least one position"));
        }
        if variant != Variant::Softmax || taps <= self.config.taps(len) {
            return Ok(());
        }
        let growing = self.growing_modes();
        if growing > 0 {
            let what = format!(
                "this layer was made for sequences of length up to {len}, but got {l}: {growing} of its modes have \
                 Re λ > 0, and their softmax kernel ends there; shorten the sequence"
            );
            return Err(Error::invalid("DssLayer", what));
        }
        Ok(())
    }

    /// The same system read with r times the step: Δ becomes r·Δ, lengths L/r (rounded up).
    ///
    /// Softmax and exp kernels then are sums over r taps of the old one. Exp-no-scale lacks the factor that does this,
    /// and its W is multiplied by r.
    pub(crate) fn at_step(mut self, r: f64) -> Self {
        let scaled = |len: usize| ((len as f64 / r).ceil() as usize).max(usize::from(len > 0));
        self.config.len = scaled(self.config.len);
        self.config.kernel_len = scaled(self.config.kernel_len);
        self.delta_log = self.delta_log.map(|delta| changed(delta, |delta| delta + r.ln()));
        if self.config.variant == Variant::ExpNoScale {
            self.w = self.w.map(|w| changed(w, |w| w * r));
        }
        self
    }

    /// How many modes have Re λ > 0.
    pub(crate) fn growing_modes(&self) -> usize {
        if self.config.variant != Variant::Softmax {
            return 0;
        }
        let re = self.lambda.val().detach().narrow(1, 0, 1);
        re.greater_scalar(0.0).int().sum().into_scalar::<i64>() as usize
    }

    /// K: `[C, H, min(l, kernel_len)]`, for sequences of length l.
    ///
    /// # Panics
    /// If [`Self::check_len`] refuses l.
    pub fn kernel(&self, l: usize) -> Tensor<3> {
        if let Err(error) = self.check_len(l) {
            panic!("{error}");
        }
        let DssLayerConfig { variant, delta, len, .. } = self.config;
        let spec = KernelSpec {
            variant,
            delta,
            taps: self.config.taps(l),
            norm_len: self.config.taps(len),
        };
        self.config.form.kernel(&self.kernel_params(), &spec)
    }
}

/// A parameter with another value, trained as before.
fn changed<const D: usize>(x: Tensor<D>, f: impl FnOnce(Tensor<D>) -> Tensor<D>) -> Tensor<D> {
    let trained = x.is_require_grad();
    f(x.detach()).detach().set_require_grad(trained)
}

impl SequenceMixer for DssLayer {
    type State = DssState;

    /// # Panics
    /// If [`DssLayer::check_len`] refuses the length.
    fn forward(&self, u: Tensor<3>) -> Tensor<3> {
        let k = self.kernel(u.dims()[1]);
        let y = composed::mix(u, k, self.d.val(), self.config.bidirectional);
        composed::project(y, self.out.weight.val(), self.out.bias.val(), self.config.glu)
    }

    fn state(&self, batch: usize) -> Result<DssState> {
        DssState::new(self, batch)
    }

    fn step(&self, state: &mut DssState, u: Tensor<2>) -> Result<Tensor<2>> {
        let y = state.step(u.clone())?;
        let y = composed::gelu(y + u * self.d.val().unsqueeze());
        Ok(composed::project(y, self.out.weight.val(), self.out.bias.val(), self.config.glu))
    }
}
