//! The settings of the task `retrieval`.

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::characters::{Level, check_len};

/// Settings of the task `retrieval`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct RetrievalConfig {
    /// Folder with new_aan_pairs.{train,eval,test}.tsv, or the stand-in imdb_pairs_{train,val,test}.tsv (each plain or
    /// .gz); empty = the data folder or its subfolders.
    pub dir: String,
    /// Reviews of the stand-in, as dir of the task text; empty = imdb beside the pairs.
    pub reviews: String,
    /// Sequence length L of the model, including `<eos>`; longer documents are cut.
    pub len: usize,
    /// What one token is: characters or bytes.
    pub level: Level,
    /// Characters that occur less often in the training pairs become `<unk>`.
    pub min_count: u64,
    /// Training pairs; 0 = all.
    pub train: usize,
    /// Validation pairs; 0 = all.
    pub val: usize,
    /// Test pairs; 0 = all.
    pub test: usize,
    /// Random seed of the choice of pairs where not all are used.
    pub split_seed: u64,
    /// Skip faulty pairs and report how many, instead of stopping at the first.
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

impl RetrievalConfig {
    pub(super) fn check(&self) -> Result<()> {
        check_len(self.len)
    }

    /// Which settings decide what is stored.
    pub(super) fn stored(&self) -> impl Serialize {
        (self.level, self.len, self.skip_bad)
    }
}
