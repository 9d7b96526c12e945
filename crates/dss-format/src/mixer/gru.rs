//! The gated recurrent unit (Cho et al. 2014), with PyTorch's equations.
//!
//! | name | shape | |
//! |------|-------|-|
//! | `input.weight`, `.bias` | `[3H, H]`, `[3H]` | what the gates get of the input |
//! | `hidden.weight`, `.bias` | `[3H, H]`, `[3H]` | what they get of the state |

use super::recurrent::validate_forwards;
use super::settings::settings;
use super::{MixerContext, MixerSettings};
use crate::error::Result;
use crate::tensors::{TensorSpec, linear};

settings! {
    /// The settings of GRU: none, its width is that of the model.
    GruConfig {}
}

impl MixerSettings for GruConfig {
    fn title(&self) -> &'static str {
        "GRU"
    }

    fn size(&self) -> String {
        "one state per channel".to_owned()
    }

    fn validate(&self, context: &MixerContext) -> Result<()> {
        validate_forwards("gru", context)
    }

    fn tensors(&self, context: &MixerContext) -> Vec<TensorSpec> {
        let (h, gates) = (context.h, context.h.saturating_mul(3));
        [linear("input", h, gates), linear("hidden", h, gates)].concat()
    }
}
