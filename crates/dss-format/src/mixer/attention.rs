//! Softmax attention with several heads (Vaswani et al. 2017).
//!
//! | name | shape | |
//! |------|-------|-|
//! | `q.weight`, `k.weight`, `v.weight` | `[Q, H]` each | queries, keys and values |
//! | `out.weight` | `[H, Q]` | output projection |
//! | `q.bias`, `k.bias`, `v.bias`, `out.bias` | `[Q]`, `[H]` | with `bias` |

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

use super::{MixerConfig, MixerContext, MixerSettings};
use crate::error::{Error, Result};
use crate::tensors::{TensorSpec, linear};

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
        validate_heads(self.heads, self.width_in(context.h))
    }

    fn tensors(&self, context: &MixerContext) -> Vec<TensorSpec> {
        projections(context.h, self.width_in(context.h), self.bias)
    }

    fn at_step(&self, _r: f64) -> Result<MixerConfig> {
        let what = "attention has no step, so it cannot run at another rate";
        Err(Error::setting(&["model.mixer.kind"], what))
    }
}

/// The heads divide the width of the queries.
pub(super) fn validate_heads(heads: usize, width: usize) -> Result<()> {
    if heads == 0 {
        return Err(Error::setting(&["model.mixer.heads"], "heads must be at least 1, but is 0"));
    }
    if width.is_multiple_of(heads) {
        return Ok(());
    }
    let nearest = (1..=width).filter(|n| width.is_multiple_of(*n));
    let nearest = nearest.min_by_key(|n| n.abs_diff(heads)).unwrap_or(1);
    let what = format!("heads must divide the width {width}, but is {heads}: try {nearest}");
    Err(Error::setting(&["model.mixer.heads", "model.mixer.width"], what))
}

/// q, k and v `[Q, H]`, out `[H, Q]`, with their biases if there are any.
pub(super) fn projections(h: usize, width: usize, bias: bool) -> Vec<TensorSpec> {
    let maps = [("q", h, width), ("k", h, width), ("v", h, width), ("out", width, h)];
    let all = maps.into_iter().flat_map(|(name, inputs, outputs)| linear(name, inputs, outputs));
    all.filter(|tensor| bias || !tensor.name.ends_with("bias")).collect()
}
