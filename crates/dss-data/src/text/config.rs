//! The settings of the task `text`.

use serde::{Deserialize, Serialize};

use crate::characters::{Level, check_len};
use crate::config::KeyDoc;
use crate::{Error, Result};

/// Which reviews the checkpoint is chosen by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Validation {
    /// Reviews held out of the training set.
    #[default]
    HeldOut,
    /// The test set, as in the authors' code and the Long Range Arena.
    Test,
}

/// Settings of the task `text`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TextConfig {
    /// Folder or archive with the reviews; empty = look in the data folder.
    pub dir: String,
    /// Length L of the model, `<eos>` included; longer reviews are cut.
    pub len: usize,
    /// What one token is.
    pub level: Level,
    /// Characters that occur less often in the training set are `<unk>`.
    pub min_count: u64,
    /// Which reviews the checkpoint is chosen by.
    pub validation: Validation,
    /// Training reviews; 0 = all that are not held out.
    pub train: usize,
    /// Reviews held out of the training set.
    pub val: usize,
    /// Test reviews; 0 = all.
    pub test: usize,
    /// Seed of the split.
    pub split_seed: u64,
    /// Whether faulty reviews are left out.
    pub skip_bad: bool,
}

impl Default for TextConfig {
    fn default() -> Self {
        Self {
            dir: String::new(),
            len: 2048,
            level: Level::Characters,
            min_count: 15,
            validation: Validation::HeldOut,
            train: 0,
            val: 2_500,
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
        "aclImdb_v1.tar.gz, its folder aclImdb, or a folder with imdb_train.tsv and imdb_test.tsv or with train and \
         test as .tsv or .csv (label, text); empty = the data folder or its subfolders imdb, text, aclImdb",
    ),
    ("len", "length L of the model, <eos> included; longer reviews are cut"),
    ("level", "characters | bytes: what one token is"),
    ("min_count", "characters that occur less often in the training set are <unk>"),
    (
        "validation",
        "held-out | test: choose the checkpoint by reviews held out of training, or by the test set",
    ),
    ("train", "training reviews; 0 = all that are not held out"),
    ("val", "training reviews held out for validation (not used with validation = test)"),
    ("test", "test reviews; 0 = all"),
    ("split_seed", "seed of the choice of reviews"),
    ("skip_bad", "leave faulty reviews out and count them, instead of stopping at the first"),
];

impl TextConfig {
    pub(super) fn check(&self) -> Result<()> {
        check_len(self.len)?;
        if self.validation == Validation::HeldOut && self.val == 0 {
            let what = "at least one review is needed; to validate on the test set use task.validation = test";
            return Err(Error::setting("val", self.val, what));
        }
        Ok(())
    }

    /// Which settings decide what is stored.
    pub(super) fn stored(&self) -> impl Serialize {
        (self.level, self.len, self.skip_bad)
    }
}
