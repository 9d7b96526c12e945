//! Token ids: the specials first, then symbols by falling frequency.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

/// Id 0: fills a batch up to its length.
pub const PAD: u32 = 0;
/// Id 1: stands for every symbol that is not in the vocabulary.
pub const UNK: u32 = 1;
/// Id 2: the end of a sequence.
pub const EOS: u32 = 2;
/// The symbols of the first three ids.
pub const SPECIALS: [&str; 3] = ["<pad>", "<unk>", "<eos>"];

/// Symbols and their ids. Serialised as the list of symbols.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<String>", into = "Vec<String>")]
pub struct Vocabulary {
    symbols: Vec<String>,
    ids: HashMap<String, u32>,
}

impl Vocabulary {
    /// The specials, then the counted symbols by falling count, ties in lexical order.
    pub fn from_counts(counts: impl IntoIterator<Item = (String, u64)>) -> Self {
        let mut counted: Vec<_> = counts.into_iter().collect();
        counted.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let specials = SPECIALS.iter().map(|s| s.to_string());
        specials.chain(counted.into_iter().map(|(symbol, _)| symbol)).collect::<Vec<_>>().into()
    }

    /// The id of a symbol, [`UNK`] if it has none.
    pub fn id(&self, symbol: &str) -> u32 {
        self.ids.get(symbol).copied().unwrap_or(UNK)
    }

    /// All symbols in the order of their ids.
    pub fn symbols(&self) -> &[String] {
        &self.symbols
    }
}

impl From<Vec<String>> for Vocabulary {
    fn from(symbols: Vec<String>) -> Self {
        let ids = symbols.iter().zip(0..).map(|(symbol, id)| (symbol.clone(), id)).collect();
        Self { symbols, ids }
    }
}

impl From<Vocabulary> for Vec<String> {
    fn from(vocabulary: Vocabulary) -> Self {
        vocabulary.symbols
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn falling_frequency_then_lexical() {
        let counts = [("b", 2), ("a", 2), ("c", 9)].map(|(s, n)| (s.to_owned(), n));
        let vocabulary = Vocabulary::from_counts(counts);
        assert_eq!(vocabulary.symbols(), ["<pad>", "<unk>", "<eos>", "c", "a", "b"]);
        assert_eq!((vocabulary.id("c"), vocabulary.id("?"), vocabulary.id("<eos>")), (3, UNK, EOS));
    }
}
