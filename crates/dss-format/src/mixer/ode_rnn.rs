//! ODE-RNN (Rubanova et al. 2019): between positions the state follows dh/dt = f(h), at a position a GRU updates it.
//!
//! | name | shape | |
//! |------|-------|-|
//! | `input.weight`, `.bias` | `[3H, H]`, `[3H]` | what the gates of the GRU get of the input |
//! | `hidden.weight`, `.bias` | `[3H, H]`, `[3H]` | what they get of the state |
//! | `field.{i}.weight`, `.bias` | `[w, H]`, `[w, w]` …, `[H, w]` with their biases | f: linear maps with tanh between |

use super::lipschitz_rnn::SolverKind;
use super::recurrent::validate_forwards;
use super::settings::settings;
use super::{MixerConfig, MixerContext, MixerSettings};
use crate::error::Result;
use crate::range::{validate_count, validate_positive};
use crate::tensors::{TensorSpec, linear};

settings! {
    /// The settings of ODE-RNN; the defaults are those published for speech.
    OdeRnnConfig {
        /// Width of the hidden layers of the field f.
        width: usize = 64,
        /// Hidden layers of the field f.
        field_layers: usize = 4,
        /// Time between two positions.
        step: f64 = 1.0,
        /// Rule of a step: euler, midpoint or rk4.
        solver: SolverKind = SolverKind::Rk4,
        /// Steps of the rule between two positions.
        substeps: usize = 1,
    }
}

impl OdeRnnConfig {
    /// Widths of the field from its input to its output, of a state of h.
    pub fn field_widths(&self, h: usize) -> Vec<usize> {
        let hidden = std::iter::repeat_n(self.width, self.field_layers);
        std::iter::once(h).chain(hidden).chain([h]).collect()
    }

    /// The settings for positions r times as far apart.
    pub fn with_step(&self, r: f64) -> Self {
        Self { step: self.step * r, ..*self }
    }

    /// The recurrence of a state of h.
    #[cfg(feature = "kernels")]
    pub fn cell(&self, h: usize) -> dss_kernels::recurrent::OdeRnn {
        let Self { width, field_layers: layers, solver, substeps, .. } = *self;
        dss_kernels::recurrent::OdeRnn { n: h, width, layers, solver: solver.into(), substeps }
    }
}

impl MixerSettings for OdeRnnConfig {
    fn title(&self) -> &'static str {
        "ODE-RNN"
    }

    fn size(&self) -> String {
        format!("a field with {} hidden layers of {}", self.field_layers, self.width)
    }

    fn validate(&self, context: &MixerContext) -> Result<()> {
        validate_forwards("ode-rnn", context)?;
        validate_count(&["model.mixer.width"], "width", self.width)?;
        validate_count(&["model.mixer.field_layers"], "field_layers", self.field_layers)?;
        validate_count(&["model.mixer.substeps"], "substeps", self.substeps)?;
        validate_positive(&["model.mixer.step"], "step", self.step, Self::default().step)
    }

    fn tensors(&self, context: &MixerContext) -> Vec<TensorSpec> {
        let (h, gates) = (context.h, context.h.saturating_mul(3));
        let mut all = [linear("input", h, gates), linear("hidden", h, gates)].concat();
        for (i, widths) in self.field_widths(h).windows(2).enumerate() {
            all.extend(linear(&format!("field.{i}"), widths[0], widths[1]));
        }
        all
    }

    fn at_step(&self, r: f64) -> Option<MixerConfig> {
        Some(self.with_step(r).into())
    }
}
