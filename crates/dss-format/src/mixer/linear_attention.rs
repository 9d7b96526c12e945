//! Linear attention (Katharopoulos et al. 2020): weights φ(q)·φ(k) with φ = elu + 1 in place of the softmax.
//!
//! The tensors are those of [`AttentionConfig`](super::AttentionConfig).

use super::heads::attention_config;
use super::{MixerContext, MixerSettings};
use crate::error::Result;
use crate::tensors::TensorSpec;

attention_config! {
    /// The settings of linear attention.
    LinearAttentionConfig {}
}

impl LinearAttentionConfig {
    /// What is added to a sum of weights before it divides.
    pub const EPS: f64 = 1e-6;
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
