//! From text or numbers to model input, in training and in prediction alike.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::record::{Content, Layout};
use super::{TokenChoice, arrays, folders, tables};
use crate::npy::read_npy;
use crate::table::{Column, Header, Separator, Table};
use crate::vocabulary::{EOS, SPECIALS};
use crate::{Error, Input, InputKind, Result, Vocabulary, io};

/// How sequences of the task `files` become input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FilesEncoder {
    /// What a sequence holds.
    pub form: Form,
    /// The columns that were used, when the data were tables.
    pub columns: Vec<Column>,
    /// Length L of the model.
    pub len: usize,
    /// Whether longer sequences are cut (`max_length` was given) or refused.
    pub cut: bool,
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

impl Scaling {
    /// Statistics of sequences `[len, channels]`.
    pub(super) fn of<'a>(
        sequences: impl Iterator<Item = &'a [f32]> + Clone,
        channels: usize,
    ) -> Self {
        let mut count = 0.0;
        let mut mean = vec![0.0; channels];
        let mut square = vec![0.0; channels];
        for step in sequences.clone().flat_map(|sequence| sequence.chunks(channels)) {
            count += 1.0;
            mean.iter_mut().zip(step).for_each(|(m, &x)| *m += f64::from(x));
        }
        mean.iter_mut().for_each(|m| *m /= count);
        for step in sequences.flat_map(|sequence| sequence.chunks(channels)) {
            let parts = square.iter_mut().zip(step).zip(&mean);
            parts.for_each(|((s, &x), m)| *s += (f64::from(x) - m).powi(2));
        }
        let sd = |s: f64| if s > 0.0 { (s / count).sqrt() as f32 } else { 1.0 };
        Self {
            mean: mean.into_iter().map(|m| m as f32).collect(),
            sd: square.into_iter().map(sd).collect(),
        }
    }
}

/// The vocabulary of the first `most` characters of each training text.
pub(super) fn characters<'a>(texts: impl Iterator<Item = &'a str>, most: usize) -> Vocabulary {
    let mut counts: BTreeMap<char, u64> = BTreeMap::new();
    texts.flat_map(|text| text.chars().take(most)).for_each(|c| *counts.entry(c).or_default() += 1);
    Vocabulary::from_counts(counts.into_iter().map(|(c, count)| (c.to_string(), count)))
}

/// Positions that a sequence takes.
pub(super) fn positions(content: &Content, tokens: TokenChoice, channels: usize) -> usize {
    match content {
        Content::Text(text) if tokens == TokenChoice::Characters => text.chars().count() + 1,
        Content::Text(text) => text.len() + 1,
        Content::Numbers(numbers) => numbers.len() / channels,
    }
}

impl FilesEncoder {
    /// What the model reads.
    pub fn input_kind(&self) -> InputKind {
        match &self.form {
            Form::Numbers { channels, .. } => InputKind::Values { channels: *channels },
            _ => InputKind::Tokens { vocab: self.vocabulary().map_or(0, |symbols| symbols.len()) },
        }
    }

    /// The symbol of every token id; `None` for numbers.
    pub fn vocabulary(&self) -> Option<Vec<String>> {
        match &self.form {
            Form::Characters(vocabulary) => Some(vocabulary.symbols().to_vec()),
            Form::Bytes => {
                let bytes = (0..=255u8).map(|b| format!("0x{b:02x}"));
                Some(SPECIALS.iter().map(|s| s.to_string()).chain(bytes).collect())
            }
            Form::Numbers { .. } => None,
        }
    }

    /// Encodes one sequence; `Err` says why it does not fit.
    pub(super) fn encode(&self, content: &Content) -> std::result::Result<Input, String> {
        match (&self.form, content) {
            (Form::Characters(vocabulary), Content::Text(text)) => {
                let mut buffer = [0; 4];
                self.tokens(text.chars().map(|c| vocabulary.id(c.encode_utf8(&mut buffer))))
            }
            (Form::Bytes, Content::Text(text)) => {
                self.tokens(text.bytes().map(|b| u32::from(b) + SPECIALS.len() as u32))
            }
            (Form::Numbers { channels, scaling, .. }, Content::Numbers(numbers)) => {
                self.check(numbers.len() / channels)?;
                let mut values: Vec<f32> =
                    numbers.iter().copied().take(self.len * channels).collect();
                if let Some(Scaling { mean, sd }) = scaling {
                    for step in values.chunks_mut(*channels) {
                        let scaled = step.iter_mut().zip(mean.iter().zip(sd));
                        scaled.for_each(|(x, (mean, sd))| *x = (*x - mean) / sd);
                    }
                }
                Ok(Input::Values(values))
            }
            (Form::Numbers { .. }, Content::Text(_)) => Err("expected numbers, found text".into()),
            (_, Content::Numbers(_)) => Err("expected text, found numbers".into()),
        }
    }

    fn tokens(&self, ids: impl Iterator<Item = u32>) -> std::result::Result<Input, String> {
        let mut ids: Vec<u32> = ids.collect();
        self.check(ids.len() + 1)?;
        ids.truncate(self.len - 1);
        ids.push(EOS);
        Ok(Input::Tokens(ids))
    }

    fn check(&self, positions: usize) -> std::result::Result<(), String> {
        if self.cut || positions <= self.len {
            return Ok(());
        }
        Err(format!(
            "the sequence takes {positions} positions, but the model was trained with at most {}; shorten it, or train \
             with task.max_length set",
            self.len
        ))
    }

    /// Reads a text, a table or an array without labels.
    pub(crate) fn read(&self, path: &Path) -> Result<Vec<(String, Input)>> {
        let file = io::file_name(path);
        let contents: Vec<(String, Content)> = match (&self.form, io::extension(path).as_str()) {
            (Form::Numbers { channels, stacked, rows, .. }, "npy") => {
                let npy = read_npy(path)?;
                let many = match npy.shape.len() {
                    1 => false,
                    2 => *rows || (*stacked && *channels == 1),
                    _ => true,
                };
                let (found, sequences) = arrays::sequences(path, npy, many)?;
                if found != *channels {
                    let what = format!("has {found} channels, but the model takes {channels}");
                    return Err(Error::content(path, what));
                }
                let name = |i| if many { format!("{file}[{i}]") } else { file.clone() };
                let named = sequences.into_iter().enumerate();
                named.map(|(i, numbers)| (name(i), Content::Numbers(numbers))).collect()
            }
            (Form::Numbers { channels, rows, stacked, .. }, _) => {
                let table = self.table(path)?;
                let by_row = *rows || (*stacked && *channels == 1);
                let places = self.places(&table, (!by_row).then_some(*channels))?;
                if by_row {
                    let mut found = Vec::new();
                    table.for_each(|line, cells| {
                        let numbers = tables::row_numbers(&table, line, cells, &places)?;
                        found.push((format!("{file}:{line}"), Content::Numbers(numbers)));
                        Ok(())
                    })?;
                    found
                } else {
                    vec![(file, Content::Numbers(tables::steps(&table, &places)?))]
                }
            }
            (_, "csv" | "tsv" | "tab") => {
                let table = self.table(path)?;
                let places = self.places(&table, Some(1))?;
                let mut found = Vec::new();
                table.for_each(|line, cells| {
                    let text = tables::row_text(&table, line, cells, places[0])?;
                    found.push((format!("{file}:{line}"), Content::Text(text)));
                    Ok(())
                })?;
                found
            }
            _ => vec![(file, Content::Text(folders::document(path)?))],
        };
        let encode = |(name, content): (String, Content)| {
            let input = self.encode(&content).map_err(|what| {
                let place = format!(" ({name})");
                Error::Content { path: path.to_owned(), place, what }
            })?;
            Ok((name, input))
        };
        contents.into_iter().map(encode).collect()
    }

    fn table(&self, path: &Path) -> Result<Table> {
        let names: Vec<&str> = self.columns.iter().filter_map(|c| c.name.as_deref()).collect();
        Table::open(path, Separator::of(path), Header::Auto, &names)
    }

    /// Where the columns of the training stand in this table: by name, or all of a table that has just them, or by
    /// place. `exactly` is the number of columns needed; `None` = any number.
    fn places(&self, table: &Table, exactly: Option<usize>) -> Result<Vec<usize>> {
        let by_name = self.columns.iter().map(|c| table.named(c.name.as_deref()?));
        if let Some(places) = by_name.collect::<Option<Vec<_>>>()
            && !places.is_empty()
        {
            return Ok(places);
        }
        let width = table.width();
        if exactly.map_or(self.columns.is_empty() || width <= self.columns.len(), |n| n == width) {
            return Ok((0..width).collect());
        }
        // A table of nothing but the label and the columns has one more than they; a wider one is something else.
        let last = self.columns.iter().map(|c| c.index).max();
        let whole = exactly.is_none() && last.is_some_and(|last| last <= self.columns.len());
        let fits = |last: usize| last < width && !(whole && width > self.columns.len() + 1);
        if last.is_some_and(fits) {
            return Ok(self.columns.iter().map(|c| c.index).collect());
        }
        let needed = exactly.unwrap_or(self.columns.len());
        let what = format!("the model reads {needed} columns; this table has {}", table.describe());
        Err(Error::content(&table.path, what))
    }
}

/// The columns of a layout.
pub(super) fn columns(layout: &Layout) -> Vec<Column> {
    match layout {
        Layout::Texts(column) => column.iter().cloned().collect(),
        Layout::Rows(columns) | Layout::Steps { columns, .. } => columns.clone(),
    }
}
