//! DSS (§3.1): Λ, Δ and W.

use burn::module::{Module, Param};
use burn::tensor::Tensor;
use dss_format::MixerContext;
use dss_format::mixer::{DssConfig, LambdaInit, MixerSettings, Variant};
use dss_kernels::init;

use super::modes::{numbers, pairs};
use super::state::{ModesState, Recurrent};
use super::state_space::{SsmParts, StateSpace, d_and_out};
use super::{Init, Mixer, ModeStep, Modes, changed};
use crate::carry;
use crate::composed;
use crate::dispatch;
use crate::error::{Error, Result};
use crate::linear::{Linear, parameter};
use crate::ops::{KernelParams, KernelSpec};

/// A DSS layer.
#[derive(Module, Debug)]
pub struct DssLayer {
    /// Λ: `[S·N, 2]`, (re, im). Exp variants: Re λ = −exp(first column). Skew-HiPPO or random.
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
    config: DssConfig,
    #[module(skip)]
    pub(super) context: MixerContext,
}

impl DssLayer {
    pub(super) fn init(config: &DssConfig, context: MixerContext, init: &Init) -> Result<Self> {
        let DssConfig { n, variant, ssms, delta_min: low, delta_max: high, .. } = *config;
        let (h, channels, per) = (context.h, context.kernels(), config.delta.per_channel());
        let lambda = match (config.lambda_init, variant) {
            (LambdaInit::SkewHippo, _) => init::skew_hippo(n)?.repeat(ssms),
            (LambdaInit::Random, Variant::Softmax) => {
                init::random_lambda(ssms * n, &mut init.stream("lambda"))
            }
            (LambdaInit::Random, _) => {
                init::random_lambda_left(ssms * n, &mut init.stream("lambda"))
            }
        };
        let stored = |re: f64| if variant == Variant::Softmax { re } else { (-re).ln() };
        let lambda = lambda.iter().flat_map(|z| [stored(z.re), z.im]).collect();
        let delta_log = init::delta_log(h * per, low, high, &mut init.stream("delta_log"))?;
        let w = init::w(channels, h, n, &mut init.stream("w"));
        let (d, out) = d_and_out(config.glu, h, init);
        Ok(Self {
            lambda: parameter(lambda, [ssms * n, 2], init.device),
            delta_log: parameter(delta_log, [h, per], init.device),
            w: parameter(w, [channels, h, n, 2], init.device),
            d,
            out,
            config: *config,
            context,
        })
    }

    /// As the operations take them.
    pub fn kernel_params(&self) -> KernelParams {
        KernelParams { lambda: self.lambda.val(), delta_log: self.delta_log.val(), w: self.w.val() }
    }

    /// How many modes have Re λ > 0: none but in the softmax variant.
    fn growing_modes(&self) -> usize {
        self.lambda_and_delta().growing()
    }

    /// Its settings.
    pub fn config(&self) -> &DssConfig {
        &self.config
    }
}

impl StateSpace for DssLayer {
    fn parts(&self) -> SsmParts<'_> {
        SsmParts { settings: self.config.shared(), d: &self.d, out: &self.out }
    }

    fn make_kernel(&self, l: usize) -> Result<Tensor<3>> {
        let DssConfig { variant, delta, .. } = self.config;
        let spec = KernelSpec { variant, delta, taps: self.taps(l), norm_len: self.norm_len() };
        Ok(dispatch::kernel(self.context.form, &self.kernel_params(), &spec))
    }

    fn check_longer(&self, l: usize) -> Result<()> {
        let (growing, len) = (self.growing_modes(), self.context.len);
        if growing > 0 {
            let what = format!(
                "this layer was made for sequences of length up to {len}, but got {l}: {growing} of its modes have \
                 Re λ > 0, and their softmax kernel ends there; shorten the sequence"
            );
            return Err(Error::refused(what));
        }
        Ok(())
    }

    fn lambda_and_delta(&self) -> Modes {
        let softmax = self.config.variant == Variant::Softmax;
        let re = |stored: f64| if softmax { stored } else { -stored.exp() };
        let lambda = numbers(&self.lambda).chunks_exact(2).map(|z| [re(z[0]), z[1]]).collect();
        let (delta_log, per) = (numbers(&self.delta_log), self.config.delta.per_channel());
        let delta = |i: usize| delta_log.iter().skip(i).step_by(per).copied().collect();
        let (initial, initial_name) = match self.config.lambda_init {
            LambdaInit::Random => (Vec::new(), ""),
            LambdaInit::SkewHippo => {
                (init::skew_hippo(self.config.n).unwrap_or_default(), "initial (Skew-HiPPO)")
            }
        };
        Modes {
            lambda,
            delta_log_re: delta(0),
            delta_log_im: delta(per - 1),
            tied: per == 1,
            systems: self.config.ssms,
            step: ModeStep::Exponential,
            initial: pairs(&initial),
            initial_name,
        }
    }

    fn beyond_training(&self) -> Option<String> {
        let len = self.context.len;
        (self.config.variant == Variant::Softmax)
            .then(|| format!("no mode has Re λ > 0; the softmax stays that of length {len}"))
    }

    /// Exp-no-scale lacks the factor that would do it, so its W is multiplied by r.
    fn with_step(&self, r: f64) -> Result<Mixer> {
        let mut next = self.clone();
        next.delta_log = changed(&self.delta_log, |delta| delta + r.ln());
        if self.config.variant == Variant::ExpNoScale {
            next.w = changed(&self.w, |w| w * r);
        }
        next.context = self.context.at_step(r);
        next.config = self.config.with_step(r);
        next.config.validate(&next.context)?;
        Ok(Mixer::Dss(next))
    }

    fn recurrence(&self, batch: usize) -> Result<Box<dyn Recurrent>> {
        let KernelParams { lambda, delta_log, w } = self.kernel_params();
        let params =
            KernelParams { lambda: lambda.inner(), delta_log: delta_log.inner(), w: w.inner() };
        let norm_len = self.norm_len();
        let modes = composed::modes(&params, self.config.variant, norm_len);
        Ok(Box::new(ModesState::new(modes, self.growing_modes(), norm_len, batch)))
    }

    fn carry_start(&self, batch: usize) -> Result<Tensor<4>> {
        let d = self.d.val().inner();
        Ok(Tensor::zeros([batch, self.context.h, self.config.n, 2], (&d.device(), d.dtype())))
    }

    fn carry_window(&self, carried: &mut Tensor<4>, u: Tensor<3>) -> Tensor<3> {
        let past = carry::past(self, carried, u.dims()[1]);
        *carried = carry::after(self, carried.clone(), u);
        past
    }
}
