//! DSS (§3.1 of the paper): Λ, Δ and W.

use dss_format::MixerContext;
use dss_format::mixer::ssm::SsmSettings;
use dss_format::mixer::{DssConfig, Variant};
use dss_kernels::Recurrence;
use dss_kernels::kernel::{Kernel, KernelConfig, Params};

use super::state_space::StateSpace;
use crate::arrays::Arrays;
use crate::error::Result;

pub(super) struct Dss {
    config: DssConfig,
    context: MixerContext,
    lambda_re: Vec<f32>,
    lambda_im: Vec<f32>,
    delta_log: Vec<f32>,
    w: Vec<f32>,
}

impl Dss {
    pub(super) fn new(config: DssConfig, context: MixerContext, arrays: &mut Arrays<'_>) -> Self {
        let lambda = arrays.take("lambda");
        Self {
            config,
            context,
            lambda_re: lambda.iter().step_by(2).copied().collect(),
            lambda_im: lambda.iter().skip(1).step_by(2).copied().collect(),
            delta_log: arrays.take("delta_log"),
            w: arrays.take("w"),
        }
    }

    fn sizes(&self, taps: usize) -> KernelConfig {
        let DssConfig { n, variant, delta, .. } = self.config;
        KernelConfig::new(variant.into(), self.context.h, n, taps)
            .delta(delta.into())
            .channels(self.context.kernels())
            .norm_len(self.norm_len())
    }

    fn params(&self) -> Params<'_, f32> {
        let Self { lambda_re, lambda_im, delta_log, w, .. } = self;
        Params { lambda_re, lambda_im, delta_log, w }
    }
}

impl StateSpace for Dss {
    type Recurrence = Recurrence<f32>;

    fn settings(&self) -> SsmSettings {
        self.config.shared()
    }

    fn context(&self) -> &MixerContext {
        &self.context
    }

    fn write_kernel(&self, taps: usize, k: &mut [f32]) -> Result<()> {
        Ok(Kernel::new(self.sizes(taps))?.forward(&self.params(), k)?)
    }

    fn recurrence(&self) -> dss_kernels::Result<Recurrence<f32>> {
        Recurrence::new(self.sizes(self.norm_len()), &self.params())
    }

    fn growing_modes(&self) -> usize {
        match self.config.variant {
            Variant::Softmax => self.lambda_re.iter().filter(|&&re| re > 0.0).count(),
            Variant::Exp | Variant::ExpNoScale => 0,
        }
    }

    fn set_step(&mut self, r: f64) -> Result<()> {
        self.delta_log.iter_mut().for_each(|delta| *delta += r.ln() as f32);
        if self.config.variant == Variant::ExpNoScale {
            self.w.iter_mut().for_each(|w| *w *= r as f32);
        }
        (self.config, self.context) = (self.config.with_step(r), self.context.at_step(r));
        Ok(())
    }
}
