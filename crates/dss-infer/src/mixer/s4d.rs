//! S4D: diagonal, one of each conjugate pair of states stored; B = 1.

use dss_format::mixer::{Discretisation, S4dConfig};
use dss_kernels::Recurrence;
use dss_kernels::s4d::{self, Kernel, KernelConfig, Params};

use super::state_space::{Sizes, StateSpace, moved};
use crate::arrays::Arrays;
use crate::error::Result;

pub(super) struct S4d {
    discretisation: Discretisation,
    lambda_re: Vec<f32>,
    lambda_im: Vec<f32>,
    c: Vec<f32>,
    delta_log: Vec<f32>,
}

impl S4d {
    pub(super) fn new(config: &S4dConfig, arrays: &mut Arrays<'_>) -> Self {
        Self {
            discretisation: config.discretisation,
            lambda_re: arrays.take("lambda_re"),
            lambda_im: arrays.take("lambda_im"),
            c: arrays.take("c"),
            delta_log: arrays.take("delta_log"),
        }
    }

    fn config(&self, sizes: &Sizes, taps: usize) -> KernelConfig {
        KernelConfig::new(self.discretisation.into(), sizes.h, sizes.n, taps)
            .channels(sizes.kernels)
            .systems(sizes.ssms)
    }

    fn params(&self) -> Params<'_, f32> {
        let Self { lambda_re, lambda_im, c, delta_log, .. } = self;
        Params { lambda_re, lambda_im, b: None, c, delta_log }
    }
}

impl StateSpace for S4d {
    type Recurrence = Recurrence<f32>;

    fn write_kernel(&self, sizes: &Sizes, taps: usize, k: &mut [f32]) -> Result<()> {
        Ok(Kernel::new(self.config(sizes, taps))?.forward(&self.params(), k)?)
    }

    fn recurrence(&self, sizes: &Sizes) -> dss_kernels::Result<Recurrence<f32>> {
        s4d::recurrence(self.config(sizes, sizes.norm_len), &self.params())
    }

    fn set_step(&mut self, _old: &Sizes, _new: &Sizes, r: f64) -> Result<()> {
        moved(&mut self.delta_log, r);
        Ok(())
    }
}
