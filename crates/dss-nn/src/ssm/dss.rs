//! DSS (§3.1): Λ, Δ and W.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use dss_kernels::init;

use super::{Ssm, StateSpace, changed};
use crate::composed;
use crate::config::{LambdaInit, Variant};
use crate::error::{Error, Result};
use crate::layer::SsmLayerConfig;
use crate::linear::parameter;
use crate::ops::{KernelParams, KernelSpec};
use crate::random::stream;
use crate::state::{ModesState, Recurrent};

/// The parameters of a DSS layer's kernels.
#[derive(Module, Debug)]
pub struct DssSsm {
    /// Λ: `[N, 2]`, (re, im). Exp variants: Re λ = −exp(first column). Skew-HiPPO or random.
    pub lambda: Param<Tensor<2>>,
    /// Δ_log: `[H, 2]`, or `[H, 1]` if tied; ~ U(log Δmin, log Δmax).
    pub delta_log: Param<Tensor<2>>,
    /// W: `[C, H, N, 2]`; both parts ~ N(0, 1).
    pub w: Param<Tensor<4>>,
}

impl DssSsm {
    pub(super) fn new(config: &SsmLayerConfig, name: &str, device: &Device) -> Result<Self> {
        let SsmLayerConfig { h, n, variant, .. } = *config;
        let stream = |part: &str| stream(config.seed, &format!("{name}.{part}"));
        let lambda = match (config.lambda_init, variant) {
            (LambdaInit::SkewHippo, _) => init::skew_hippo(n)?,
            (LambdaInit::Random, Variant::Softmax) => init::random_lambda(n, &mut stream("lambda")),
            (LambdaInit::Random, _) => init::random_lambda_left(n, &mut stream("lambda")),
        };
        let stored = |re: f64| if variant == Variant::Softmax { re } else { (-re).ln() };
        let lambda = lambda.iter().flat_map(|z| [stored(z.re), z.im]).collect();
        let (per, channels) = (config.delta.per_channel(), config.channels());
        let (low, high) = (config.delta_min, config.delta_max);
        let delta_log = init::delta_log(h * per, low, high, &mut stream("delta_log"))?;
        let w = init::w(channels, h, n, &mut stream("w"));
        Ok(Self {
            lambda: parameter(lambda, [n, 2], device),
            delta_log: parameter(delta_log, [h, per], device),
            w: parameter(w, [channels, h, n, 2], device),
        })
    }

    /// As the operations take them.
    pub fn kernel_params(&self) -> KernelParams {
        KernelParams { lambda: self.lambda.val(), delta_log: self.delta_log.val(), w: self.w.val() }
    }
}

impl StateSpace for DssSsm {
    fn kernel(&self, config: &SsmLayerConfig, l: usize) -> Result<Tensor<3>> {
        let SsmLayerConfig { variant, delta, .. } = *config;
        let (taps, norm_len) = (config.taps(l), config.norm_len());
        let spec = KernelSpec { variant, delta, taps, norm_len };
        Ok(config.form.kernel(&self.kernel_params(), &spec))
    }

    fn check_longer(&self, config: &SsmLayerConfig, l: usize) -> Result<()> {
        let (growing, len) = (self.growing_modes(config), config.len);
        if growing > 0 {
            let what = format!(
                "this layer was made for sequences of length up to {len}, but got {l}: {growing} of its modes have \
                 Re λ > 0, and their softmax kernel ends there; shorten the sequence"
            );
            return Err(Error::invalid("SsmLayer", what));
        }
        Ok(())
    }

    fn growing_modes(&self, config: &SsmLayerConfig) -> usize {
        if config.variant != Variant::Softmax {
            return 0;
        }
        let re = self.lambda.val().detach().narrow(1, 0, 1);
        re.greater_scalar(0.0).int().sum().into_scalar::<i64>() as usize
    }

    fn at_step(&self, old: &SsmLayerConfig, _new: &SsmLayerConfig, r: f64) -> Result<Ssm> {
        let mut next = self.clone();
        next.delta_log = changed(&self.delta_log, |delta| delta + r.ln());
        if old.variant == Variant::ExpNoScale {
            next.w = changed(&self.w, |w| w * r);
        }
        Ok(Ssm::Dss(next))
    }

    fn recurrence(&self, config: &SsmLayerConfig, batch: usize) -> Result<Box<dyn Recurrent>> {
        let KernelParams { lambda, delta_log, w } = self.kernel_params();
        let params =
            KernelParams { lambda: lambda.inner(), delta_log: delta_log.inner(), w: w.inner() };
        let norm_len = config.norm_len();
        let modes = composed::modes(&params, config.variant, norm_len);
        Ok(Box::new(ModesState::new(modes, self.growing_modes(config), norm_len, batch)))
    }
}
