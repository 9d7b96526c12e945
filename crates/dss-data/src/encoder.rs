//! Reading new files as model input, in the way that the training stored.

use std::fmt;
use std::path::Path;

use dss_format::encoder::{Encoder, TableShape, quoted};
use dss_format::feed::{Fault, NumberFeed};

use crate::delimited::RowReader;
use crate::table::{Header, Table, TableOptions, for_each_row};
use crate::{Error, Input, Result, io, retrieval, text, units};

/// Where a sequence is in its file; displayed it follows the name of the file, as in `file.csv:3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequencePlace {
    /// It is the whole file.
    File,
    /// A line, from 1.
    Line(u64),
    /// A cell of a table, line and column from 1.
    Cell(u64, usize),
    /// An item of an array, from 0.
    Item(usize),
}

impl fmt::Display for SequencePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File => Ok(()),
            Self::Line(line) => write!(f, ":{line}"),
            Self::Cell(line, column) => write!(f, ":{line}:{column}"),
            Self::Item(i) => write!(f, "[{i}]"),
        }
    }
}

/// Reads files for an encoder.
pub trait ReadFile {
    /// The sequences of one file with their places; pairs are two, one after the other.
    fn read(&self, path: &Path) -> Result<Vec<(SequencePlace, Input)>>;

    /// As [`Self::read`]; `note` receives a sentence on how a table was read.
    fn read_noted(
        &self,
        path: &Path,
        _note: &mut dyn FnMut(String),
    ) -> Result<Vec<(SequencePlace, Input)>> {
        self.read(path)
    }
}

impl ReadFile for Encoder {
    fn read(&self, path: &Path) -> Result<Vec<(SequencePlace, Input)>> {
        self.read_noted(path, &mut |_| {})
    }

    fn read_noted(
        &self,
        path: &Path,
        note: &mut dyn FnMut(String),
    ) -> Result<Vec<(SequencePlace, Input)>> {
        let found = match self {
            Self::Listops(encoder) => encoder.read(path)?,
            Self::Images(encoder) => encoder.read(path)?,
            Self::Pathfinder(encoder) => encoder.read(path)?,
            Self::Grey(encoder) => encoder.read(path)?,
            Self::Speech(encoder) => encoder.read(path)?,
            Self::TokenRows { vocab, len } => token_rows(path, *vocab, *len)?,
            Self::ValueSteps { channels, len } => value_steps(path, *channels, *len, note)?,
            Self::Files(encoder) => encoder.read_noted(path, note)?,
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

fn token_rows(path: &Path, vocab: usize, len: usize) -> Result<Vec<(SequencePlace, Input)>> {
    let mut found = Vec::new();
    // As in a stream, every row holds tokens.
    let options = TableOptions { header: Header::No, ..Default::default() };
    Table::open(path, options)?.for_each(|line, cells| {
        let cells: Vec<&str> = cells.iter().flat_map(|cell| cell.split_whitespace()).collect();
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
        found.push((SequencePlace::Line(line), Input::Tokens(tokens)));
        Ok(())
    })?;
    Ok(found)
}

fn value_steps(
    path: &Path,
    channels: usize,
    len: usize,
    note: &mut dyn FnMut(String),
) -> Result<Vec<(SequencePlace, Input)>> {
    let feed = NumberFeed::new(TableShape::steps(channels), None)
        .map_err(|what| Error::content(path, what))?;
    let found = numbers(path, feed, note)?;
    let longest = found.iter().map(|(_, values)| values.len() / channels).max().unwrap_or(0);
    if longest > len {
        let what = format!("{longest} steps, but the model takes {len}");
        return Err(Error::content(path, what));
    }
    Ok(found.into_iter().map(|(place, values)| (place, Input::Values(values))).collect())
}

/// The numbers of a table, as a stream would read them: a sequence per row, or one of all rows.
pub(crate) fn numbers(
    path: &Path,
    mut feed: NumberFeed,
    note: &mut dyn FnMut(String),
) -> Result<Vec<(SequencePlace, Vec<f32>)>> {
    let by_row = feed.shape().by_row;
    let (mut found, mut values, mut rows) = (Vec::new(), Vec::new(), 0);
    let reader = RowReader::for_dialect(feed.shape().dialect, path);
    for_each_row(path, reader, &mut |row| {
        let cells = row.text().ok_or_else(|| Error::not_utf8(path, row.line))?;
        feed.row(row.line, &cells, &mut values).map_err(|fault| fault_in(path, fault))?;
        rows += u64::from(!values.is_empty());
        if by_row && !values.is_empty() {
            found.push((SequencePlace::Line(row.line), std::mem::take(&mut values)));
        }
        Ok(true)
    })?;
    if let Some(columns) = feed.description() {
        let sequence = if by_row { "each a sequence" } else { "the steps of one sequence" };
        let (file, rows) = (io::file_name(path), units::plural(rows, "row"));
        note(format!("{file}: {rows}, {sequence}, {columns}"));
    }
    if !values.is_empty() {
        found.push((SequencePlace::File, values));
    }
    Ok(found)
}

/// The error of a fault in a file.
pub(crate) fn fault_in(path: &Path, fault: Fault) -> Error {
    match fault.column {
        Some(column) => Error::cell(path, fault.line, column, fault.what),
        None => Error::line(path, fault.line, fault.what),
    }
}
