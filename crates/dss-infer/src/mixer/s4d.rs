//! S4D: diagonal, one of each conjugate pair of states stored; B = 1.

use dss_format::MixerContext;
use dss_format::mixer::S4dConfig;
use dss_format::mixer::ssm::SsmSettings;
use dss_kernels::Recurrence;
use dss_kernels::s4d::{self, Kernel, KernelConfig, Params};

use super::state_space::StateSpace;
use crate::arrays::Arrays;
use crate::error::Result;

pub(super) struct S4d {
    config: S4dConfig,
    context: MixerContext,
    lambda_re: Vec<f32>,
    lambda_im: Vec<f32>,
    c: Vec<f32>,
    delta_log: Vec<f32>,
}

impl S4d {
    pub(super) fn new(config: S4dConfig, context: MixerContext, arrays: &mut Arrays<'_>) -> Self {
        Self {
            config,
            context,
            lambda_re: arrays.take("lambda_re"),
            lambda_im: arrays.take("lambda_im"),
            c: arrays.take("c"),
            delta_log: arrays.take("delta_log"),
        }
    }

    fn sizes(&self, taps: usize) -> KernelConfig {
        let S4dConfig { n, discretisation, .. } = self.config;
        KernelConfig::new(discretisation.into(), self.context.h, n, taps)
            .channels(self.context.kernels())
            .systems(1)
    }

    fn params(&self) -> Params<'_, f32> {
        let Self { lambda_re, lambda_im, c, delta_log, .. } = self;
        Params { lambda_re, lambda_im, b: None, c, delta_log }
    }
}

impl StateSpace for S4d {
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
        s4d::recurrence(self.sizes(self.norm_len()), &self.params())
    }

    fn set_step(&mut self, r: f64) -> Result<()> {
        self.delta_log.iter_mut().for_each(|delta| *delta += r.ln() as f32);
        (self.config, self.context) = (self.config.with_step(r), self.context.at_step(r));
        Ok(())
    }
}
