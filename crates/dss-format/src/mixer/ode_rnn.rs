//! ODE-RNN (Rubanova et al. 2019): between positions the state follows dh/dt = f(h), at a position a GRU updates it.
//!
//! | name | shape | |
//! |------|-------|-|
//! | `input.weight`, `.bias` | `[3H, H]`, `[3H]` | what the gates of the GRU get of the input |
//! | `hidden.weight`, `.bias` | `[3H, H]`, `[3H]` | what they get of the state |
//! | `field.{i}.weight`, `.bias` | `[w, H]`, `[w, w]` …, `[H, w]` with their biases | f: linear maps with tanh between |

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

use super::lipschitz_rnn::SolverKind;
use super::recurrent::{validate_count, validate_forwards, validate_positive};
use super::{MixerConfig, MixerContext, MixerSettings};
use crate::error::Result;
use crate::tensors::{TensorSpec, linear};

/// The settings of ODE-RNN; the defaults are those published for speech.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct OdeRnnConfig {
    /// Width of the hidden layers of the field f.
    pub width: usize,
    /// Hidden layers of the field f.
    pub field_layers: usize,
    /// Time between two positions.
    pub step: f64,
    /// Rule of a step: euler, midpoint or rk4.
    pub solver: SolverKind,
    /// Steps of the rule between two positions.
    pub substeps: usize,
}

impl Default for OdeRnnConfig {
    fn default() -> Self {
        Self { width: 64, field_layers: 4, step: 1.0, solver: SolverKind::Rk4, substeps: 1 }
    }
}

impl OdeRnnConfig {
    /// Widths of the field from its input to its output, of a state of h.
    pub fn field_widths(&self, h: usize) -> Vec<usize> {
        let hidden = std::iter::repeat_n(self.width, self.field_layers);
        std::iter::once(h).chain(hidden).chain([h]).collect()
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
        validate_positive(&["model.mixer.step"], "step", self.step)
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
        Some(Self { step: self.step * r, ..*self }.into())
    }
}
