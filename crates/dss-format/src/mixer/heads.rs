//! What the settings of attention-like mixers share.

use super::MixerContext;
use crate::error::{Error, Result};

/// The heads divide the h channels.
pub(super) fn validate_heads(heads: usize, h: usize) -> Result<()> {
    let keys = &["model.mixer.heads", "model.h"];
    if heads == 0 {
        return Err(Error::setting(keys, "heads must be at least 1, but is 0"));
    }
    if h.is_multiple_of(heads) {
        return Ok(());
    }
    let divisors =
        (1..=h.min(heads.saturating_mul(2)).min(1 << 16)).filter(|n| h.is_multiple_of(*n));
    let nearest = divisors.min_by_key(|n| n.abs_diff(heads)).unwrap_or(1);
    let what = format!("heads must divide h = {h}, but is {heads}: try {nearest}");
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
