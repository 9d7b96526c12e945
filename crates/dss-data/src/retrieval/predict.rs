//! New pairs: the last two columns of a table, or texts taken in pairs.

use std::path::Path;

use crate::characters::{Ids, TextEncoder, encode, rows};
use crate::encoder::SequencePlace;
use crate::{Error, Input, Result, io, text};

/// Columns of the training data: label, two ids, two texts.
const MOST: usize = 5;

/// Reads the texts of a file, the partners of a pair one after the other. Each row of a table is a pair: its last two
/// columns. Other files are read as the task `text` does.
pub(crate) fn read(encoder: &TextEncoder, path: &Path) -> Result<Vec<(SequencePlace, Input)>> {
    if !matches!(io::extension(path).as_str(), "tsv" | "tab" | "csv") {
        return text::read(encoder, path);
    }
    let ids = Ids::new(encoder);
    let mut found = Vec::new();
    rows::for_each_row(path, MOST + 1, &mut |line, cells| {
        if !(2..=MOST).contains(&cells.len()) {
            let what = "expected two texts, alone or after label, id and id";
            return Err(Error::line(path, line, what));
        }
        for (column, cell) in cells.iter().enumerate().skip(cells.len() - 2) {
            let fault = |what: &str| Error::cell(path, line, column + 1, what);
            let input = encode(encoder, &ids, cell).map_err(fault)?;
            found.push((SequencePlace::Cell(line, column + 1), input));
        }
        Ok(())
    })?;
    Ok(found)
}
