//! How often each character occurs, and the vocabulary that follows from it.

use std::collections::BTreeMap;

use crate::Vocabulary;

/// Counts characters.
pub(crate) struct Counter {
    ascii: [u64; 128],
    others: BTreeMap<char, u64>,
}

impl Default for Counter {
    fn default() -> Self {
        Self { ascii: [0; 128], others: BTreeMap::new() }
    }
}

impl Counter {
    /// Counts the characters of a text `times` times; what is not UTF-8 is not counted.
    pub(crate) fn add(&mut self, text: &[u8], times: u64) {
        for chunk in text.utf8_chunks() {
            for c in chunk.valid().chars() {
                match self.ascii.get_mut(c as usize) {
                    Some(count) => *count += times,
                    None => *self.others.entry(c).or_default() += times,
                }
            }
        }
    }

    /// Characters that occurred, with their counts.
    pub(crate) fn counts(&self) -> Vec<(char, u64)> {
        let ascii = (0..128u8).map(char::from).zip(self.ascii);
        let others = self.others.iter().map(|(&c, &count)| (c, count));
        ascii.chain(others).filter(|(_, count)| *count > 0).collect()
    }

    /// See [`vocabulary`].
    #[cfg(test)]
    pub(crate) fn vocabulary(&self, min_count: u64) -> Vocabulary {
        vocabulary(self.counts(), min_count)
    }
}

/// The characters that occur at least `min_count` times, by falling count, ties in the order of code points.
pub(crate) fn vocabulary(counts: Vec<(char, u64)>, min_count: u64) -> Vocabulary {
    let often = counts.into_iter().filter(|(_, count)| *count >= min_count);
    Vocabulary::from_counts(often.map(|(c, count)| (c.to_string(), count)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_characters_are_left_out() {
        let mut counter = Counter::default();
        counter.add("aaß".as_bytes(), 1);
        counter.add("zß".as_bytes(), 2);
        counter.add(b"z\xff", 0);
        assert_eq!(counter.counts(), [('a', 2), ('z', 2), ('ß', 3)]);
        assert_eq!(counter.vocabulary(0).symbols()[3..], ["ß", "a", "z"]);
        assert_eq!(counter.vocabulary(3).symbols()[3..], ["ß"]);
    }
}
