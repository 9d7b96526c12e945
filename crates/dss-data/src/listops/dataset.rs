//! Expressions as tokens: the vocabulary, and the encoder of new expressions.

use std::path::Path;

use dss_format::encoder::{EOS, ListopsEncoder, Vocabulary};

use super::expressions::Expressions;
use super::{symbols, tsv};
use crate::encoder::{ReadFile, SequencePlace};
use crate::{Error, Input, Result};

/// `<pad> <unk> <eos>`, then the 15 symbols by falling frequency in the training part (FIRST and LAST only if present).
pub(super) fn vocabulary(rows: &Expressions, train: usize) -> Vocabulary {
    let mut counts = [0u64; symbols::SYMBOLS.len()];
    (0..train).flat_map(|i| rows.codes(i)).for_each(|&code| counts[code as usize] += 1);
    let counted = symbols::SYMBOLS.iter().zip(counts).enumerate();
    let used = counted.filter(|(code, (_, count))| *code < symbols::GENERATED || *count > 0);
    Vocabulary::from_counts(used.map(|(_, (symbol, count))| (symbol.to_string(), count)))
}

/// The token id of every code.
pub(super) type Ids = [u32; symbols::SYMBOLS.len()];

/// An expression as tokens.
pub(super) fn encode(ids: &Ids, codes: &[u8]) -> Input {
    let symbols = codes.iter().map(|&code| ids[code as usize]);
    Input::Tokens(symbols.chain([EOS]).collect())
}

/// The id of every code.
pub(super) fn ids(encoder: &ListopsEncoder) -> Ids {
    symbols::SYMBOLS.map(|symbol| encoder.vocabulary.id(symbol))
}

impl ReadFile for ListopsEncoder {
    /// One expression per line, in the token or the tree form.
    fn read(&self, path: &Path) -> Result<Vec<(SequencePlace, Input)>> {
        let ids = ids(self);
        let one = |(line, codes): (u64, Vec<u8>)| {
            if codes.len() >= self.len {
                let what =
                    format!("{} symbols and <eos>, but the model takes {}", codes.len(), self.len);
                return Err(Error::line(path, line, what));
            }
            Ok((SequencePlace::Line(line), encode(&ids, &codes)))
        };
        tsv::read_unlabelled(path)?.into_iter().map(one).collect()
    }
}
