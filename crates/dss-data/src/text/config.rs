//! The settings of the task `text`.

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

use crate::characters::{Level, check_len};
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct TextConfig {
    /// aclImdb_v1.tar.gz, its folder aclImdb, or a folder with imdb_train.tsv and imdb_test.tsv or with train and test
    /// as .tsv or .csv (label, text); empty = the data folder or its subfolders imdb, text, aclImdb.
    pub dir: String,
    /// Sequence length L of the model, including `<eos>`; longer reviews are cut.
    pub len: usize,
    /// What one token is: characters or bytes.
    pub level: Level,
    /// Characters that occur less often in the training set become `<unk>`.
    pub min_count: u64,
    /// Reviews that select the best checkpoint: held-out (of the training set) or test (as the authors did).
    pub validation: Validation,
    /// Training reviews; 0 = all that are not held out.
    pub train: usize,
    /// Training reviews held out for validation; unused with validation = test.
    pub val: usize,
    /// Test reviews; 0 = all.
    pub test: usize,
    /// Random seed of the choice of reviews.
    pub split_seed: u64,
    /// Skip faulty reviews and report how many, instead of stopping at the first.
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
