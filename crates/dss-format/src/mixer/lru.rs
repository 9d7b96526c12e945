//! The linear recurrent unit (Orvieto et al. 2023): x' = λ·x + γ·(B u) with N complex states, y = Re(C x) + D·u.
//!
//! | name | shape | |
//! |------|-------|-|
//! | `nu_log`, `theta_log` | `[N]` each | λ = exp(−exp(ν_log) + i·exp(θ_log)) |
//! | `gamma_log` | `[N]` | log γ |
//! | `b` | `[2N, H]` | B: its real parts, then its imaginary parts |
//! | `c` | `[H, 2N]` | Re C, then −Im C |
//!
//! and those that [`ssm`](super::ssm) declares.

use super::recurrent::{recurrent_tensor, validate_forwards};
use super::settings::settings;
use super::ssm::d_and_out;
use super::{MixerContext, MixerSettings};
use crate::error::{Error, Result};
use crate::range::{validate_count, validate_positive};
use crate::tensors::{ParamGroup, TensorSpec};

settings! {
    /// The settings of LRU.
    LruConfig {
        /// Complex states N of a layer.
        n: usize = 64,
        /// Smallest |λ| at initialisation.
        r_min: f64 = 0.5,
        /// Largest |λ| at initialisation, below 1.
        r_max: f64 = 0.99,
        /// Largest angle of λ at initialisation.
        max_phase: f64 = std::f64::consts::TAU,
        /// Whether the output projection is gated: 2H outputs, one half gating the other.
        glu: bool = true,
    }
}

impl MixerSettings for LruConfig {
    fn title(&self) -> &'static str {
        "LRU"
    }

    fn size(&self) -> String {
        format!("N = {} states", self.n)
    }

    fn validate(&self, context: &MixerContext) -> Result<()> {
        validate_forwards("lru", context)?;
        validate_count(&["model.mixer.n"], "n", self.n)?;
        let Self { r_min, r_max, max_phase, .. } = *self;
        if !(0.0 <= r_min && r_min < r_max && r_max < 1.0) {
            let tried = if 0.0 < r_max && r_max < 1.0 { "r_min = 0" } else { "r_max = 0.99" };
            let what = format!(
                "0 <= r_min < r_max < 1 must hold, but they are {r_min} and {r_max}: try {tried}"
            );
            return Err(Error::setting(&["model.mixer.r_min", "model.mixer.r_max"], what));
        }
        let default = Self::default().max_phase;
        validate_positive(&["model.mixer.max_phase"], "max_phase", max_phase, default)
    }

    fn tensors(&self, context: &MixerContext) -> Vec<TensorSpec> {
        let (h, n) = (context.h, self.n);
        let mut all =
            ["nu_log", "theta_log", "gamma_log"].map(|x| recurrent_tensor(x, &[n])).to_vec();
        all.push(TensorSpec::new("b", &[n.saturating_mul(2), h], ParamGroup::Lambda));
        all.push(TensorSpec::new("c", &[h, n.saturating_mul(2)], ParamGroup::W));
        all.extend(d_and_out(h, self.glu));
        all
    }
}
