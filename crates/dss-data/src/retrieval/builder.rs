//! Documents and pairs on their way into a store: a document that occurs in many pairs is stored once.

use std::collections::HashMap;

use crate::characters::{TextDigest, TextWriter, Texts, damaged};
use crate::task::Split;
use crate::{Note, Result};

/// Two documents, by number, and their class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub class: u32,
    pub first: u32,
    pub second: u32,
}

const PAIR: usize = 12;

/// Collects documents and pairs.
pub(super) struct Builder<'w> {
    pub texts: TextWriter<'w>,
    numbers: HashMap<TextDigest, u32>,
    pairs: [Vec<u8>; 3],
}

impl<'w> Builder<'w> {
    pub(super) fn new(texts: TextWriter<'w>) -> Self {
        Self { texts, numbers: HashMap::new(), pairs: Default::default() }
    }

    /// The number of a document, which is stored when it is new.
    pub(super) fn document(&mut self, cut: &[u8], digest: TextDigest) -> Result<u32> {
        if let Some(&number) = self.numbers.get(&digest) {
            return Ok(number);
        }
        let number = self.numbers.len() as u32;
        self.texts.push(0, cut, &digest)?;
        self.numbers.insert(digest, number);
        Ok(number)
    }

    pub(super) fn pair(&mut self, split: Split, Pair { class, first, second }: Pair) {
        let bytes = [class, first, second].into_iter().flat_map(u32::to_le_bytes);
        self.pairs[split as usize].extend(bytes);
    }

    pub(super) fn finish(mut self, note: Option<Note>) -> Result<()> {
        for pairs in &self.pairs {
            self.texts.extra(pairs)?;
        }
        self.texts.finish(note)
    }
}

/// The pairs of a split as a [`Builder`] wrote them.
pub(super) fn pairs(texts: &Texts, split: Split) -> Result<Vec<Pair>> {
    let bytes = texts.extra(split as usize)?;
    let pair = |bytes: &[u8]| {
        let number = |i: usize| {
            bytes[4 * i..].first_chunk().map(|bytes| u32::from_le_bytes(*bytes)).ok_or_else(damaged)
        };
        let pair = Pair { class: number(0)?, first: number(1)?, second: number(2)? };
        let known = |document: u32| (document as usize) < texts.len();
        match pair.class < 2 && known(pair.first) && known(pair.second) {
            true => Ok(pair),
            false => Err(damaged()),
        }
    };
    bytes.chunks(PAIR).map(pair).collect()
}
