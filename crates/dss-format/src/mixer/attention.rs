//! Softmax attention with several heads (Vaswani et al. 2017).
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
use crate::error::Result;
use crate::tensors::TensorSpec;

/// The settings of softmax attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct AttentionConfig {
    /// Number of heads; they divide the width.
    pub heads: usize,
    /// Width Q of queries, keys and values together over all heads; 0 = the model's h.
    pub width: usize,
    /// Whether the projections have biases.
    pub bias: bool,
}

impl Default for AttentionConfig {
    fn default() -> Self {
        Self { heads: 4, width: 0, bias: false }
    }
}

impl AttentionConfig {
    /// Q in a model of h channels.
    pub fn width_in(&self, h: usize) -> usize {
        if self.width == 0 { h } else { self.width }
    }
}

impl MixerSettings for AttentionConfig {
    fn title(&self) -> &'static str {
        "Transformer"
    }

    fn size(&self) -> String {
        format!("{} heads", self.heads)
    }

    fn validate(&self, context: &MixerContext) -> Result<()> {
        validate_heads(self.heads, self.width_in(context.h), WIDTH)
    }

    fn tensors(&self, context: &MixerContext) -> Vec<TensorSpec> {
        projections(context.h, self.width_in(context.h), self.bias)
    }
}
