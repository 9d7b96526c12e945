//! Long short-term memory (Hochreiter & Schmidhuber 1997), with PyTorch's equations.
//!
//! | name | shape | |
//! |------|-------|-|
//! | `input.weight`, `.bias` | `[4H, H]`, `[4H]` | what the gates get of the input |
//! | `hidden.weight`, `.bias` | `[4H, H]`, `[4H]` | what they get of the state |

use super::recurrent::validate_forwards;
use super::settings::settings;
use super::{MixerContext, MixerSettings};
use crate::error::Result;
use crate::tensors::{TensorSpec, linear};

settings! {
    /// The settings of LSTM: none, its width is that of the model.
    LstmConfig {}
}

impl MixerSettings for LstmConfig {
    fn title(&self) -> &'static str {
        "LSTM"
    }

    fn size(&self) -> String {
        "one state per channel".to_owned()
    }

    fn validate(&self, context: &MixerContext) -> Result<()> {
        validate_forwards("lstm", context)
    }

    fn tensors(&self, context: &MixerContext) -> Vec<TensorSpec> {
        let (h, gates) = (context.h, context.h.saturating_mul(4));
        [linear("input", h, gates), linear("hidden", h, gates)].concat()
    }
}
