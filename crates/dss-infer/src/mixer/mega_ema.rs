//! Mega's damped exponential moving average, as the DSS-exp-no-scale kernel that it is.

use dss_format::mixer::MegaEmaConfig;
use dss_kernels::Recurrence;
use dss_kernels::kernel::{Delta, Kernel, KernelConfig, Params, Variant};

use super::state_space::{Sizes, StateSpace};
use crate::arrays::Arrays;
use crate::error::Result;

pub(super) struct MegaEma {
    config: MegaEmaConfig,
    /// ln(−ln(1 − α·δ)), 0, and ln Δ = 0.
    lambda_re: Vec<f32>,
    zeros: Vec<f32>,
    /// η·α·β/√N: (re, im).
    w: Vec<f32>,
}

impl MegaEma {
    pub(super) fn new(config: MegaEmaConfig, arrays: &mut Arrays<'_>) -> Self {
        let sigma = |x: f32| 1.0 / (1.0 + (-f64::from(x)).exp());
        let [alpha, delta, beta, eta] =
            ["alpha", "delta", "beta", "eta"].map(|name| arrays.take(name));
        let scale = 1.0 / (config.n as f64).sqrt();
        let both = alpha.iter().zip(&delta);
        let lambda_re =
            both.map(|(&a, &d)| (-(-sigma(a) * sigma(d)).ln_1p()).ln() as f32).collect();
        let factors = alpha.iter().zip(beta).zip(eta);
        let w = factors.flat_map(|((&a, b), e)| {
            [(sigma(a) * f64::from(b) * f64::from(e) * scale) as f32, 0.0]
        });
        Self { config, lambda_re, zeros: vec![0.0; alpha.len()], w: w.collect() }
    }

    /// A kernel for each channel and direction, each with its own Λ.
    fn config(&self, sizes: &Sizes, taps: usize) -> KernelConfig {
        let channels = sizes.kernels * sizes.h;
        KernelConfig::new(Variant::ExpNoScale, channels, sizes.n, taps)
            .delta(Delta::Tied)
            .systems(channels)
    }

    fn params(&self) -> Params<'_, f32> {
        let delta_log = &self.zeros[..self.zeros.len() / self.config.n];
        Params { lambda_re: &self.lambda_re, lambda_im: &self.zeros, delta_log, w: &self.w }
    }
}

impl StateSpace for MegaEma {
    type Recurrence = Recurrence<f32>;

    fn write_kernel(&self, sizes: &Sizes, taps: usize, k: &mut [f32]) -> Result<()> {
        Ok(Kernel::new(self.config(sizes, taps))?.forward(&self.params(), k)?)
    }

    fn recurrence(&self, sizes: &Sizes) -> dss_kernels::Result<Recurrence<f32>> {
        Recurrence::new(self.config(sizes, sizes.norm_len), &self.params())
    }
}
