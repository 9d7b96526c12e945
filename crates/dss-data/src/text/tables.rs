//! Reviews in tables, one per row.

use std::path::Path;

use super::reviews::{Review, Visit};
use crate::characters::rows;
use crate::task::Split;
use crate::{Error, Result};

/// Which column holds what (from 0).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TableForm {
    /// Number of columns; in a TSV file the last one takes the rest of the line.
    pub width: usize,
    pub label: usize,
    pub text: usize,
    /// Rating and index.
    pub numbers: Option<[usize; 2]>,
    pub header: bool,
}

/// Label, rating, index, title, text; no header.
pub(super) const NUMBERED: TableForm =
    TableForm { width: 5, label: 0, text: 4, numbers: Some([1, 2]), header: false };
/// Label, text; no header.
pub(super) const PLAIN: TableForm =
    TableForm { width: 2, label: 0, text: 1, numbers: None, header: false };

const LABEL_NAMES: [&str; 4] = ["label", "sentiment", "class", "target"];
const TEXT_NAMES: [&str; 4] = ["text", "review", "sentence", "document"];

/// The column with one of these names.
pub(super) fn named(header: &[Vec<u8>], names: &[&str]) -> Option<usize> {
    let is = |cell: &[u8], name: &str| cell.trim_ascii().eq_ignore_ascii_case(name.as_bytes());
    names.iter().find_map(|name| header.iter().position(|cell| is(cell, name)))
}

/// The column of the text, if this row is a header that names it.
pub(super) fn text_column(row: &[Vec<u8>]) -> Option<usize> {
    named(row, &TEXT_NAMES)
}

impl TableForm {
    /// By the names in the first row, or label and text.
    pub(super) fn detect(path: &Path) -> Result<Self> {
        let first = rows::first(path)?;
        Ok(match (named(&first, &LABEL_NAMES), text_column(&first)) {
            (Some(label), Some(text)) => {
                Self { width: first.len(), label, text, numbers: None, header: true }
            }
            _ => PLAIN,
        })
    }

    fn review<'a>(
        &self,
        split: Split,
        (path, line): (&'a Path, u64),
        cells: &[&'a [u8]],
    ) -> Result<Review<'a>> {
        if cells.len() != self.width {
            let what = format!("expected {} columns, found {}", self.width, cells.len());
            return Err(Error::line(path, line, what));
        }
        let fault = |column: usize, what: String| Error::cell(path, line, column + 1, what);
        let found = |column: usize| show(cells[column]);
        let class = class(cells[self.label]).ok_or_else(|| {
            let what = "expected a label 0 (or neg, negative) or 1 (or pos, positive), found";
            fault(self.label, format!("{what} {}", found(self.label)))
        })?;
        let mut index = None;
        if let Some([rating, number]) = self.numbers {
            let parse = |column: usize| {
                let cell = std::str::from_utf8(cells[column]).ok();
                let number: Option<u64> = cell.and_then(|cell| cell.trim().parse().ok());
                number.ok_or_else(|| {
                    fault(column, format!("expected a number, found {}", found(column)))
                })
            };
            let stars = u32::try_from(parse(rating)?).unwrap_or(u32::MAX);
            check_rating(class, stars).map_err(|what| fault(rating, what))?;
            index = Some(parse(number)?);
        }
        Ok(Review { split, class, index, text: cells[self.text], place: (path, Some(line)) })
    }
}

/// Visits every review of a table.
pub(super) fn for_each(
    path: &Path,
    split: Split,
    form: &TableForm,
    visit: &mut Visit<'_>,
) -> Result<()> {
    let mut header = form.header;
    rows::for_each_row(path, form.width, &mut |line, cells| {
        if std::mem::take(&mut header) {
            return Ok(());
        }
        visit(form.review(split, (path, line), cells))
    })
}

/// The class that a label names.
pub(super) fn class(label: &[u8]) -> Option<u32> {
    const NAMES: [(&str, u32); 6] =
        [("0", 0), ("1", 1), ("neg", 0), ("pos", 1), ("negative", 0), ("positive", 1)];
    let label = label.trim_ascii();
    let same = |name: &str| label.eq_ignore_ascii_case(name.as_bytes());
    NAMES.iter().find(|(name, _)| same(name)).map(|(_, class)| *class)
}

/// Negative reviews have 1 to 4 stars, positive ones 7 to 10.
pub(super) fn check_rating(class: u32, rating: u32) -> std::result::Result<(), String> {
    let (name, stars) = if class == 0 { ("negative", 1..=4) } else { ("positive", 7..=10) };
    if stars.contains(&rating) {
        return Ok(());
    }
    let (low, high) = (stars.start(), stars.end());
    Err(format!("the rating {rating} contradicts the label: {name} reviews have {low} to {high}"))
}

/// The start of a cell, for messages.
fn show(cell: &[u8]) -> String {
    const SHOWN: usize = 40;
    let start = String::from_utf8_lossy(&cell[..cell.len().min(SHOWN)]);
    format!("{start:?}{}", if cell.len() > SHOWN { "..." } else { "" })
}
