//! How a user's own sequences become input.

use serde::{Deserialize, Serialize};

use super::{Alphabet, Column, Dialect, TableShape, Vocabulary};

/// How sequences of the task `files` become input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FilesEncoder {
    /// What a sequence holds.
    pub form: Form,
    /// The columns that were used, when the data were tables.
    pub columns: Vec<Column>,
    /// How tables are written.
    #[serde(default, skip_serializing_if = "Dialect::is_usual")]
    pub dialect: Dialect,
    /// Length L of the model.
    pub len: usize,
    /// Whether longer sequences are cut (`max_length` was given) or refused.
    pub cut: bool,
    /// The classes of the model, which stores them as its labels: see [`TableShape::classes`].
    #[serde(skip)]
    pub classes: Vec<String>,
}

/// What a sequence holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// Unicode characters; `<eos>` follows the text.
    Characters(Vocabulary),
    /// Bytes of UTF-8, each 3 above its value; `<eos>` follows the text.
    Bytes,
    /// Numbers.
    Numbers {
        /// Numbers per step.
        channels: usize,
        /// Taken off and divided by, per channel; `None` = numbers as they are.
        scaling: Option<Scaling>,
        /// Whether a row of a table is a sequence (else a step).
        rows: bool,
        /// Whether the arrays of the training data held many sequences each.
        stacked: bool,
    },
}

/// x' = (x - mean) / sd, by channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scaling {
    /// Mean of the training data.
    pub mean: Vec<f32>,
    /// Standard deviation of the training data; 1 where they are constant.
    pub sd: Vec<f32>,
}

impl FilesEncoder {
    /// The symbol of every token id; `None` for numbers.
    pub fn vocabulary(&self) -> Option<Vec<String>> {
        match &self.form {
            Form::Characters(vocabulary) => Some(vocabulary.symbols().to_vec()),
            Form::Bytes => Some(Alphabet::Bytes.symbols()),
            Form::Numbers { .. } => None,
        }
    }

    /// Which cells of a table hold the numbers; `None` for text.
    pub fn shape(&self) -> Option<TableShape> {
        match self.form {
            Form::Numbers { channels, rows, stacked, .. } => Some(TableShape {
                channels,
                by_row: rows || (stacked && channels == 1),
                columns: self.columns.clone(),
                dialect: self.dialect,
                classes: self.classes.clone(),
            }),
            _ => None,
        }
    }
}
