//! BigBird (Zaheer et al. 2020): attention between blocks of positions. A block sees the first and the last block, itself
//! and its neighbours, and a few blocks drawn at random for each head; the first and the last block see all.
//!
//! | name | shape | |
//! |------|-------|-|
//! | `q.weight`, `k.weight`, `v.weight` | `[Q, H]` each | queries, keys and values |
//! | `out.weight` | `[H, Q]` | output projection |
//! | `q.bias`, `k.bias`, `v.bias`, `out.bias` | `[Q]`, `[H]` | with `bias` |
//! | `blocks` | `[heads, blocks − 2, r]` | the random blocks of all but the first and the last block; not trained |

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

use super::attention::{projections, validate_heads};
use super::heads::validate_looks_ahead;
use super::recurrent::no_step;
use super::{MixerConfig, MixerContext, MixerSettings};
use crate::error::{Error, Result};
use crate::tensors::TensorSpec;

/// The settings of BigBird. Where there are fewer than 5 + `random_blocks` blocks, it is full attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct BigbirdConfig {
    /// Number of heads; they divide the width.
    pub heads: usize,
    /// Width Q of queries, keys and values together over all heads; 0 = the model's h.
    pub width: usize,
    /// Whether the projections have biases.
    pub bias: bool,
    /// Positions of a block.
    pub block: usize,
    /// Blocks r drawn at random for each block and head; with fewer than 5 + r blocks attention is full.
    pub random_blocks: usize,
}

impl Default for BigbirdConfig {
    fn default() -> Self {
        Self { heads: 4, width: 0, bias: false, block: 64, random_blocks: 3 }
    }
}

impl BigbirdConfig {
    /// Q in a model of h channels.
    pub fn width_in(&self, h: usize) -> usize {
        if self.width == 0 { h } else { self.width }
    }

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
        validate_heads(self.heads, self.width_in(context.h))?;
        if self.block == 0 {
            let what = "block must be at least 1, but is 0: try 64";
            return Err(Error::setting(&["model.mixer.block"], what));
        }
        Ok(())
    }

    fn tensors(&self, context: &MixerContext) -> Vec<TensorSpec> {
        let mut all = projections(context.h, self.width_in(context.h), self.bias);
        if let Some(blocks) = self.blocks(context.len).filter(|_| self.random_blocks > 0) {
            let shape = [self.heads, blocks - 2, self.random_blocks];
            all.push(TensorSpec::fixed("blocks", &shape));
        }
        all
    }

    fn at_step(&self, _r: f64) -> Result<MixerConfig> {
        no_step("bigbird")
    }
}
