//! Images on their way from files into the store: their digests decide the splits.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::hash::hex;
use crate::store::{Writer, content_order};
use crate::{Note, Result};

/// Facts about images read from files, stored with them.
#[derive(Serialize, Deserialize)]
pub(super) struct PictureFacts {
    /// The images in the order of their content.
    pub(super) order: Vec<u32>,
    /// SHA-256, in hex, of all images and labels in that order.
    pub(super) content: String,
    /// Remarks for the user.
    pub(super) notes: Vec<Note>,
}

/// Writes images to the store and remembers what they were.
pub(super) struct ImageCollector<'a> {
    writer: &'a mut Writer,
    digests: Vec<[u8; 32]>,
    notes: Vec<Note>,
}

impl<'a> ImageCollector<'a> {
    pub(super) fn new(writer: &'a mut Writer) -> Self {
        Self { writer, digests: Vec::new(), notes: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.digests.len()
    }

    pub(super) fn push(&mut self, label: u32, levels: &[u8]) -> Result<()> {
        let digest = Sha256::new().chain_update(label.to_le_bytes()).chain_update(levels);
        self.digests.push(digest.finalize().into());
        self.writer.push(label, levels)
    }

    pub(super) fn note(&mut self, note: Note) {
        self.notes.push(note);
    }

    /// Orders the images by content and `split_seed`.
    pub(super) fn finish(self, split_seed: u64) {
        let digests: Vec<&[u8]> = self.digests.iter().map(|d| &d[..]).collect();
        let order = content_order(split_seed, &digests);
        let mut content = Sha256::new();
        order.iter().for_each(|&i| content.update(digests[i as usize]));
        let content = hex(&content.finalize());
        self.writer.info(&PictureFacts { order, content, notes: self.notes });
    }
}
