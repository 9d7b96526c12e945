//! The settings of the task `files`.

use serde::{Deserialize, Serialize};

use crate::config::KeyDoc;
use crate::table::Header;

/// Kind of file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// By extension and by what is in the folder.
    #[default]
    Auto,
    /// Tables separated by commas.
    Csv,
    /// Tables separated by tabs.
    Tsv,
    /// NumPy arrays.
    Npy,
    /// One subfolder of `.txt` files per class.
    TextFolder,
}

impl Format {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::Npy => "npy",
            Self::TextFolder => "text-folder",
        }
    }
}

/// What a sequence is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InputChoice {
    /// Numbers if all cells are numbers, else text.
    #[default]
    Auto,
    /// Numbers.
    Numbers,
    /// Text.
    Text,
}

/// What one token of a text is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TokenChoice {
    /// A Unicode character.
    #[default]
    Characters,
    /// A byte of UTF-8.
    Bytes,
}

/// What is done to numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Nothing.
    #[default]
    None,
    /// Mean 0 and standard deviation 1 on the training split, by channel.
    Standardise,
}

/// What a label is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TargetChoice {
    /// The name of a class.
    #[default]
    Class,
    /// A number to predict.
    Value,
}

/// Settings of the task `files`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FilesConfig {
    /// The table or folder.
    pub path: String,
    /// Kind of file.
    pub format: Format,
    /// What a sequence is made of.
    pub input: InputChoice,
    /// Column of the label.
    pub label: String,
    /// Column of the text.
    pub text: String,
    /// Columns of numbers.
    pub columns: String,
    /// Whether tables start with names.
    pub header: Header,
    /// Share of the validation split.
    pub val_fraction: f64,
    /// Share of the test split.
    pub test_fraction: f64,
    /// Seed of the split.
    pub split_seed: u64,
    /// Longest sequence.
    pub max_length: usize,
    /// What one token of a text is.
    pub tokens: TokenChoice,
    /// What is done to numbers.
    pub scale: Scale,
    /// What a label is.
    pub target: TargetChoice,
}

impl Default for FilesConfig {
    fn default() -> Self {
        Self {
            path: String::new(),
            format: Format::Auto,
            input: InputChoice::Auto,
            label: String::new(),
            text: String::new(),
            columns: String::new(),
            header: Header::Auto,
            val_fraction: 0.1,
            test_fraction: 0.1,
            split_seed: 42,
            max_length: 0,
            tokens: TokenChoice::Characters,
            scale: Scale::None,
            target: TargetChoice::Class,
        }
    }
}

/// Every key with its description.
pub(super) const KEYS: &[KeyDoc] = &[
    ("path", "a .csv or .tsv table, or a folder (x.npy and y.npy, or one subfolder per class)"),
    ("format", "auto | csv | tsv | npy | text-folder"),
    ("input", "auto | numbers | text: what a sequence is made of"),
    (
        "label",
        "label column: name, or number from 1; empty = label, class, target, y, or the first",
    ),
    ("text", "text column: name, or number from 1; empty = the only other one, or by its name"),
    ("columns", "columns to read, such as \"a,b\" or \"2-101\"; empty = all but the label"),
    ("header", "auto | yes | no: whether tables start with a row of names"),
    ("val_fraction", "share of the sequences for validation, unless the data have a val part"),
    ("test_fraction", "share of the sequences for testing, unless the data have a test part"),
    ("split_seed", "seed of the split"),
    ("max_length", "longer sequences are cut to this many positions; 0 = the longest one's"),
    ("tokens", "characters | bytes: what one token of a text is"),
    ("scale", "none | standardise: make mean 0 and deviation 1, by channel, as measured on train"),
    ("target", "class | value: whether labels are names of classes or numbers to predict"),
];
