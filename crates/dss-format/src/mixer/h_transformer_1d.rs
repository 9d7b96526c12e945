//! H-Transformer-1D (Zhu & Soricut 2021): attention that is exact between neighbouring blocks and ever coarser between
//! those further apart.
//!
//! | name | shape | |
//! |------|-------|-|
//! | `q.weight`, `k.weight`, `v.weight` | `[Q, H]` each | queries, keys and values |
//! | `out.weight` | `[H, Q]` | output projection |
//! | `q.bias`, `k.bias`, `v.bias`, `out.bias` | `[Q]`, `[H]` | with `bias` |

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

use super::heads::{WIDTH, projections, validate_heads};
use super::{MixerContext, MixerSettings};
use crate::error::{Error, Result};
use crate::tensors::TensorSpec;

/// The settings of H-Transformer-1D.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct HTransformer1dConfig {
    /// Number of heads; they divide the width.
    pub heads: usize,
    /// Width Q of queries, keys and values together over all heads; 0 = the model's h.
    pub width: usize,
    /// Whether the projections have biases.
    pub bias: bool,
    /// Positions of a block at each level, an even number.
    pub block: usize,
}

impl Default for HTransformer1dConfig {
    fn default() -> Self {
        Self { heads: 4, width: 0, bias: false, block: 16 }
    }
}

impl HTransformer1dConfig {
    /// Q in a model of h channels.
    pub fn width_in(&self, h: usize) -> usize {
        if self.width == 0 { h } else { self.width }
    }
}

impl MixerSettings for HTransformer1dConfig {
    fn title(&self) -> &'static str {
        "H-Transformer-1D"
    }

    fn size(&self) -> String {
        format!("{} heads, blocks of {}", self.heads, self.block)
    }

    fn validate(&self, context: &MixerContext) -> Result<()> {
        validate_heads(self.heads, self.width_in(context.h), WIDTH)?;
        if self.block >= 2 && self.block.is_multiple_of(2) {
            return Ok(());
        }
        let nearest = (self.block.saturating_add(1) & !1).max(2);
        let what =
            format!("block must be even and at least 2, but is {}: try {nearest}", self.block);
        Err(Error::setting(&["model.mixer.block"], what))
    }

    fn tensors(&self, context: &MixerContext) -> Vec<TensorSpec> {
        projections(context.h, self.width_in(context.h), self.bias)
    }
}
