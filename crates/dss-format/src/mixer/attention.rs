//! Softmax attention with several heads (Vaswani et al. 2017).
//!
//! | name | shape | |
//! |------|-------|-|
//! | `q.weight`, `k.weight`, `v.weight` | `[Q, H]` each | queries, keys and values |
//! | `out.weight` | `[H, Q]` | output projection |
//! | `q.bias`, `k.bias`, `v.bias`, `out.bias` | `[Q]`, `[H]` | with `bias` |

use super::heads::{WIDTH, attention_config, projections, validate_heads};
use super::{MixerContext, MixerSettings};
use crate::error::Result;
use crate::tensors::TensorSpec;

attention_config! {
    /// The settings of softmax attention.
    AttentionConfig {}
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
