//! How a file or a stream becomes model input: what a training found out (vocabulary, scaling, columns) and stored with
//! the model. Reading of whole files is up to `dss-data`; [`Encoder::feed`] reads input as it arrives.

mod characters;
mod columns;
mod files;
mod forecast;
mod images;
pub mod listops;
mod lm;
pub mod speech;
mod vocabulary;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use self::characters::{Alphabet, CharacterIds, TextEncoder};
pub use self::columns::{
    Column, Dialect, LABEL_NAMES, ReadCells, TEXT_NAMES, TableShape, find_names, is_header,
    is_number, listed, quoted,
};
pub use self::files::{FilesEncoder, Form, Scaling};
pub use self::forecast::ForecastEncoder;
pub use self::images::{GreyEncoder, ImagesEncoder, PathfinderEncoder};
pub use self::listops::ListopsEncoder;
pub use self::lm::{LmEncoder, Unit};
pub use self::speech::{SoundForm, SpeechEncoder};
pub use self::vocabulary::{EOS, PAD, SPECIALS, UNK, Vocabulary};

/// Key of a checkpoint's `extra` metadata that holds the [`Encoder`] of its task, as JSON.
pub const ENCODER: &str = "encoder";

/// Turns a user's input into what the model reads, with the vocabulary and the scaling of the training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Encoder {
    /// ListOps expressions, one per line.
    Listops(ListopsEncoder),
    /// An idx file of images.
    Images(ImagesEncoder),
    /// A PNG picture of paths, or an idx file of them.
    Pathfinder(PathfinderEncoder),
    /// Grey images of 32 × 32: idx files, or CIFAR-10's binary files.
    Grey(GreyEncoder),
    /// A sound file of a spoken word.
    Speech(SpeechEncoder),
    /// A table of token ids, one sequence per row.
    TokenRows {
        /// Number of ids.
        vocab: usize,
        /// Length L of the model.
        len: usize,
    },
    /// A table of numbers, one step per row; the whole file is one sequence.
    ValueSteps {
        /// Numbers per step.
        channels: usize,
        /// Length L of the model.
        len: usize,
    },
    /// Text, tables or arrays, as in the user's own training data.
    Files(FilesEncoder),
    /// Texts, one per file, line or row.
    Text(TextEncoder),
    /// Pairs of texts, one pair per row, or two files.
    TextPairs(TextEncoder),
    /// Text for a language model; a file is one sequence.
    Lm(LmEncoder),
    /// The last rows of a table.
    Forecast(ForecastEncoder),
}

/// Why a model file does not say how its input is made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncoderError {
    /// It was written by a program that does not know.
    #[error("the model file does not say how files become its input")]
    Missing,
    /// Its description cannot be understood.
    #[error("the model file's description of its input is damaged: {0}")]
    Damaged(String),
}

impl Encoder {
    /// The encoder in a checkpoint's `extra` metadata.
    pub fn from_extra(extra: &BTreeMap<String, String>) -> Result<Self, EncoderError> {
        let text = extra.get(ENCODER).ok_or(EncoderError::Missing)?;
        serde_json::from_str(text).map_err(|error| EncoderError::Damaged(error.to_string()))
    }

    /// The symbol of every token id, for models of tokens that have names.
    pub fn vocabulary(&self) -> Option<Vec<String>> {
        match self {
            Self::Listops(encoder) => Some(encoder.vocabulary.symbols().to_vec()),
            Self::Text(encoder) | Self::TextPairs(encoder) => Some(encoder.alphabet.symbols()),
            Self::Lm(encoder) => Some(encoder.labels()),
            Self::Files(encoder) => encoder.vocabulary(),
            _ => None,
        }
    }

    /// Positions per second, where time is what a sequence runs over.
    pub fn rate(&self) -> Option<f64> {
        match self {
            Self::Speech(encoder) => encoder.sample_rate(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_encoders_load() {
        let stored = [
            r#"{"kind":"speech","form":"wave","rate":16000,"mean":[0.1],"divisor":[0.5]}"#,
            r#"{"kind":"lm","unit":"char","symbols":["a","b"],"len":8}"#,
            r#"{"kind":"listops","vocabulary":["<pad>","<unk>","<eos>","1"],"len":9}"#,
            r#"{"kind":"token-rows","vocab":10,"len":5}"#,
            r#"{"kind":"files","form":{"numbers":{"channels":1,"scaling":null,"rows":true,"stacked":false}},"columns":[{"name":"a","index":1}],"len":3,"cut":false}"#,
            r#"{"kind":"text","alphabet":"bytes","len":7}"#,
            r#"{"kind":"forecast","column":{"name":"OT","index":7},"input":384,"horizon":96,"mean":1.5,"deviation":2.0,"relative":false}"#,
            r#"{"kind":"grey","mean":122.6,"sd":61.0}"#,
        ];
        for text in stored {
            let extra = BTreeMap::from([(ENCODER.to_owned(), text.to_owned())]);
            let encoder = Encoder::from_extra(&extra).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(serde_json::to_string(&encoder).unwrap(), text);
        }
    }

    #[test]
    fn a_file_without_or_with_a_damaged_encoder() {
        assert_eq!(Encoder::from_extra(&BTreeMap::new()), Err(EncoderError::Missing));
        let extra = BTreeMap::from([(ENCODER.to_owned(), "{}".to_owned())]);
        assert!(matches!(Encoder::from_extra(&extra), Err(EncoderError::Damaged(_))));
    }
}
