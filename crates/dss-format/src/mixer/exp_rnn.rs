//! ExpRNN (Lezcano-Casado & Martínez-Rubio 2019): a recurrent net with the orthogonal matrix exp(A − Aᵀ).
//!
//! | name | shape | |
//! |------|-------|-|
//! | `input.weight`, `.bias` | `[H, H]`, `[H]` | the map of the input |
//! | `a` | `[H, H]` | only its strict upper triangle counts |
//! | `offset` | `[H]` | that of modReLU |

use serde::{Deserialize, Serialize};

use super::recurrent::{recurrent_tensor, validate_forwards};
use super::settings::settings;
use super::{MixerContext, MixerSettings};
use crate::error::Result;
use crate::tensors::{TensorSpec, linear};

/// The angles of the rotations that Q begins as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RotationInit {
    /// θ = −√((1 − cos s)/(1 + cos s)), s ~ U(0, π/2).
    #[default]
    Cayley,
    /// θ ~ U(−π, π).
    Henaff,
}

settings! {
    /// The settings of ExpRNN.
    ExpRnnConfig {
        /// Angles of the initial rotations: cayley or henaff.
        init: RotationInit = RotationInit::default(),
    }
}

impl MixerSettings for ExpRnnConfig {
    fn title(&self) -> &'static str {
        "ExpRNN"
    }

    fn size(&self) -> String {
        "one state per channel".to_owned()
    }

    fn validate(&self, context: &MixerContext) -> Result<()> {
        validate_forwards("exp-rnn", context)
    }

    fn tensors(&self, context: &MixerContext) -> Vec<TensorSpec> {
        let h = context.h;
        let mut all = linear("input", h, h).to_vec();
        all.push(recurrent_tensor("a", &[h, h]));
        all.push(TensorSpec::other("offset", &[h]));
        all
    }
}
