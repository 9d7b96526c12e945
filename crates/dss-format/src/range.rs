//! Settings that are numbers in their ranges.

use crate::error::{Error, Result};

/// A count that must be at least 1.
pub(crate) fn validate_count(key: &'static [&'static str], name: &str, count: usize) -> Result<()> {
    if count > 0 {
        return Ok(());
    }
    Err(Error::setting(key, format!("{name} must be at least 1, but is 0: try 1")))
}

/// A number that must be above 0 and finite. Of those there is no nearest: tried is the number without its sign, or the
/// default.
pub(crate) fn validate_positive(
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
