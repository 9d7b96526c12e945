//! New pairs: the last two columns of a table.

use std::path::Path;

use crate::characters::{TextEncoder, rows};
use crate::{Error, Input, Result, io};

/// Columns of the training data: label, two ids, two texts.
const MOST: usize = 5;

/// Reads the pairs of a table: the last two columns are the texts, what stands before is not looked at.
pub(crate) fn read_pairs(encoder: &TextEncoder, path: &Path) -> Result<Vec<(String, [Input; 2])>> {
    if !matches!(io::extension(path).as_str(), "tsv" | "tab" | "csv") {
        let what = "the model compares two texts; give a .tsv or .csv table whose last two columns are the texts";
        return Err(Error::content(path, what));
    }
    let ids = encoder.ids();
    let file = io::file_name(path);
    let mut found = Vec::new();
    rows::for_each_row(path, MOST + 1, &mut |line, cells| {
        let [.., first, second] = cells else {
            return Err(Error::line(path, line, "expected two texts, found one column"));
        };
        if cells.len() > MOST {
            let what = format!("more than the {MOST} columns label, id, id, text, text");
            return Err(Error::line(path, line, what));
        }
        let encode =
            |text: &[u8]| encoder.encode(&ids, text).map_err(|what| Error::line(path, line, what));
        found.push((format!("{file}:{line}"), [encode(first)?, encode(second)?]));
        Ok(())
    })?;
    if found.is_empty() {
        return Err(Error::content(path, "no pairs in this file"));
    }
    Ok(found)
}
