//! Splits as selections of examples by number.

use std::sync::Arc;

use crate::task::Split;
use crate::{Dataset, Error, Example, Result};

/// Some of the examples of a source.
struct Selection<F> {
    numbers: Vec<u32>,
    example: F,
}

impl<F: Fn(usize) -> Result<Example> + Send + Sync> Dataset for Selection<F> {
    fn len(&self) -> usize {
        self.numbers.len()
    }

    fn example(&self, i: usize) -> Result<Example> {
        (self.example)(self.numbers[i] as usize)
    }
}

/// Splits that have the examples of these numbers.
pub(crate) fn select<const N: usize>(
    numbers: [Vec<u32>; N],
    example: impl Fn(usize) -> Result<Example> + Send + Sync + 'static,
) -> [Arc<dyn Dataset>; N] {
    let example = Arc::new(example);
    numbers.map(|numbers| -> Arc<dyn Dataset> {
        let example = example.clone();
        Arc::new(Selection { numbers, example: move |i| example(i) })
    })
}

/// Keeps as many of the numbers of each split as the settings `train`, `val` and `test` say.
pub(crate) fn limit_all(counts: [usize; 3], splits: &mut [Vec<u32>; 3]) -> Result<()> {
    let splits = Split::ALL.iter().zip(counts).zip(splits);
    splits.into_iter().try_for_each(|((split, count), numbers)| limit(split.name(), count, numbers))
}

/// Keeps the first `count` numbers; 0 = all. `key` is the setting that says how many.
pub(crate) fn limit(key: &'static str, count: usize, numbers: &mut Vec<u32>) -> Result<()> {
    if numbers.is_empty() {
        return Err(Error::setting(key, count, "no valid examples"));
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
    fn zero_takes_all() {
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
