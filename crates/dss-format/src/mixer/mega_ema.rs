//! Mega's damped exponential moving average (Ma et al. 2023, §3.1), N dimensions for each channel and direction:
//! x' = (1 − α·δ)·x + α·β·u, y = Σ η·x/√N with α = σ(`alpha`), δ = σ(`delta`); between the shortcut D and the output
//! projection that all state spaces have.
//!
//! | name | shape | |
//! |------|-------|-|
//! | `alpha`, `delta`, `beta`, `eta` | `[C, H, N]` each | C = 2 directions when bidirectional, else 1 |

use super::recurrent::recurrent_tensor;
use super::settings::settings;
use super::ssm::SsmSettings;
use super::{MixerContext, MixerSettings};
use crate::config::Gelu;
use crate::error::Result;
use crate::range::validate_count;
use crate::tensors::{ParamGroup, TensorSpec};

settings! {
    /// The settings of Mega's moving average.
    MegaEmaConfig {
        /// Dimensions N of the average of a channel.
        n: usize = 16,
        /// Length of the convolution kernel: a layer sees no further back than this; 0 = the length of the sequence.
        kernel_len: usize = 0,
        /// Whether the output projection is gated: 2H outputs, one half gating the other.
        glu: bool = false,
    }
}

impl MegaEmaConfig {
    /// What it shares with the other state spaces; a step takes a time of 1.
    pub fn shared(&self) -> SsmSettings {
        let Self { n, kernel_len, glu } = *self;
        let gelu = Gelu::Erf;
        SsmSettings { n, ssms: 1, delta_min: 1.0, delta_max: 1.0, kernel_len, glu, gelu }
    }
}

impl MixerSettings for MegaEmaConfig {
    fn title(&self) -> &'static str {
        "Mega-EMA"
    }

    fn size(&self) -> String {
        format!("N = {} dimensions", self.n)
    }

    fn validate(&self, _context: &MixerContext) -> Result<()> {
        validate_count(&["model.mixer.n"], "n", self.n)
    }

    fn tensors(&self, context: &MixerContext) -> Vec<TensorSpec> {
        let shape = [context.kernels(), context.h, self.n];
        let mut all = ["alpha", "delta"].map(|name| recurrent_tensor(name, &shape)).to_vec();
        all.extend(["beta", "eta"].map(|name| TensorSpec::new(name, &shape, ParamGroup::W)));
        all.extend(self.shared().tensors(context.h));
        all
    }

    fn ssm(&self) -> Option<SsmSettings> {
        Some(self.shared())
    }
}
