//! The settings of the task `files`.

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

use crate::delimited::Separator;
use crate::table::{Decimal, Header};

/// Kind of file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Recognised by extension and by the contents of the folder.
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

/// What separates the cells of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Delimiter {
    /// Recognised from the first line.
    #[default]
    #[serde(alias = "")]
    Auto,
    /// Commas.
    #[serde(alias = ",")]
    Comma,
    /// Semicolons.
    #[serde(alias = ";")]
    Semicolon,
    /// Tabs.
    #[serde(alias = "\t", alias = "\\t")]
    Tab,
    /// Any number of spaces.
    #[serde(alias = " ")]
    Space,
}

impl Delimiter {
    /// The character; `None` = recognised from the first line.
    pub(super) fn character(self) -> Option<char> {
        match self {
            Self::Auto => None,
            Self::Comma => Some(','),
            Self::Semicolon => Some(';'),
            Self::Tab => Some('\t'),
            Self::Space => Some(' '),
        }
    }

    pub(super) fn separator(self) -> Option<Separator> {
        self.character().and_then(Separator::written)
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

/// Scaling of numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Numbers are standardised.
    #[default]
    Auto,
    /// Numbers stay as they are.
    None,
    /// Mean 0 and standard deviation 1 on the training split, by channel.
    #[serde(alias = "standardize")]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct FilesConfig {
    /// A .csv or .tsv table, or a folder (x.npy and y.npy, or one subfolder per class).
    pub path: String,
    /// Kind of file: auto, csv, tsv, npy or text-folder.
    pub format: Format,
    /// What separates the cells of a table: auto, comma, semicolon, tab or space.
    pub delimiter: Delimiter,
    /// How the decimals of numbers are written in a table: auto, point or comma.
    pub decimal: Decimal,
    /// What a sequence is made of: auto, numbers or text.
    pub input: InputChoice,
    /// Label column: its name, or its number counted from 1; empty = label, class, target, y, or the first column.
    pub label: String,
    /// Text column: its name, or its number counted from 1; empty = the only other column, or found by its name.
    pub text: String,
    /// Columns to read, such as "a,b" or "2-101"; empty = all but the label.
    pub columns: String,
    /// Whether tables start with a row of names: auto, yes or no.
    pub header: Header,
    /// Share of the sequences for validation, unless the data have a validation part; 0 = 20 % if there are fewer than
    /// 1,000 sequences, else 10 %.
    pub val_fraction: f64,
    /// Share of the sequences for testing, unless the data have a test part; 0 = as for validation.
    pub test_fraction: f64,
    /// Random seed of the split.
    pub split_seed: u64,
    /// Longer sequences are cut to this many positions; 0 = the length of the longest one.
    pub max_length: usize,
    /// What one token of a text is: characters or bytes.
    pub tokens: TokenChoice,
    /// Scaling of numbers: auto or standardise (mean 0, deviation 1 per channel, measured on the training set), or none.
    pub scale: Scale,
    /// What a label is: class (the name of a class) or value (a number to predict).
    pub target: TargetChoice,
}

impl Default for FilesConfig {
    fn default() -> Self {
        Self {
            path: String::new(),
            format: Format::Auto,
            delimiter: Delimiter::Auto,
            decimal: Decimal::Auto,
            input: InputChoice::Auto,
            label: String::new(),
            text: String::new(),
            columns: String::new(),
            header: Header::Auto,
            val_fraction: 0.0,
            test_fraction: 0.0,
            split_seed: 42,
            max_length: 0,
            tokens: TokenChoice::Characters,
            scale: Scale::Auto,
            target: TargetChoice::Class,
        }
    }
}
