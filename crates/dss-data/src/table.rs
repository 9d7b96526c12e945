//! Tables in files: looked at first, then read row by row.

use std::path::{Path, PathBuf};

use dss_format::encoder::{Column, is_header, is_number};
use dss_format::feed;
use serde::{Deserialize, Serialize};

use crate::delimited::{Row, RowReader, Separator};
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

/// A table whose first rows have been looked at.
pub(crate) struct Table {
    pub path: PathBuf,
    separator: Option<Separator>,
    pub header: Option<Vec<String>>,
    /// The first data rows with their line numbers.
    pub head: Vec<(u64, Vec<String>)>,
}

const HEAD: usize = 100;

impl Table {
    /// Opens a table; without a separator the first line tells. `names` are column names that, when the first row has
    /// one of them, make it a header.
    pub(crate) fn open(
        path: &Path,
        separator: Option<Separator>,
        header: Header,
        names: &[&str],
    ) -> Result<Self> {
        let mut table = Self { path: path.to_owned(), separator, header: None, head: Vec::new() };
        let mut head = Vec::new();
        table.read(&mut |line, cells| {
            head.push((line, cells.iter().map(|cell| cell.to_string()).collect()));
            Ok(head.len() <= HEAD)
        })?;
        table.head = head;
        if table.head.is_empty() {
            return Err(Error::content(path, "the table is empty"));
        }
        if header == Header::Yes || header == Header::Auto && table.looks_like_header(names) {
            table.take_header();
        }
        if table.head.is_empty() {
            return Err(Error::content(path, "the table has a header but no rows"));
        }
        Ok(table)
    }

    fn looks_like_header(&self, names: &[&str]) -> bool {
        let mut rows =
            self.head.iter().map(|(_, row)| row.iter().map(String::as_str).collect::<Vec<_>>());
        let first = rows.next().unwrap_or_default();
        let below: Vec<Vec<&str>> = rows.collect();
        let second = below.first().into_iter().flatten();
        let numbers = first.len() > 1 && first.iter().zip(second).any(|(_, cell)| is_number(cell));
        is_header(&first, &below, names, numbers)
    }

    /// The first row holds names.
    pub(crate) fn take_header(&mut self) {
        let (_, first) = self.head.remove(0);
        self.header = Some(first.iter().map(|name| name.trim().to_owned()).collect());
    }

    /// Columns: as many as the header or the widest of the first rows has.
    pub(crate) fn width(&self) -> usize {
        let rows = self.head.iter().map(|(_, row)| row.len()).max().unwrap_or(0);
        rows.max(self.header.as_ref().map_or(0, Vec::len))
    }

    /// Calls `each` with line number and cells of every data row; empty lines are skipped.
    pub(crate) fn for_each(&self, mut each: impl FnMut(u64, &[&str]) -> Result<()>) -> Result<()> {
        let mut header = self.header.is_some();
        self.read(&mut |line, cells| {
            if !std::mem::take(&mut header) {
                each(line, cells)?;
            }
            Ok(true)
        })
    }

    /// The number in a cell (column from 0), which must be finite.
    pub(crate) fn number(&self, line: u64, column: usize, cell: &str) -> Result<f32> {
        feed::number(cell).map_err(|what| Error::cell(&self.path, line, column + 1, what))
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

    /// Gives the rows to `each`, as long as that wants more.
    fn read(&self, each: &mut dyn FnMut(u64, &[&str]) -> Result<bool>) -> Result<()> {
        for_each_row(&self.path, self.separator, &mut |row| {
            let cells = row.text().ok_or_else(|| Error::not_utf8(&self.path, row.line))?;
            each(row.line, &cells)
        })
    }
}

/// Gives the rows of a file to `each`, as long as that wants more.
pub(crate) fn for_each_row(
    path: &Path,
    separator: Option<Separator>,
    each: &mut dyn FnMut(Row<'_>) -> Result<bool>,
) -> Result<()> {
    let mut file = io::open(path)?;
    let mut reader = RowReader::new(separator);
    loop {
        let bytes = file.fill_buf().map_err(Error::io("read", path))?;
        let (mut rest, count) = (bytes, bytes.len());
        if count == 0 {
            break;
        }
        loop {
            let line = reader.line();
            match reader.next(&mut rest).map_err(|what| Error::line(path, line, what))? {
                Some(row) if !each(row)? => return Ok(()),
                Some(_) => {}
                None => break,
            }
        }
        file.consume(count);
    }
    loop {
        let line = reader.line();
        match reader.finish().map_err(|what| Error::line(path, line, what))? {
            Some(row) if each(row)? => {}
            _ => return Ok(()),
        }
    }
}
