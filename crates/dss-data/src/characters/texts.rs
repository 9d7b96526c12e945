//! Texts in a store, as UTF-8 (or bytes), cut to the length of the model.
//!
//! Ids are looked up when a text is asked for: one pass over the data writes the texts and counts the vocabulary, no
//! text stays in memory, and a store takes a byte per ASCII character whatever the size of the vocabulary.
//!
//! A store has the texts, then what a task adds (see [`TextWriter::extra`]), then the SHA-256 of every whole text, all
//! in one entry: splits are made by whole texts, so that they do not depend on the length of the model.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::counter::{Counter, vocabulary};
use super::{Alphabet, Ids, Level, TextEncoder};
use crate::store::{Store, Writer, cache_dir};
use crate::{Error, Input, Note, Result};

/// SHA-256 of a whole text.
pub(crate) type TextDigest = [u8; 32];
const DIGEST: usize = size_of::<TextDigest>();

/// Facts about all texts, stored with them.
#[derive(Serialize, Deserialize)]
struct TextFacts {
    /// How often each character occurs in the training texts.
    counts: Vec<(char, u64)>,
    note: Option<Note>,
}

/// Writes texts into a store.
pub(crate) struct TextWriter<'w> {
    writer: &'w mut Writer,
    level: Level,
    most: usize,
    counter: Counter,
    digests: Vec<u8>,
}

impl<'w> TextWriter<'w> {
    /// `len` is the length L of the model.
    pub(crate) fn new(writer: &'w mut Writer, level: Level, len: usize) -> Self {
        let (counter, digests) = (Counter::default(), Vec::new());
        Self { writer, level, most: len.saturating_sub(1), counter, digests }
    }

    /// The part of a text that the model reads; `Err` says why it cannot be read.
    pub(crate) fn cut<'t>(&self, text: &'t [u8]) -> std::result::Result<&'t [u8], &'static str> {
        self.level.cut(text, self.most)
    }

    /// Counts the characters of a cut text for the vocabulary, `times` times.
    pub(crate) fn count(&mut self, cut: &[u8], times: u64) {
        if self.level == Level::Characters {
            self.counter.add(cut, times);
        }
    }

    /// Stores a cut text; its number is how many were written before it.
    pub(crate) fn push(&mut self, label: u32, cut: &[u8], digest: &TextDigest) -> Result<()> {
        self.digests.extend_from_slice(digest);
        self.writer.push(label, cut)
    }

    /// Stores something else, after the last text.
    pub(crate) fn extra(&mut self, bytes: &[u8]) -> Result<()> {
        self.writer.push(0, bytes)
    }

    pub(crate) fn finish(self, note: Option<Note>) -> Result<()> {
        self.writer.info(&TextFacts { counts: self.counter.counts(), note });
        self.writer.push(0, &self.digests)
    }
}

/// SHA-256 of a whole text.
pub(crate) fn digest(text: &[u8]) -> TextDigest {
    Sha256::digest(text).into()
}

/// The texts of a store as tokens.
pub(crate) struct Texts {
    store: Arc<Store>,
    ids: Ids,
    encoder: TextEncoder,
    note: Option<Note>,
    count: usize,
    digests: Vec<u8>,
}

impl Texts {
    /// Texts that a [`TextWriter`] wrote with these settings.
    pub(crate) fn open(
        store: Arc<Store>,
        level: Level,
        len: usize,
        min_count: u64,
    ) -> Result<Self> {
        let TextFacts { counts, note } = store.info()?;
        let alphabet = match level {
            Level::Characters => Alphabet::Characters(vocabulary(counts, min_count)),
            Level::Bytes => Alphabet::Bytes,
        };
        let encoder = TextEncoder { alphabet, len };
        let others = store.len().checked_sub(1).ok_or_else(damaged)?;
        let digests = store.bytes(others)?;
        let count = digests.len() / DIGEST;
        match count <= others {
            true => Ok(Self { ids: Ids::new(&encoder), store, encoder, note, count, digests }),
            false => Err(damaged()),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn encoder(&self) -> &TextEncoder {
        &self.encoder
    }

    /// A note about skipped files.
    pub(crate) fn note(&self) -> Option<&Note> {
        self.note.as_ref()
    }

    pub(crate) fn label(&self, i: usize) -> u32 {
        self.store.label(i)
    }

    /// SHA-256 of the whole text `i`.
    pub(crate) fn digest(&self, i: usize) -> &[u8] {
        &self.digests[i * DIGEST..][..DIGEST]
    }

    pub(crate) fn tokens(&self, i: usize) -> Result<Input> {
        let tokens = self.ids.tokens(&self.store.bytes(i)?);
        tokens
            .filter(|t| matches!(t, Input::Tokens(ids) if ids.len() <= self.encoder.len))
            .ok_or_else(damaged)
    }

    /// The `i`-th entry written by [`TextWriter::extra`].
    pub(crate) fn extra(&self, i: usize) -> Result<Vec<u8>> {
        let at = self.count + i;
        if at + 1 < self.store.len() { self.store.bytes(at) } else { Err(damaged()) }
    }
}

/// The store is not what was written.
pub(crate) fn damaged() -> Error {
    Error::content(&cache_dir(), "a file of texts in this cache folder is damaged; delete it")
}
