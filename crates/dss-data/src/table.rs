//! Tables: CSV and TSV files, looked at first, then read row by row.

use std::path::{Path, PathBuf};

use csv::StringRecord;
use serde::{Deserialize, Serialize};

use crate::{Error, Result, io};

/// Whether the first row of a table holds names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Header {
    /// Decide by looking at the first two rows.
    #[default]
    Auto,
    /// It does.
    Yes,
    /// It does not.
    No,
}

/// How columns are separated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Separator {
    /// By commas; cells may be quoted.
    Comma,
    /// By tabs; quotation marks are ordinary characters.
    Tab,
}

impl Separator {
    /// By the extension: tabs for `.tsv` and `.tab`, else commas.
    pub(crate) fn of(path: &Path) -> Self {
        if matches!(io::extension(path).as_str(), "tsv" | "tab") { Self::Tab } else { Self::Comma }
    }
}

/// A column of a table: its name, if there is a header, and its place (from 0).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Name in the header.
    pub name: Option<String>,
    /// Place, from 0.
    pub index: usize,
}

/// A table whose first rows have been looked at.
pub(crate) struct Table {
    pub path: PathBuf,
    separator: Separator,
    pub header: Option<Vec<String>>,
    /// The first data rows with their line numbers.
    pub head: Vec<(u64, StringRecord)>,
}

const HEAD: usize = 100;
/// Names by which a header is known even when no cell below is a number.
const USUAL_NAMES: [&str; 9] =
    ["label", "class", "target", "y", "text", "sentence", "review", "document", "sequence"];

impl Table {
    /// Opens a table. `names` are column names that, when the first row has one of them, make it a header.
    pub(crate) fn open(
        path: &Path,
        separator: Separator,
        header: Header,
        names: &[&str],
    ) -> Result<Self> {
        let mut table = Self { path: path.to_owned(), separator, header: None, head: Vec::new() };
        let mut rows = table.reader()?;
        let mut record = StringRecord::new();
        while table.head.len() <= HEAD && table.next(&mut rows, &mut record)? {
            table.head.push((line(&record), record.clone()));
        }
        let Some((_, first)) = table.head.first() else {
            return Err(Error::content(path, "the table is empty"));
        };
        let has_header = match header {
            Header::Yes => true,
            Header::No => false,
            Header::Auto => is_header(first, table.head.get(1).map(|(_, row)| row), names),
        };
        if has_header {
            let (_, first) = table.head.remove(0);
            table.header = Some(first.iter().map(|name| name.trim().to_owned()).collect());
        }
        if table.head.is_empty() {
            return Err(Error::content(path, "the table has a header but no rows"));
        }
        Ok(table)
    }

    /// Columns: as many as the header or the widest of the first rows has.
    pub(crate) fn width(&self) -> usize {
        let rows = self.head.iter().map(|(_, row)| row.len()).max().unwrap_or(0);
        rows.max(self.header.as_ref().map_or(0, Vec::len))
    }

    /// Calls `each` with line number and cells of every data row; empty lines are skipped.
    pub(crate) fn for_each(
        &self,
        mut each: impl FnMut(u64, &StringRecord) -> Result<()>,
    ) -> Result<()> {
        let mut rows = self.reader()?;
        let mut record = StringRecord::new();
        if self.header.is_some() {
            self.next(&mut rows, &mut record)?;
        }
        while self.next(&mut rows, &mut record)? {
            each(line(&record), &record)?;
        }
        Ok(())
    }

    /// The number in a cell (column from 0), which must be finite.
    pub(crate) fn number(&self, line: u64, column: usize, cell: &str) -> Result<f32> {
        let fault = |what: String| Error::cell(&self.path, line, column + 1, what);
        match cell.trim().parse::<f32>() {
            Ok(number) if number.is_finite() => Ok(number),
            Ok(number) => Err(fault(format!("is {number}; every number must be finite in f32"))),
            Err(_) => Err(fault(format!("expected a number, found {}", quoted(cell)))),
        }
    }

    /// A column given by its name or by its number from 1.
    pub(crate) fn column(&self, key: &'static str, wanted: &str) -> Result<usize> {
        let wanted = wanted.trim();
        if let Some(i) = self.named(wanted) {
            return Ok(i);
        }
        match wanted.parse::<usize>() {
            Ok(number) if (1..=self.width()).contains(&number) => Ok(number - 1),
            _ => {
                let file = self.path.display();
                let mut what = format!("no such column in {file}; it has {}", self.describe());
                if self.header.is_none() && self.width() > 1 {
                    what += &format!("; choose one by its number, 1 to {}", self.width());
                }
                Err(Error::setting(key, wanted, what))
            }
        }
    }

    /// The column of this name, upper and lower case alike when nothing fits exactly.
    pub(crate) fn named(&self, name: &str) -> Option<usize> {
        let header = self.header.as_ref()?;
        let exact = header.iter().position(|h| h == name);
        exact.or_else(|| header.iter().position(|h| h.eq_ignore_ascii_case(name)))
    }

    /// The columns of these places, with their names.
    pub(crate) fn columns(&self, places: &[usize]) -> Vec<Column> {
        let name = |i: usize| self.header.as_ref().and_then(|h| h.get(i).cloned());
        places.iter().map(|&index| Column { name: name(index), index }).collect()
    }

    /// What columns there are, for messages.
    pub(crate) fn describe(&self) -> String {
        const SHOWN: usize = 12;
        let width = self.width();
        match &self.header {
            None if width == 1 => "1 column without a name".to_owned(),
            None => format!("{width} columns without names"),
            Some(names) if names.len() <= SHOWN => format!("the columns {}", names.join(", ")),
            Some(names) => format!("{width} columns: {}, ...", names[..SHOWN].join(", ")),
        }
    }

    fn reader(&self) -> Result<csv::Reader<Box<dyn std::io::BufRead>>> {
        let (delimiter, quoting) = match self.separator {
            Separator::Comma => (b',', true),
            Separator::Tab => (b'\t', false),
        };
        Ok(csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .quoting(quoting)
            .has_headers(false)
            .flexible(true)
            .from_reader(io::open(&self.path)?))
    }

    fn next<R: std::io::Read>(
        &self,
        rows: &mut csv::Reader<R>,
        record: &mut StringRecord,
    ) -> Result<bool> {
        let line = rows.position().line();
        rows.read_record(record).map_err(|error| match error.into_kind() {
            csv::ErrorKind::Io(source) => Error::io("read", &self.path)(source),
            csv::ErrorKind::Utf8 { .. } => {
                Error::line(&self.path, line, "not UTF-8 text; convert the file to UTF-8")
            }
            other => Error::line(&self.path, line, format!("{other:?}")),
        })
    }
}

fn line(record: &StringRecord) -> u64 {
    record.position().map_or(0, csv::Position::line)
}

pub(crate) fn is_number(cell: &str) -> bool {
    cell.trim().parse::<f32>().is_ok()
}

/// A header has no numbers, and either a name that is looked for or usual, or a number below it.
fn is_header(first: &StringRecord, second: Option<&StringRecord>, names: &[&str]) -> bool {
    let known = |cell: &str| {
        let cell = cell.trim();
        let usual = USUAL_NAMES.iter().any(|name| name.eq_ignore_ascii_case(cell));
        usual || (!is_number(cell) && names.contains(&cell))
    };
    let numbers_below = || {
        let below = second.into_iter().flat_map(|row| first.iter().zip(row));
        below.filter(|(_, cell)| is_number(cell)).count() > 0
    };
    let no_numbers = !first.iter().any(is_number);
    first.iter().any(|cell| !is_number(cell) && names.contains(&cell.trim()))
        || (no_numbers && (first.iter().any(known) || numbers_below() && first.len() > 1))
}

/// What was found, for a message: its beginning, if it is long.
pub(crate) fn quoted(found: &str) -> String {
    const MOST: usize = 40;
    match found.char_indices().nth(MOST) {
        Some((end, _)) => format!("{:?}...", &found[..end]),
        None => format!("{found:?}"),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn messages_quote_little() {
        assert_eq!(super::quoted("a\tb"), r#""a\tb""#);
        assert_eq!(super::quoted(&"é".repeat(1000)), format!("{:?}...", "é".repeat(40)));
    }
}
