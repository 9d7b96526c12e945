//! S4D (Gu, Gupta, Goel, Ré 2022): A = Λ, B = 1, C and Δ.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use dss_kernels::init;

use super::{Ssm, StateSpace, changed};
use crate::composed;
use crate::error::Result;
use crate::layer::SsmLayerConfig;
use crate::linear::parameter;
use crate::ops::{S4dParams, S4dSpec};
use crate::random::stream;
use crate::state::{ModesState, Recurrent};

/// The parameters of an S4D layer's kernels, one of each conjugate pair. Λ is shared by the channels.
#[derive(Module, Debug)]
pub struct S4dSsm {
    /// Λ_re: `[N/2]`, Re λ = −exp(Λ_re) = −½ at first.
    pub lambda_re: Param<Tensor<1>>,
    /// Λ_im: `[N/2]`, as [`crate::config::S4dInit`] says.
    pub lambda_im: Param<Tensor<1>>,
    /// C: `[C, H, N/2, 2]`, complex standard normal.
    pub c: Param<Tensor<4>>,
    /// Δ_log: `[H]` ~ U(log Δmin, log Δmax).
    pub delta_log: Param<Tensor<1>>,
}

impl S4dSsm {
    pub(super) fn new(config: &SsmLayerConfig, name: &str, device: &Device) -> Result<Self> {
        let (channels, h, pairs) = (config.channels(), config.h, config.n / 2);
        let stream = |part: &str| stream(config.seed, &format!("{name}.{part}"));
        let lambda = init::s4d_lambda(config.s4d_init.into(), config.n)?;
        let c = init::s4_c(channels, h, pairs, &mut stream("c"));
        let (low, high) = (config.delta_min, config.delta_max);
        let delta_log = init::delta_log(h, low, high, &mut stream("delta_log"))?;
        let re = lambda.iter().map(|z| (-z.re).ln()).collect();
        let im = lambda.iter().map(|z| z.im).collect();
        Ok(Self {
            lambda_re: parameter(re, [pairs], device),
            lambda_im: parameter(im, [pairs], device),
            c: parameter(c, [channels, h, pairs, 2], device),
            delta_log: parameter(delta_log, [h], device),
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

impl StateSpace for S4dSsm {
    fn kernel(&self, config: &SsmLayerConfig, l: usize) -> Result<Tensor<3>> {
        let spec = S4dSpec { discretisation: config.discretisation, taps: config.taps(l) };
        Ok(config.form.s4d_kernel(&self.kernel_params(), &spec))
    }

    fn check_longer(&self, _config: &SsmLayerConfig, _l: usize) -> Result<()> {
        Ok(())
    }

    fn growing_modes(&self, _config: &SsmLayerConfig) -> usize {
        0
    }

    fn at_step(&self, _old: &SsmLayerConfig, _new: &SsmLayerConfig, r: f64) -> Result<Ssm> {
        let mut next = self.clone();
        next.delta_log = changed(&self.delta_log, |delta| delta + r.ln());
        Ok(Ssm::S4d(next))
    }

    fn recurrence(&self, config: &SsmLayerConfig, batch: usize) -> Result<Box<dyn Recurrent>> {
        let S4dParams { lambda_re, lambda_im, c, delta_log } = self.kernel_params();
        let params = S4dParams {
            lambda_re: lambda_re.inner(),
            lambda_im: lambda_im.inner(),
            c: c.inner(),
            delta_log: delta_log.inner(),
        };
        let modes = composed::s4d_modes(&params, config.discretisation);
        Ok(Box::new(ModesState::new(modes, 0, config.norm_len(), batch)))
    }
}
