//! BigBird (Zaheer et al. 2020): attention between blocks of positions. A block sees the first and the last block, itself
//! and its neighbours, and a few blocks drawn at random for each head; the first and the last block see all.
//!
//! The tensors of [`AttentionConfig`](super::AttentionConfig), and
//!
//! | name | shape | |
//! |------|-------|-|
//! | `blocks` | `[heads, blocks − 2, r]` | the random blocks of all but the first and the last block; not trained |

use super::heads::{attention_config, validate_looks_ahead};
use super::{MixerContext, MixerSettings};
use crate::error::{Error, Result};
use crate::tensors::{NumberRange, TensorSpec};

attention_config! {
    /// The settings of BigBird. Where there are fewer than 5 + `random_blocks` blocks, it is full attention.
    BigbirdConfig {
        /// Positions of a block.
        block: usize = 64,
        /// Blocks r drawn at random for each block and head; with fewer than 5 + r blocks attention is full.
        random_blocks: usize = 3,
    }
}

impl BigbirdConfig {
    /// Blocks of a sequence of `len` positions; `None` if they are so few that all see all.
    pub fn blocks(&self, len: usize) -> Option<usize> {
        let blocks = len.div_ceil(self.block.max(1));
        (blocks >= self.random_blocks.saturating_add(5)).then_some(blocks)
    }
}

impl MixerSettings for BigbirdConfig {
    fn title(&self) -> &'static str {
        "BigBird"
    }

    fn size(&self) -> String {
        let Self { heads, block, random_blocks, .. } = self;
        format!("{heads} heads, blocks of {block}, {random_blocks} at random")
    }

    fn validate(&self, context: &MixerContext) -> Result<()> {
        validate_looks_ahead("bigbird", context)?;
        self.frame().validate(context)?;
        if self.block == 0 {
            let what = "block must be at least 1, but is 0: try 64";
            return Err(Error::setting(&["model.mixer.block"], what));
        }
        Ok(())
    }

    fn tensors(&self, context: &MixerContext) -> Vec<TensorSpec> {
        let mut all = self.frame().tensors(context);
        if let Some(blocks) = self.blocks(context.len).filter(|_| self.random_blocks > 0) {
            let shape = [self.heads, blocks - 2, self.random_blocks];
            all.push(TensorSpec::fixed_in(NumberRange::Below(blocks), "blocks", &shape));
        }
        all
    }
}
