//! Reformer (Kitaev et al. 2020): attention among positions with similar queries, found by locality-sensitive hashing.
//! In each round positions are sorted by their buckets and cut into chunks; a chunk sees itself and the one before.
//!
//! | name | shape | |
//! |------|-------|-|
//! | `qk.weight` | `[Q, H]` | queries, which are keys too |
//! | `v.weight` | `[Q, H]` | values |
//! | `out.weight` | `[H, Q]` | output projection; not in the form `lra` |
//! | `rotations` | `[heads, d, R, buckets/2]`; `[1, d, 1, buckets/2]` in the form `lra` | what hashes in evaluation; not trained |

use serde::{Deserialize, Serialize};

use super::heads::{WIDTH, validate_heads};
use super::settings::settings;
use super::{MixerContext, MixerSettings};
use crate::error::{Error, Result};
use crate::tensors::TensorSpec;

/// Whose Reformer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReformerVariant {
    /// The paper's: keys of unit length, several rounds, new rotations in every training pass.
    #[default]
    Paper,
    /// The Long Range Arena's: one round and about ten chunks, keys are the queries, logits times √d, a position sees
    /// itself, padding takes part as zeros, no output projection, one set of rotations.
    Lra,
}

settings! {
    /// The settings of Reformer.
    ReformerConfig {
        /// The paper's form (paper), or that of the Long Range Arena's code (lra).
        variant: ReformerVariant = ReformerVariant::Paper,
        /// Number of heads; they divide the width.
        heads: usize = 4,
        /// Width Q of queries and values together over all heads; 0 = the model's h.
        width: usize = 0,
        /// Rounds R of hashing; 0 = 4, or 1 with variant = lra, which has no more.
        rounds: usize = 0,
        /// Positions of a chunk; 0 = 64, or a tenth of the length with variant = lra.
        chunk: usize = 0,
        /// Buckets of a round, an even number; 0 = two for each chunk, or 10 with variant = lra.
        buckets: usize = 0,
    }
}

/// The sizes of a Reformer layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReformerSizes {
    /// Rounds R.
    pub rounds: usize,
    /// Positions of a chunk.
    pub chunk: usize,
    /// Chunks of a round.
    pub chunks: usize,
    /// Buckets of a round.
    pub buckets: usize,
}

impl ReformerConfig {
    /// Q in a model of h channels.
    pub fn width_in(&self, h: usize) -> usize {
        if self.width == 0 { h } else { self.width }
    }

    /// What the settings mean for sequences of up to `len` positions.
    pub fn sizes(&self, len: usize) -> ReformerSizes {
        let lra = self.variant == ReformerVariant::Lra;
        let or = |setting: usize, default: usize| if setting == 0 { default } else { setting };
        let chunk = or(self.chunk, if lra { len.div_ceil(10).max(1) } else { 64 });
        let chunks = len.div_ceil(chunk).max(1);
        ReformerSizes {
            rounds: or(self.rounds, if lra { 1 } else { 4 }),
            chunk,
            chunks,
            buckets: or(self.buckets, if lra { 10 } else { chunks.saturating_mul(2) }),
        }
    }
}

#[cfg(feature = "kernels")]
impl From<ReformerSizes> for dss_kernels::attention::gathered::HashSizes {
    fn from(sizes: ReformerSizes) -> Self {
        let ReformerSizes { rounds, chunk, chunks, buckets } = sizes;
        Self { rounds, buckets, chunk, chunks }
    }
}

impl MixerSettings for ReformerConfig {
    fn title(&self) -> &'static str {
        "Reformer"
    }

    fn size(&self) -> String {
        match self.variant {
            ReformerVariant::Paper => {
                let ReformerSizes { rounds, chunk, .. } = self.sizes(0);
                format!("{} heads, {rounds} rounds, chunks of {chunk}", self.heads)
            }
            ReformerVariant::Lra => format!("{} heads, the Long Range Arena's form", self.heads),
        }
    }

    fn validate(&self, context: &MixerContext) -> Result<()> {
        validate_heads(self.heads, self.width_in(context.h), WIDTH)?;
        if !self.buckets.is_multiple_of(2) {
            let (buckets, nearest) = (self.buckets, self.buckets.saturating_add(1) & !1);
            let what = format!("buckets must be even, but is {buckets}: try {nearest}");
            return Err(Error::setting(&["model.mixer.buckets"], what));
        }
        if self.variant == ReformerVariant::Paper {
            return Ok(());
        }
        if !context.bidirectional {
            let what = "variant = \"lra\" sees the whole sequence: set bidirectional to true, or variant to \"paper\"";
            return Err(Error::setting(&["model.bidirectional", "model.mixer.variant"], what));
        }
        if self.rounds > 1 {
            let what =
                format!("variant = \"lra\" has one round, but rounds is {}: try 1", self.rounds);
            return Err(Error::setting(&["model.mixer.rounds"], what));
        }
        if self.width_in(context.h) != context.h {
            let what = format!(
                "variant = \"lra\" has no output projection, so that width must be h = {}, but is {}: try 0",
                context.h, self.width
            );
            return Err(Error::setting(&["model.mixer.width"], what));
        }
        Ok(())
    }

    fn tensors(&self, context: &MixerContext) -> Vec<TensorSpec> {
        let (h, width) = (context.h, self.width_in(context.h));
        let mut all = ["qk.weight", "v.weight"].map(|x| TensorSpec::other(x, &[width, h])).to_vec();
        let ReformerSizes { rounds, buckets, .. } = self.sizes(context.len);
        let heads = match self.variant {
            ReformerVariant::Paper => {
                all.push(TensorSpec::other("out.weight", &[h, width]));
                self.heads
            }
            ReformerVariant::Lra => 1,
        };
        let d = width / self.heads.max(1);
        all.push(TensorSpec::fixed("rotations", &[heads, d, rounds, buckets / 2]));
        all
    }
}
