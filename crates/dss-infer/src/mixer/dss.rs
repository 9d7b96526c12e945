//! DSS (§3.1 of the paper): Λ, Δ and W.

use dss_format::mixer::{Delta, DssConfig, Variant};
use dss_kernels::Recurrence;
use dss_kernels::kernel::{Kernel, KernelConfig, Params};

use super::state_space::{Sizes, StateSpace, moved};
use crate::arrays::Arrays;
use crate::error::Result;

pub(super) struct Dss {
    variant: Variant,
    delta: Delta,
    lambda_re: Vec<f32>,
    lambda_im: Vec<f32>,
    delta_log: Vec<f32>,
    w: Vec<f32>,
}

impl Dss {
    pub(super) fn new(config: &DssConfig, arrays: &mut Arrays<'_>) -> Self {
        let lambda = arrays.take("lambda");
        Self {
            variant: config.variant,
            delta: config.delta,
            lambda_re: lambda.iter().step_by(2).copied().collect(),
            lambda_im: lambda.iter().skip(1).step_by(2).copied().collect(),
            delta_log: arrays.take("delta_log"),
            w: arrays.take("w"),
        }
    }

    fn config(&self, sizes: &Sizes, taps: usize) -> KernelConfig {
        KernelConfig::new(self.variant.into(), sizes.h, sizes.n, taps)
            .delta(self.delta.into())
            .channels(sizes.kernels)
            .norm_len(sizes.norm_len)
            .systems(sizes.ssms)
    }

    fn params(&self) -> Params<'_, f32> {
        let Self { lambda_re, lambda_im, delta_log, w, .. } = self;
        Params { lambda_re, lambda_im, delta_log, w }
    }
}

impl StateSpace for Dss {
    type Recurrence = Recurrence<f32>;

    fn write_kernel(&self, sizes: &Sizes, taps: usize, k: &mut [f32]) -> Result<()> {
        Ok(Kernel::new(self.config(sizes, taps))?.forward(&self.params(), k)?)
    }

    fn recurrence(&self, sizes: &Sizes) -> dss_kernels::Result<Recurrence<f32>> {
        Recurrence::new(self.config(sizes, sizes.norm_len), &self.params())
    }

    fn growing_modes(&self) -> usize {
        match self.variant {
            Variant::Softmax => self.lambda_re.iter().filter(|&&re| re > 0.0).count(),
            Variant::Exp | Variant::ExpNoScale => 0,
        }
    }

    fn set_step(&mut self, _old: &Sizes, _new: &Sizes, r: f64) -> Result<()> {
        moved(&mut self.delta_log, r);
        if self.variant == Variant::ExpNoScale {
            self.w.iter_mut().for_each(|w| *w *= r as f32);
        }
        Ok(())
    }
}
