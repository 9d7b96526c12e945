//! S4D (Gu, Gupta, Goel, Ré 2022): A = Λ, B = 1, C and Δ.

use burn::module::{Module, Param};
use burn::tensor::Tensor;
use dss_format::MixerContext;
use dss_format::mixer::{Discretisation, MixerSettings, S4dConfig, S4dInit};
use dss_kernels::init;

use super::modes::{left_lambda, numbers, pairs};
use super::state::{ModesState, Recurrent};
use super::state_space::{SsmParts, StateSpace, d_and_out};
use super::{Init, Mixer, ModeStep, Modes, changed};
use crate::composed;
use crate::dispatch;
use crate::error::Result;
use crate::linear::{Linear, parameter};
use crate::ops::{S4dParams, S4dSpec};

/// An S4D layer, one of each conjugate pair of states stored.
#[derive(Module, Debug)]
pub struct S4dLayer {
    /// Λ_re: `[S·N/2]`, Re λ = −exp(Λ_re) = −½ at first.
    pub lambda_re: Param<Tensor<1>>,
    /// Λ_im: `[S·N/2]`, as `lambda_init` says.
    pub lambda_im: Param<Tensor<1>>,
    /// C: `[C, H, N/2, 2]`, complex standard normal.
    pub c: Param<Tensor<4>>,
    /// Δ_log: `[H]` ~ U(log Δmin, log Δmax).
    pub delta_log: Param<Tensor<1>>,
    /// D: `[H]` ~ N(0, 1).
    pub d: Param<Tensor<1>>,
    /// The output projection, `[H, H]` or `[2H, H]`.
    pub out: Linear,
    #[module(skip)]
    config: S4dConfig,
    #[module(skip)]
    pub(super) context: MixerContext,
}

impl S4dLayer {
    pub(super) fn init(config: &S4dConfig, context: MixerContext, init: &Init) -> Result<Self> {
        let S4dConfig { n, ssms, delta_min: low, delta_max: high, .. } = *config;
        let (channels, h, pairs) = (context.kernels(), context.h, n / 2);
        let lambda = init::s4d_lambda(config.lambda_init.into(), n)?.repeat(ssms);
        let c = init::s4_c(channels, h, pairs, &mut init.stream("c"));
        let delta_log = init::delta_log(h, low, high, &mut init.stream("delta_log"))?;
        let re = lambda.iter().map(|z| (-z.re).ln()).collect();
        let im = lambda.iter().map(|z| z.im).collect();
        let (d, out) = d_and_out(config.glu, h, init);
        Ok(Self {
            lambda_re: parameter(re, [ssms * pairs], init.device),
            lambda_im: parameter(im, [ssms * pairs], init.device),
            c: parameter(c, [channels, h, pairs, 2], init.device),
            delta_log: parameter(delta_log, [h], init.device),
            d,
            out,
            config: *config,
            context,
        })
    }

    /// As the operations take them.
    pub fn kernel_params(&self) -> S4dParams {
        S4dParams {
            lambda_re: self.lambda_re.val(),
            lambda_im: self.lambda_im.val(),
            c: self.c.val(),
            delta_log: self.delta_log.val(),
        }
    }
}

impl StateSpace for S4dLayer {
    fn parts(&self) -> SsmParts<'_> {
        SsmParts { settings: self.config.shared(), d: &self.d, out: &self.out }
    }

    fn make_kernel(&self, l: usize) -> Result<Tensor<3>> {
        let spec = S4dSpec { discretisation: self.config.discretisation, taps: self.taps(l) };
        Ok(dispatch::s4d_kernel(self.context.form, &self.kernel_params(), &spec))
    }

    fn lambda_and_delta(&self) -> Modes {
        let S4dConfig { n, lambda_init, discretisation, .. } = self.config;
        let delta_log = numbers(&self.delta_log);
        Modes {
            lambda: left_lambda(&self.lambda_re, &self.lambda_im),
            delta_log_re: delta_log.clone(),
            delta_log_im: delta_log,
            tied: true,
            systems: self.config.ssms,
            step: match discretisation {
                Discretisation::Zoh => ModeStep::Exponential,
                Discretisation::Bilinear => ModeStep::Bilinear,
            },
            initial: pairs(&init::s4d_lambda(lambda_init.into(), n).unwrap_or_default()),
            initial_name: match lambda_init {
                S4dInit::Legs => "initial (S4D-LegS)",
                S4dInit::Lin => "initial (S4D-Lin)",
                S4dInit::Inv => "initial (S4D-Inv)",
            },
        }
    }

    fn with_step(&self, r: f64) -> Result<Mixer> {
        let mut next = self.clone();
        next.delta_log = changed(&self.delta_log, |delta| delta + r.ln());
        next.context = self.context.at_step(r);
        next.config = self.config.with_step(r);
        next.config.validate(&next.context)?;
        Ok(Mixer::S4d(next))
    }

    fn recurrence(&self, batch: usize) -> Result<Box<dyn Recurrent>> {
        let S4dParams { lambda_re, lambda_im, c, delta_log } = self.kernel_params();
        let params = S4dParams {
            lambda_re: lambda_re.inner(),
            lambda_im: lambda_im.inner(),
            c: c.inner(),
            delta_log: delta_log.inner(),
        };
        let modes = composed::s4d_modes(&params, self.config.discretisation);
        Ok(Box::new(ModesState::new(modes, 0, self.norm_len(), batch)))
    }
}
