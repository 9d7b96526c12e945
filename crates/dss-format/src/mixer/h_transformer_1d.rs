//! H-Transformer-1D (Zhu & Soricut 2021): attention that is exact between neighbouring blocks and ever coarser between
//! those further apart.
//!
//! The tensors are those of [`AttentionConfig`](super::AttentionConfig).

use super::heads::attention_config;
use super::{MixerContext, MixerSettings};
use crate::error::{Error, Result};
use crate::tensors::TensorSpec;

attention_config! {
    /// The settings of H-Transformer-1D.
    HTransformer1dConfig {
        /// Positions of a block at each level, an even number.
        block: usize = 16,
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
        self.frame().validate(context)?;
        if self.block >= 2 && self.block.is_multiple_of(2) {
            return Ok(());
        }
        let nearest = (self.block.saturating_add(1) & !1).max(2);
        let what =
            format!("block must be even and at least 2, but is {}: try {nearest}", self.block);
        Err(Error::setting(&["model.mixer.block"], what))
    }

    fn tensors(&self, context: &MixerContext) -> Vec<TensorSpec> {
        self.frame().tensors(context)
    }
}
