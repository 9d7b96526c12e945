//! S4: A = Λ − PP*, with B, C̃ = C·(I − Ā^L) and Δ; one of each conjugate pair of states stored.

use dss_kernels::s4::{self, Kernel, KernelConfig, Params, Recurrence};

use super::state_space::{Sizes, StateSpace, moved};
use crate::arrays::Arrays;
use crate::error::Result;

pub(super) struct S4 {
    lambda_re: Vec<f32>,
    lambda_im: Vec<f32>,
    p: Vec<f32>,
    b: Vec<f32>,
    c: Vec<f32>,
    delta_log: Vec<f32>,
}

impl S4 {
    pub(super) fn new(arrays: &mut Arrays<'_>) -> Self {
        Self {
            lambda_re: arrays.take("lambda_re"),
            lambda_im: arrays.take("lambda_im"),
            p: arrays.take("p"),
            b: arrays.take("b"),
            c: arrays.take("c"),
            delta_log: arrays.take("delta_log"),
        }
    }

    fn params(&self) -> Params<'_, f32> {
        let Self { lambda_re, lambda_im, p, b, c, delta_log } = self;
        Params { lambda_re, lambda_im, p, b, c, delta_log }
    }
}

fn config(sizes: &Sizes, taps: usize) -> KernelConfig {
    let Sizes { h, n, ssms, kernels, norm_len } = *sizes;
    KernelConfig::new(h, n, taps).channels(kernels).norm_len(norm_len).systems(ssms)
}

impl StateSpace for S4 {
    type Recurrence = Recurrence;

    /// Beyond the training length, of a C̃ made for these taps.
    fn write_kernel(&self, sizes: &Sizes, taps: usize, k: &mut [f32]) -> Result<()> {
        let params = self.params();
        if taps <= sizes.norm_len {
            return Ok(Kernel::new(config(sizes, taps))?.forward(&params, k)?);
        }
        let c = &s4::change_length(&config(sizes, sizes.norm_len), &params, taps)?;
        let longer = Sizes { norm_len: taps, ..*sizes };
        Ok(Kernel::new(config(&longer, taps))?.forward(&Params { c, ..params }, k)?)
    }

    fn recurrence(&self, sizes: &Sizes) -> dss_kernels::Result<Recurrence> {
        Recurrence::new(config(sizes, sizes.norm_len), &self.params())
    }

    /// C̃ is made again: both Ā and L are others.
    fn set_step(&mut self, old: &Sizes, new: &Sizes, r: f64) -> Result<()> {
        let plain = s4::uncorrect_length(&config(old, old.norm_len), &self.params())?;
        moved(&mut self.delta_log, r);
        let params = Params { c: &plain, ..self.params() };
        self.c = s4::correct_length(&config(new, new.norm_len), &params)?;
        Ok(())
    }
}
