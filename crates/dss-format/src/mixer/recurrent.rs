//! What the settings of recurrent nets share: their state has the width h of the model, and they read forwards only.

use super::MixerContext;
use crate::error::{Error, Result};
use crate::tensors::{ParamGroup, TensorSpec};

/// Positions do not see what follows them.
pub(super) fn validate_forwards(mixer: &'static str, context: &MixerContext) -> Result<()> {
    if !context.bidirectional {
        return Ok(());
    }
    let what =
        format!("mixer = \"{mixer}\" reads its sequence forwards only: set bidirectional to false");
    Err(Error::setting(&["model.bidirectional"], what))
}

/// A count that must be at least 1.
pub(super) fn validate_count(key: &'static [&'static str], name: &str, count: usize) -> Result<()> {
    if count > 0 {
        return Ok(());
    }
    Err(Error::setting(key, format!("{name} must be at least 1, but is 0: try 1")))
}

/// A number that must be above 0 and finite. Of those there is no nearest: tried is the number without its sign, or the
/// default.
pub(super) fn validate_positive(
    key: &'static [&'static str],
    name: &str,
    number: f64,
    default: f64,
) -> Result<()> {
    if number > 0.0 && number.is_finite() {
        return Ok(());
    }
    let tried = if number < 0.0 && number.is_finite() { -number } else { default };
    Err(Error::setting(key, format!("{name} must be above 0, but is {number}: try {tried}")))
}

/// A tensor of the recurrent part: no weight decay, and the learning rate of Λ.
pub(super) fn recurrent_tensor(name: &str, shape: &[usize]) -> TensorSpec {
    TensorSpec::new(name, shape, ParamGroup::Lambda)
}
