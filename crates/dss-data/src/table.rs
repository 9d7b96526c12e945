//! Tables in files: the first rows are examined, then the table is read row by row.

use std::path::{Path, PathBuf};

use dss_format::encoder::{Column, is_header, is_number};
use dss_format::feed;
use serde::{Deserialize, Serialize};

use crate::delimited::{Row, RowReader, Separator, is_decimal_comma};
use crate::{Error, Result, io, units};

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

/// How the decimals of numbers are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decimal {
    /// Decide by looking at the first rows.
    #[default]
    Auto,
    /// With a point.
    #[serde(alias = ".")]
    Point,
    /// With a comma.
    #[serde(alias = ",")]
    Comma,
}

/// Settings of a table, known before it is read.
#[derive(Clone, Copy, Default)]
pub(crate) struct TableOptions<'a> {
    /// The separator of cells; `None`: recognised from the file name or the first line.
    pub separator: Option<Separator>,
    pub decimal: Decimal,
    pub header: Header,
    /// Names of columns that make the first row a header when it has one of them.
    pub names: &'a [&'a str],
    /// Classes that a model knows: a row labelled with one of them is not a header.
    pub classes: &'a [String],
}

/// A table whose first rows have been examined.
pub(crate) struct Table {
    pub path: PathBuf,
    pub separator: Separator,
    pub decimal_comma: bool,
    pub header: Option<Vec<String>>,
    /// The first data rows with their line numbers.
    pub head: Vec<(u64, Vec<String>)>,
    /// Cells of the widest row examined so far.
    widest: usize,
}

const HEAD: usize = 100;

impl Table {
    pub(crate) fn open(path: &Path, options: TableOptions<'_>) -> Result<Self> {
        if path.exists() && !path.is_file() {
            let what = "not a regular file, and a table is read more than once: write it to a file first (`dss predict` \
                        takes it from standard input as -)";
            return Err(Error::content(path, what));
        }
        let given = options.separator.or_else(|| Separator::of_name(path));
        let (mut head, mut separator) = (Vec::new(), given.unwrap_or(Separator::Comma));
        let reader = RowReader::new(given).with_decimal_comma(options.decimal == Decimal::Comma);
        for_each_row(path, reader, &mut |row| {
            separator = row.separator;
            let cells = row.text().ok_or_else(|| Error::not_utf8(path, row.line))?;
            head.push((row.line, cells.iter().map(|cell| cell.to_string()).collect::<Vec<_>>()));
            Ok(head.len() <= HEAD)
        })?;
        if head.is_empty() {
            return Err(Error::content(path, "the table is empty"));
        }
        let decimal_comma = match options.decimal {
            Decimal::Auto => separator != Separator::Comma && has_decimal_commas(&head),
            decimal => decimal == Decimal::Comma,
        };
        if decimal_comma && options.decimal == Decimal::Auto {
            return Self::open(path, TableOptions { decimal: Decimal::Comma, ..options });
        }
        let widest = head.iter().map(|(_, row)| row.len()).max().unwrap_or(0);
        let mut table =
            Self { path: path.to_owned(), separator, decimal_comma, header: None, head, widest };
        let header = match options.header {
            Header::Auto => table.looks_like_header(options.names, options.classes),
            header => header == Header::Yes,
        };
        if header {
            table.take_header();
        }
        if table.head.is_empty() {
            return Err(Error::content(path, "the table has a header but no rows"));
        }
        Ok(table)
    }

    fn looks_like_header(&self, names: &[&str], classes: &[String]) -> bool {
        let mut rows =
            self.head.iter().map(|(_, row)| row.iter().map(String::as_str).collect::<Vec<_>>());
        let first = rows.next().unwrap_or_default();
        let has = |known: &dyn Fn(&str) -> bool| first.iter().any(|cell| known(cell.trim()));
        if has(&|cell| classes.iter().any(|class| class == cell))
            && !has(&|cell| names.contains(&cell))
        {
            return false;
        }
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

    /// Columns: as many as the header or the widest row has, of all rows after [`Self::measure`], else of the first ones.
    pub(crate) fn width(&self) -> usize {
        self.widest.max(self.header.as_ref().map_or(0, Vec::len))
    }

    /// Looks at all rows for the widest one, if there is no header to say how many columns there are.
    pub(crate) fn measure(&mut self) -> Result<()> {
        let mut widest = self.widest;
        if self.header.is_none() {
            self.for_each(|_, cells| {
                widest = widest.max(cells.len());
                Ok(())
            })?;
        }
        self.widest = widest;
        Ok(())
    }

    /// Calls `each` with line number and cells of every data row; empty lines are skipped. A row with more cells than
    /// the header has names is an error: which of them belongs to which name?
    pub(crate) fn for_each(&self, mut each: impl FnMut(u64, &[&str]) -> Result<()>) -> Result<()> {
        let mut header = self.header.is_some();
        let most = self.header.as_ref().map_or(usize::MAX, Vec::len);
        self.read(&mut |line, cells| {
            if std::mem::take(&mut header) {
                return Ok(true);
            }
            let filled = cells.iter().rposition(|cell| !cell.trim().is_empty());
            if let Some(filled) = filled.map(|i| i + 1).filter(|filled| *filled > most) {
                let (cells, separators) = (units::plural(most as u64, "cell"), self.separator.plural());
                let what = format!(
                    "expected at most {cells}, as many as the header has, found {filled}; a cell with {separators} in \
                     it has to be quoted"
                );
                return Err(Error::line(&self.path, line, what));
            }
            each(line, cells)?;
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

    /// The column of this name, ignoring case if there is no exact match.
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

    /// How the table is written, for a note: ` separated by tabs, decimal comma, no header`.
    pub(crate) fn writing(&self) -> String {
        let separator = match self.separator {
            Separator::Comma => String::new(),
            other => format!(" separated by {}", other.plural()),
        };
        let decimal = if self.decimal_comma { ", decimal comma" } else { "" };
        let header = if self.header.is_some() { "a header" } else { "no header" };
        format!("{separator}{decimal}, {header}")
    }

    /// The number of a column from 1, and its name, for messages.
    pub(crate) fn column_name(&self, place: usize) -> String {
        match &self.header {
            Some(names) => {
                format!("{} ({:?})", place + 1, names.get(place).map_or("", String::as_str))
            }
            None => (place + 1).to_string(),
        }
    }

    /// The columns of the table, for messages.
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
        let reader = RowReader::new(Some(self.separator)).with_decimal_comma(self.decimal_comma);
        for_each_row(&self.path, reader, &mut |row| {
            let cells = row.text().ok_or_else(|| Error::not_utf8(&self.path, row.line))?;
            each(row.line, &cells)
        })
    }
}

/// Whether numbers are written with a decimal comma: some are, none has a point, and not all could be groups of
/// thousands (`1,234`).
fn has_decimal_commas(head: &[(u64, Vec<String>)]) -> bool {
    let cells = || head.iter().flat_map(|(_, row)| row).map(|cell| cell.trim());
    let commas = || cells().filter(|cell| is_decimal_comma(cell.as_bytes()));
    let thousands = |cell: &str| {
        let (whole, rest) = cell.split_once(',').unwrap_or_default();
        let digits = whole.trim_start_matches(['+', '-']);
        rest.len() == 3 && digits.len() <= 3 && !digits.starts_with('0')
    };
    commas().any(|cell| !thousands(cell)) && !cells().any(|c| c.contains('.') && is_number(c))
}

/// Gives the rows of a file to `each`, as long as that wants more.
pub(crate) fn for_each_row(
    path: &Path,
    mut reader: RowReader,
    each: &mut dyn FnMut(Row<'_>) -> Result<bool>,
) -> Result<()> {
    let mut file = io::open(path)?;
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
