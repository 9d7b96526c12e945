//! The settings of the task `retrieval`.

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::characters::{Level, check_len};
use crate::config::KeyDoc;

/// Settings of the task `retrieval`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetrievalConfig {
    /// Folder with the pairs; empty = look in the data folder.
    pub dir: String,
    /// Folder or archive with the reviews that pairs of reviews name; empty = look beside the pairs.
    pub reviews: String,
    /// Length L of the model, `<eos>` included; longer documents are cut.
    pub len: usize,
    /// What one token is.
    pub level: Level,
    /// Characters that occur less often in the training pairs are `<unk>`.
    pub min_count: u64,
    /// Training pairs; 0 = all.
    pub train: usize,
    /// Validation pairs; 0 = all.
    pub val: usize,
    /// Test pairs; 0 = all.
    pub test: usize,
    /// Seed of the choice of pairs.
    pub split_seed: u64,
    /// Whether faulty pairs are left out.
    pub skip_bad: bool,
}

impl Default for RetrievalConfig {
    fn default() -> Self {
        Self {
            dir: String::new(),
            reviews: String::new(),
            len: 4000,
            level: Level::Characters,
            min_count: 1,
            train: 0,
            val: 0,
            test: 0,
            split_seed: 42,
            skip_bad: false,
        }
    }
}

/// Every key with its description.
pub(super) const KEYS: &[KeyDoc] = &[
    (
        "dir",
        "folder with new_aan_pairs.{train,eval,test}.tsv, or the stand-in imdb_pairs_{train,val,test}.tsv (each plain \
         or .gz); empty = the data folder or its subfolders",
    ),
    (
        "reviews",
        "where the stand-in's reviews are (as task text, dir); empty = imdb beside the pairs",
    ),
    ("len", "length L of the model, <eos> included; longer documents are cut"),
    ("level", "characters | bytes: what one token is"),
    ("min_count", "characters that occur less often in the training pairs are <unk>"),
    ("train", "training pairs; 0 = all"),
    ("val", "validation pairs; 0 = all"),
    ("test", "test pairs; 0 = all"),
    ("split_seed", "seed of the choice of pairs, where not all are used"),
    ("skip_bad", "leave faulty pairs out and count them, instead of stopping at the first"),
];

impl RetrievalConfig {
    pub(super) fn check(&self) -> Result<()> {
        check_len(self.len)
    }

    /// Which settings decide what is stored.
    pub(super) fn stored(&self) -> impl Serialize {
        (self.level, self.len, self.skip_bad)
    }
}
