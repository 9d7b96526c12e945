//! S5 (Smith, Warrington, Linderman 2023): one diagonal state space with H inputs and H outputs, one of each conjugate
//! pair of its N states stored, zero-order hold with a Δ for each state: y = 2·Re(C x) + D·u.
//!
//! | name | shape | |
//! |------|-------|-|
//! | `lambda_re`, `lambda_im` | `[N/2]` each | Re λ = −exp(Λ_re) |
//! | `delta_log` | `[N/2]` | log Δ |
//! | `b` | `[N, H]` | B: its real parts, then its imaginary parts |
//! | `c` | `[H, N]` | Re C, then −Im C |
//!
//! and those that [`ssm`](super::ssm) declares.

use super::recurrent::validate_forwards;
use super::settings::settings;
use super::ssm::{MAX_N, d_and_out, validate_deltas};
use super::{MixerConfig, MixerContext, MixerSettings};
use crate::error::{Error, Result};
use crate::tensors::{ParamGroup, TensorSpec};

settings! {
    /// The settings of S5.
    S5Config {
        /// States N of a layer, even: one of each conjugate pair is stored.
        n: usize = 64,
        /// Blocks of the initial state matrix: each is a HiPPO matrix of N/blocks states.
        blocks: usize = 1,
        /// Smallest Δ at initialisation.
        delta_min: f64 = 0.001,
        /// Largest Δ at initialisation.
        delta_max: f64 = 0.1,
        /// Whether the output projection is gated: 2H outputs, one half gating the other.
        glu: bool = true,
    }
}

impl MixerSettings for S5Config {
    fn title(&self) -> &'static str {
        "S5"
    }

    fn size(&self) -> String {
        format!("N = {} states", self.n)
    }

    fn validate(&self, context: &MixerContext) -> Result<()> {
        validate_forwards("s5", context)?;
        let Self { n, blocks, delta_min: low, delta_max: high, .. } = *self;
        if n == 0 || !n.is_multiple_of(2) {
            let what = format!("n must be even and at least 2, but is {n}: try {}", (n + 1).max(2));
            return Err(Error::setting(&["model.mixer.n"], what));
        }
        let fits = |blocks: &usize| {
            let size = n / blocks;
            n.is_multiple_of(2 * blocks) && size <= 2 * MAX_N
        };
        if blocks == 0 || !fits(&blocks) {
            let nearest = (1..=n).filter(fits).min_by_key(|b| b.abs_diff(blocks)).unwrap_or(1);
            let what = format!(
                "blocks must divide n = {n} into even blocks of at most {}, but is {blocks}: try {nearest}",
                2 * MAX_N
            );
            return Err(Error::setting(&["model.mixer.blocks", "model.mixer.n"], what));
        }
        validate_deltas(low, high)
    }

    fn tensors(&self, context: &MixerContext) -> Vec<TensorSpec> {
        let (h, n) = (context.h, self.n);
        let mut all = vec![
            TensorSpec::new("lambda_re", &[n / 2], ParamGroup::Lambda),
            TensorSpec::new("lambda_im", &[n / 2], ParamGroup::Lambda),
            TensorSpec::new("delta_log", &[n / 2], ParamGroup::Delta),
            TensorSpec::new("b", &[n, h], ParamGroup::Lambda),
            TensorSpec::new("c", &[h, n], ParamGroup::W),
        ];
        all.extend(d_and_out(h, self.glu));
        all
    }

    fn at_step(&self, _r: f64) -> Option<MixerConfig> {
        Some((*self).into())
    }
}
