//! What the settings of attention-like mixers share.

use super::MixerContext;
use crate::error::{Error, Result};
use crate::range::validate_count;
use crate::tensors::{TensorSpec, linear};

/// The keys of heads that divide a width of their own.
pub(super) const WIDTH: &[&str] = &["model.mixer.heads", "model.mixer.width"];

/// The keys of heads that divide the channels of the model.
pub(super) const CHANNELS: &[&str] = &["model.mixer.heads", "model.h"];

/// The heads divide the width of the queries.
pub(super) fn validate_heads(
    heads: usize,
    width: usize,
    keys: &'static [&'static str],
) -> Result<()> {
    validate_count(keys, "heads", heads)?;
    if width.is_multiple_of(heads) {
        return Ok(());
    }
    let divisors = 1..=width.min(heads.saturating_mul(2)).min(1 << 16);
    let divisors = divisors.filter(|n| width.is_multiple_of(*n));
    let nearest = divisors.min_by_key(|n| n.abs_diff(heads)).unwrap_or(1);
    let what = format!("heads must divide the width {width}, but is {heads}: try {nearest}");
    Err(Error::setting(keys, what))
}

/// Positions see what follows them: there is no causal form.
pub(super) fn validate_looks_ahead(mixer: &'static str, context: &MixerContext) -> Result<()> {
    if context.bidirectional {
        return Ok(());
    }
    let what = format!(
        "mixer = \"{mixer}\" sees whole sequences and has no causal form: set bidirectional to true, or take another \
         mixer"
    );
    Err(Error::setting(&["model.bidirectional"], what))
}

/// q, k and v `[Q, H]`, out `[H, Q]`, with their biases if there are any.
pub(super) fn projections(h: usize, width: usize, bias: bool) -> Vec<TensorSpec> {
    let maps = [("q", h, width), ("k", h, width), ("v", h, width), ("out", width, h)];
    let all = maps.into_iter().flat_map(|(name, inputs, outputs)| linear(name, inputs, outputs));
    all.filter(|tensor| bias || !tensor.name.ends_with("bias")).collect()
}

/// Settings of a mixer with heads and the four projections around them: those of attention, then its own.
macro_rules! attention_config {
    ($(#[$meta:meta])* $name:ident { $($own:tt)* }) => {
        $crate::mixer::settings::settings! {
            $(#[$meta])*
            $name {
                /// Number of heads; they divide the width.
                heads: usize = 4,
                /// Width Q of queries, keys and values together over all heads; 0 = the model's h.
                width: usize = 0,
                /// Whether the projections have biases.
                bias: bool = false,
                $($own)*
            }
        }

        impl $name {
            /// The heads and the projections around them.
            pub fn frame(&self) -> $crate::mixer::AttentionConfig {
                let Self { heads, width, bias, .. } = *self;
                $crate::mixer::AttentionConfig { heads, width, bias }
            }

            /// Q in a model of h channels.
            pub fn width_in(&self, h: usize) -> usize {
                if self.width == 0 { h } else { self.width }
            }
        }
    };
}
pub(super) use attention_config;
