//! New reviews: a text file is one, a table or a `.lines` file has one per row.

use std::io::Read;
use std::path::Path;

use super::official::trim;
use super::tables::{self, NUMBERED, PLAIN, TableForm, class};
use crate::characters::{Ids, TextEncoder, encode, rows};
use crate::encoder::SequencePlace;
use crate::{Error, Input, Result, io};

/// The largest text file.
const FILE_LIMIT: u64 = 64 << 20;

/// Reads the texts of a file; labels beside them are ignored.
pub(crate) fn read(encoder: &TextEncoder, path: &Path) -> Result<Vec<(SequencePlace, Input)>> {
    let ids = Ids::new(encoder);
    let mut found = Vec::new();
    let mut add = |line: u64, text: &[u8]| {
        let input = encode(encoder, &ids, text).map_err(|what| Error::line(path, line, what))?;
        found.push((SequencePlace::Line(line), input));
        Ok(())
    };
    match io::extension(path).as_str() {
        "lines" => rows::for_each_line(path, &mut add)?,
        "tsv" | "tab" | "csv" => for_each_text(path, &mut add)?,
        _ => {
            let text = whole(path)?;
            if trim(&text).is_empty() {
                return Err(Error::content(path, "the text is empty"));
            }
            let input = encode(encoder, &ids, trim(&text));
            return Ok(vec![(
                SequencePlace::File,
                input.map_err(|what| Error::content(path, what))?,
            )]);
        }
    }
    Ok(found)
}

fn whole(path: &Path) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    let read = io::open(path)?.take(FILE_LIMIT + 1).read_to_end(&mut text);
    match read.map_err(Error::io("read", path))? as u64 <= FILE_LIMIT {
        true => {
            if text.starts_with(io::BYTE_ORDER_MARK) {
                text.drain(..io::BYTE_ORDER_MARK.len());
            }
            Ok(text)
        }
        false => Err(Error::content(path, format!("longer than {} MiB", FILE_LIMIT >> 20))),
    }
}

/// The text of every row.
fn for_each_text(path: &Path, add: &mut rows::Visit<'_>) -> Result<()> {
    let form = form(&rows::first(path)?);
    let mut header = form.header;
    rows::for_each_row(path, form.width, &mut |line, cells| {
        if std::mem::take(&mut header) {
            return Ok(());
        }
        if cells.len() != form.width {
            let what = format!(
                "expected {} columns, found {}; a row is a text, or label and text, or has a header with the name text",
                form.width,
                cells.len()
            );
            return Err(Error::line(path, line, what));
        }
        add(line, cells[form.text])
    })
}

/// By the first row: a header that names the text; or the columns of the training data; or nothing but the text.
fn form(first: &[Vec<u8>]) -> TableForm {
    let number = |cell: &[u8]| !cell.is_empty() && cell.iter().all(u8::is_ascii_digit);
    let labelled = first.first().is_some_and(|label| class(label).is_some());
    match (tables::text_column(first), first) {
        (Some(text), _) => TableForm { width: first.len(), text, header: true, ..PLAIN },
        (_, [_, rating, index, _, ..]) if labelled && number(rating) && number(index) => NUMBERED,
        (_, [_, _, ..]) if labelled => PLAIN,
        _ => TableForm { width: 1, text: 0, ..PLAIN },
    }
}
