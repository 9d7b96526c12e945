//! Linear attention (Katharopoulos et al. 2020): weights φ(q)·φ(k) with φ = elu + 1 in place of the softmax.
//!
//! The tensors are those of [`AttentionConfig`].

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

use super::{AttentionConfig, MixerContext, MixerSettings};
use crate::error::Result;
use crate::tensors::TensorSpec;

/// The settings of linear attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct LinearAttentionConfig {
    /// Number of heads; they divide the width.
    pub heads: usize,
    /// Width Q of queries, keys and values together over all heads; 0 = the model's h.
    pub width: usize,
    /// Whether the projections have biases.
    pub bias: bool,
}

impl Default for LinearAttentionConfig {
    fn default() -> Self {
        Self { heads: 4, width: 0, bias: false }
    }
}

impl LinearAttentionConfig {
    /// What is added to a sum of weights before it divides.
    pub const EPS: f64 = 1e-6;

    /// The heads and the projections around them.
    pub fn frame(&self) -> AttentionConfig {
        let Self { heads, width, bias } = *self;
        AttentionConfig { heads, width, bias }
    }
}

impl MixerSettings for LinearAttentionConfig {
    fn title(&self) -> &'static str {
        "Linear Transformer"
    }

    fn size(&self) -> String {
        format!("{} heads", self.heads)
    }

    fn validate(&self, context: &MixerContext) -> Result<()> {
        self.frame().validate(context)
    }

    fn tensors(&self, context: &MixerContext) -> Vec<TensorSpec> {
        self.frame().tensors(context)
    }
}
