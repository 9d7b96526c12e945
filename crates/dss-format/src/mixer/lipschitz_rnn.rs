//! LipschitzRNN (Erichson et al. 2021): steps of dh/dt = h·A + tanh(h·W + z).
//!
//! | name | shape | |
//! |------|-------|-|
//! | `input.weight`, `.bias` | `[H, H]`, `[H]` | z, of the input |
//! | `m_a`, `m_w` | `[H, H]` each | A = β(M − Mᵀ) + (1 − β)(M + Mᵀ) − γI of `m_a`, W likewise of `m_w` |

use serde::{Deserialize, Serialize};

use super::recurrent::validate_forwards;
use super::settings::settings;
use super::{MixerConfig, MixerContext, MixerSettings};
use crate::error::{Error, Result};
use crate::range::validate_positive;
use crate::tensors::{TensorSpec, linear};

/// How a differential equation becomes steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SolverKind {
    /// h + Δ·f(h).
    #[default]
    Euler,
    /// h + Δ·f(h + ½Δ·f(h)).
    Midpoint,
    /// Runge and Kutta's rule of order four, in its 3/8 form.
    Rk4,
}

settings! {
    /// The settings of LipschitzRNN; the defaults are those published for speech.
    LipschitzRnnConfig {
        /// Weight of the skew part of the matrices, from 0.5 to 1.
        beta: f64 = 0.75,
        /// What is subtracted from their diagonals, at least 0.
        gamma: f64 = 0.001,
        /// Time ε of a step.
        step: f64 = 0.03,
        /// Rule of a step: euler, midpoint or rk4.
        solver: SolverKind = SolverKind::Euler,
        /// Entries of the matrices start ~ N(0, (init_std/h)²).
        init_std: f64 = 1.0,
    }
}

impl LipschitzRnnConfig {
    /// The settings for positions r times as far apart.
    pub fn with_step(&self, r: f64) -> Self {
        Self { step: self.step * r, ..*self }
    }

    /// The recurrence of a state of h.
    #[cfg(feature = "kernels")]
    pub fn cell(&self, h: usize) -> dss_kernels::recurrent::LipschitzRnn {
        let Self { step, solver, .. } = *self;
        dss_kernels::recurrent::LipschitzRnn { n: h, step, solver: solver.into() }
    }
}

impl MixerSettings for LipschitzRnnConfig {
    fn title(&self) -> &'static str {
        "LipschitzRNN"
    }

    fn size(&self) -> String {
        "one state per channel".to_owned()
    }

    fn validate(&self, context: &MixerContext) -> Result<()> {
        validate_forwards("lipschitz-rnn", context)?;
        let default = Self::default();
        validate_positive(&["model.mixer.step"], "step", self.step, default.step)?;
        let std = self.init_std;
        validate_positive(&["model.mixer.init_std"], "init_std", std, default.init_std)?;
        let Self { beta, gamma, .. } = *self;
        if !(0.5..=1.0).contains(&beta) {
            let nearest = if beta > 1.0 { 1.0 } else { 0.5 };
            let what = format!("beta must be from 0.5 to 1, but is {beta}: try {nearest}");
            return Err(Error::setting(&["model.mixer.beta"], what));
        }
        if !(gamma >= 0.0 && gamma.is_finite()) {
            let what = format!("gamma must be at least 0, but is {gamma}: try 0");
            return Err(Error::setting(&["model.mixer.gamma"], what));
        }
        Ok(())
    }

    fn tensors(&self, context: &MixerContext) -> Vec<TensorSpec> {
        let h = context.h;
        let mut all = linear("input", h, h).to_vec();
        all.extend(["m_a", "m_w"].map(|name| super::recurrent::recurrent_tensor(name, &[h, h])));
        all
    }

    fn at_step(&self, r: f64) -> Option<MixerConfig> {
        Some(self.with_step(r).into())
    }
}

#[cfg(feature = "kernels")]
impl From<SolverKind> for dss_kernels::recurrent::Solver {
    fn from(kind: SolverKind) -> Self {
        match kind {
            SolverKind::Euler => Self::Euler,
            SolverKind::Midpoint => Self::Midpoint,
            SolverKind::Rk4 => Self::Rk4,
        }
    }
}
