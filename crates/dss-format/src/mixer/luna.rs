//! Luna (Ma et al. 2021): attention of a second, short stream p to the sequence, then of the sequence to the result.
//! p passes from layer to layer beside the sequence.
//!
//! | name | shape | |
//! |------|-------|-|
//! | `pq.*`, `pk.*`, `pv.*` | `[H, H]` each, with biases | queries of p, keys and values of the sequence |
//! | `q.*`, `k.*`, `v.*`, `out.*` | likewise | queries of the sequence, keys and values of the packed stream, output |
//! | `p_norm.gamma`, `.beta` | `[H]` each | LayerNorm of p after the layer |

use super::heads::{CHANNELS, validate_heads, validate_looks_ahead};
use super::settings::settings;
use super::{MixerContext, MixerSettings, saturating_product};
use crate::error::Result;
use crate::range::validate_count;
use crate::tensors::{TensorSpec, linear};

settings! {
    /// The settings of Luna.
    LunaConfig {
        /// Number of heads of both attentions; they divide h.
        heads: usize = 4,
        /// Positions of the second stream; a sequence of fewer positions uses as many as it has.
        packed: usize = 256,
    }
}

impl LunaConfig {
    /// ε of the norms of the second stream.
    pub const NORM_EPS: f64 = 1e-5;
}

impl MixerSettings for LunaConfig {
    fn title(&self) -> &'static str {
        if self.packed == 256 { "Luna-256" } else { "Luna" }
    }

    fn size(&self) -> String {
        format!("{} heads, {} packed positions", self.heads, self.packed)
    }

    fn validate(&self, context: &MixerContext) -> Result<()> {
        validate_looks_ahead("luna", context)?;
        validate_heads(self.heads, context.h, CHANNELS)?;
        validate_count(&["model.mixer.packed"], "packed", self.packed)
    }

    fn tensors(&self, context: &MixerContext) -> Vec<TensorSpec> {
        let h = context.h;
        let maps = ["q", "k", "v", "out", "pq", "pk", "pv"];
        let mut all: Vec<_> = maps.into_iter().flat_map(|name| linear(name, h, h)).collect();
        all.extend(["p_norm.gamma", "p_norm.beta"].map(|name| TensorSpec::other(name, &[h])));
        all
    }

    /// The weights of both attentions, with what leads to them.
    fn kept_per_sequence(&self, context: &MixerContext) -> u64 {
        saturating_product(&[self.heads, context.len, self.packed, 4, 4])
    }

    fn side_stream(&self) -> Option<usize> {
        Some(self.packed)
    }
}
