//! Input as it arrives: what an [`Encoder`] makes of a whole file, made from bytes, rows or samples as they come.

mod numbers;
mod sound;
mod tokens;

use std::fmt;

use crate::encoder::{Alphabet, CharacterIds, EOS, Encoder, Form, TableShape, Unit};
use tokens::{Ids, document, document_bytes};

pub use numbers::{NumberFeed, number};
pub use sound::SoundFeed;
pub use tokens::TokenFeed;

/// What an encoder reads position by position.
#[derive(Clone, Debug)]
pub enum Feed {
    /// Sound of one channel: x' = (x - mean) / divisor, x from -1 to 1.
    Sound(SoundFeed),
    /// Numbers, in the rows of a table.
    Numbers(NumberFeed),
    /// Characters, bytes or words.
    Tokens(TokenFeed),
}

/// Where input cannot be read, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Line, from 1.
    pub line: u64,
    /// Column, from 1, in a table.
    pub column: Option<usize>,
    /// The fault.
    pub what: String,
}

impl Fault {
    fn line(line: u64, what: impl Into<String>) -> Self {
        Self { line, column: None, what: what.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, what } = self;
        match column {
            Some(column) => write!(f, "line {line}, column {column}: {what}"),
            None => write!(f, "line {line}: {what}"),
        }
    }
}

impl std::error::Error for Fault {}

impl Encoder {
    /// How to read input as it arrives; `Err` says why it has to be there as a whole.
    pub fn feed(&self) -> Result<Feed, String> {
        Ok(match self {
            Self::Speech(encoder) => Feed::Sound(SoundFeed::new(encoder)?),
            Self::ValueSteps { channels, .. } => {
                Feed::Numbers(NumberFeed::new(TableShape::steps(*channels), None)?)
            }
            Self::TokenRows { vocab, .. } => {
                Feed::Tokens(TokenFeed::new(Ids::Number(*vocab), None))
            }
            Self::Listops(encoder) => {
                let symbols = encoder.vocabulary.symbols().iter().cloned().zip(0..).collect();
                Feed::Tokens(TokenFeed::new(Ids::Word(symbols), Some(EOS)))
            }
            Self::Files(encoder) => match (&encoder.form, encoder.shape()) {
                (Form::Numbers { scaling, .. }, Some(shape)) => {
                    Feed::Numbers(NumberFeed::new(shape, scaling.clone())?)
                }
                (Form::Characters(vocabulary), _) => Feed::Tokens(document(vocabulary)),
                _ => Feed::Tokens(document_bytes()),
            },
            Self::Text(encoder) => Feed::Tokens(match &encoder.alphabet {
                Alphabet::Characters(vocabulary) => document(vocabulary),
                Alphabet::Bytes => document_bytes(),
            }),
            Self::Lm(encoder) => Feed::Tokens(match encoder.unit {
                Unit::Byte => TokenFeed::new(Ids::Byte(0), None),
                Unit::Char => {
                    let ids = CharacterIds::of_characters(&encoder.symbols);
                    TokenFeed::new(Ids::Character { ids, unknown: None }, None)
                }
            }),
            Self::TextPairs(_) => return Err("this model compares two texts".into()),
            Self::Forecast(_) => {
                return Err("this model reads the last rows of a table, relative to its end".into());
            }
            Self::Images(_) | Self::Pathfinder(_) | Self::Grey(_) => {
                return Err("this model reads pictures, which have no order in time".into());
            }
        })
    }
}
