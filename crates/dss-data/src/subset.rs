//! The first so many examples of a split.

use crate::{Error, Result};

/// Keeps the first `count` numbers; 0 = all. `key` is the setting that says how many.
pub(crate) fn limit(key: &'static str, count: usize, numbers: &mut Vec<u32>) -> Result<()> {
    if numbers.is_empty() {
        return Err(Error::setting(key, count, "no example is there, or none without a fault"));
    }
    if count > numbers.len() {
        let what = format!("there are only {}; use 0 for all of them", numbers.len());
        return Err(Error::setting(key, count, what));
    }
    if count > 0 {
        numbers.truncate(count);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_there_are() {
        let mut numbers = vec![5, 3, 4];
        limit("val", 0, &mut numbers).unwrap();
        assert_eq!(numbers, [5, 3, 4]);
        limit("val", 2, &mut numbers).unwrap();
        assert_eq!(numbers, [5, 3]);
        let error = limit("val", 3, &mut numbers).unwrap_err().to_string();
        assert!(error.contains("task.val = 3") && error.contains("only 2"), "{error}");
        assert!(limit("val", 0, &mut Vec::new()).is_err(), "a split needs an example");
    }
}
