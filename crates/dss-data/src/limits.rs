//! The largest sizes: what a sequence and a split may have.

use crate::{Error, Result};

/// The longest sequence.
const LENGTH: usize = 1 << 24;
/// Examples of all splits together stay below this: they are numbered by `u32`.
const EXAMPLES: u64 = 1 << 32;

/// A length, or a part of one, that is not too large.
pub(crate) fn length(key: &'static str, value: usize) -> Result<()> {
    match value <= LENGTH {
        true => Ok(()),
        false => Err(Error::setting(key, value, "must be at most 2^24 = 16777216")),
    }
}

/// Counts of the three splits: each has something, all together are not too many. `what` is one example.
pub(crate) fn counts(counts: [usize; 3], what: &str) -> Result<()> {
    let mut sum = 0u64;
    for (key, count) in ["train", "val", "test"].into_iter().zip(counts) {
        if count == 0 {
            return Err(Error::setting(
                key,
                count,
                format!("each split needs at least one {what}"),
            ));
        }
        sum = sum.saturating_add(count as u64);
        if sum >= EXAMPLES {
            let what = "train, val and test together must be fewer than 2^32 = 4294967296";
            return Err(Error::setting(key, count, what));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_bounds() {
        assert!(length("length", 1 << 24).is_ok());
        let error = length("length", (1 << 24) + 1).unwrap_err().to_string();
        assert!(error.contains("task.length = 16777217: must be at most 2^24"), "{error}");
        assert!(counts([1, 1, 1], "sequence").is_ok());
        let error = counts([1, 0, 1], "sequence").unwrap_err().to_string();
        assert_eq!(error, "task.val = 0: each split needs at least one sequence");
        let error = counts([1, usize::MAX, usize::MAX], "sequence").unwrap_err().to_string();
        assert!(error.contains("task.val = ") && error.contains("2^32"), "{error}");
    }
}
