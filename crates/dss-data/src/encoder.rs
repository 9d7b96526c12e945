//! How a new file becomes model input; stored with the trained model.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::characters::TextEncoder;
use crate::files::FilesEncoder;
use crate::forecast::ForecastEncoder;
use crate::image::GreyEncoder;
use crate::listops::ListopsEncoder;
use crate::lm::LmEncoder;
use crate::mnist::ImagesEncoder;
use crate::pathfinder::PathfinderEncoder;
use crate::speech::SpeechEncoder;
use crate::table::{Header, Separator, Table, quoted};
use crate::{Error, Input, Result, io, retrieval, text};

/// Turns a user's file into named inputs, with the vocabulary and the scaling of the training.
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

impl Encoder {
    /// Positions per second, where time is what a sequence runs over.
    pub fn rate(&self) -> Option<f64> {
        match self {
            Self::Speech(encoder) => encoder.rate(),
            _ => None,
        }
    }

    /// Reads the sequences of one file, each with a name such as `file.csv:3`; pairs are two, one after the other.
    pub fn read(&self, path: &Path) -> Result<Vec<(String, Input)>> {
        let found = match self {
            Self::Listops(encoder) => encoder.read(path)?,
            Self::Images(encoder) => encoder.read(path)?,
            Self::Pathfinder(encoder) => encoder.read(path)?,
            Self::Grey(encoder) => encoder.read(path)?,
            Self::Speech(encoder) => encoder.read(path)?,
            Self::TokenRows { vocab, len } => token_rows(path, *vocab, *len)?,
            Self::ValueSteps { channels, len } => value_steps(path, *channels, *len)?,
            Self::Files(encoder) => encoder.read(path)?,
            Self::Text(encoder) => text::read(encoder, path)?,
            Self::TextPairs(encoder) => retrieval::read(encoder, path)?,
            Self::Lm(encoder) => encoder.read(path)?,
            Self::Forecast(encoder) => encoder.read(path)?,
        };
        if found.is_empty() {
            return Err(Error::content(path, "no sequences in this file"));
        }
        Ok(found)
    }
}

fn open(path: &Path) -> Result<Table> {
    Table::open(path, Separator::of(path), Header::Auto, &[])
}

fn token_rows(path: &Path, vocab: usize, len: usize) -> Result<Vec<(String, Input)>> {
    let mut found = Vec::new();
    open(path)?.for_each(|line, cells| {
        let cells: Vec<&str> = cells.iter().flat_map(str::split_whitespace).collect();
        if cells.len() > len {
            let what = format!("{} tokens, but the model takes {len}", cells.len());
            return Err(Error::line(path, line, what));
        }
        let token = |(column, &cell): (usize, &&str)| match cell.parse::<u32>() {
            Ok(id) if (id as usize) < vocab => Ok(id),
            _ => {
                let what = format!("expected a token id below {vocab}, found {}", quoted(cell));
                Err(Error::cell(path, line, column + 1, what))
            }
        };
        let tokens = cells.iter().enumerate().map(token).collect::<Result<_>>()?;
        found.push((format!("{}:{line}", io::file_name(path)), Input::Tokens(tokens)));
        Ok(())
    })?;
    Ok(found)
}

fn value_steps(path: &Path, channels: usize, len: usize) -> Result<Vec<(String, Input)>> {
    let table = open(path)?;
    let mut values = Vec::new();
    table.for_each(|line, cells| {
        let cells: Vec<&str> = cells.iter().flat_map(str::split_whitespace).collect();
        if cells.len() != channels {
            let what = format!("expected {channels} numbers per step, found {}", cells.len());
            return Err(Error::line(path, line, what));
        }
        if values.len() >= len * channels {
            return Err(Error::line(path, line, format!("more steps than the model's {len}")));
        }
        for (column, cell) in cells.iter().enumerate() {
            values.push(table.number(line, column, cell)?);
        }
        Ok(())
    })?;
    Ok(vec![(io::file_name(path), Input::Values(values))])
}
