//! A column of a table, from its first row to its last.

use std::path::{Path, PathBuf};

use dss_format::encoder::Column;

use crate::catalogue::entry;
use crate::table::{Table, TableOptions};
use crate::{Error, Result, io, units};

/// The columns and the rows of ETTh1 and ETTh2.
const ETT_COLUMNS: [&str; 8] = ["date", "HUFL", "HULL", "MUFL", "MULL", "LUFL", "LULL", "OT"];
const ETT_HOURS: usize = 17_420;

/// The table: named by `path`, or by the data folder, which may be the file itself.
pub(super) fn find(path: &str, data_dir: Option<&Path>) -> Result<PathBuf> {
    let given = match path.is_empty() {
        true => data_dir.map(Path::to_owned),
        false => Some(io::resolve(path, data_dir)),
    };
    if let Some(file) = given.as_ref().filter(|path| path.exists() && !path.is_dir()) {
        return Ok(file.clone());
    }
    let presence =
        given.as_ref().map(|top| entry("forecast").expect("a task with data").find_in(top));
    let presence = presence.unwrap_or_default();
    let file = presence.found.and_then(|found| found.files.into_iter().next());
    file.ok_or_else(|| Error::Missing {
        what: "a table to forecast".into(),
        looked: if given.as_ref().is_some_and(|top| top.is_dir()) { presence.looked } else { given.into_iter().collect() },
        hint: "Give any CSV file with --data FILE (or --set task.path=FILE) and, unless it is the last one, its \
               column with --set task.column=NAME; ETTh1, 2.6 MB, comes with `dss data get forecast --data DIR`."
            .into(),
    })
}

/// The values of a column.
pub(super) struct Series {
    pub(super) column: Column,
    pub(super) values: Vec<f32>,
    /// A short description of how it was read.
    pub(super) description: String,
    header: Option<Vec<String>>,
}

impl Series {
    /// Reads the column with this name or number; the last one if it is empty.
    pub(super) fn read(path: &Path, column: &str) -> Result<Self> {
        let table = Table::open(path, TableOptions { names: &[column], ..Default::default() })?;
        let place = match column.trim().is_empty() {
            true => table.width().saturating_sub(1),
            false => table.column("column", column)?,
        };
        Self::from_table(&table, table.columns(&[place]).remove(0))
    }

    /// Reads the column of the same name, or at the same place in a table without names.
    pub(super) fn read_again(path: &Path, column: &Column) -> Result<Self> {
        let known: Vec<&str> = column.name.iter().map(String::as_str).collect();
        let table = Table::open(path, TableOptions { names: &known, ..Default::default() })?;
        let place = match &column.name {
            Some(name) if table.header.is_some() => table.named(name).ok_or_else(|| {
                let what = format!("no column {name:?}; it has {}", table.describe());
                Error::content(path, what)
            })?,
            _ => column.index,
        };
        Self::from_table(&table, table.columns(&[place]).remove(0))
    }

    fn from_table(table: &Table, column: Column) -> Result<Self> {
        let place = column.index;
        let mut values = Vec::new();
        table.for_each(|line, cells| {
            let Some(cell) = cells.get(place) else {
                let cells = units::plural(cells.len() as u64, "cell");
                let what = format!("the row ends before this column: it has {cells}");
                return Err(Error::cell(&table.path, line, place + 1, what));
            };
            values.push(table.number(line, place, cell)?);
            Ok(())
        })?;
        let (file, rows) = (io::file_name(&table.path), units::plural(values.len() as u64, "row"));
        let column_name = table.column_name(place);
        let description =
            format!("{file}: {rows}{}, the values from column {column_name}", table.writing());
        Ok(Self { column, values, description, header: table.header.clone() })
    }

    /// Whether this is a column of ETTh1 or ETTh2.
    pub(super) fn is_hourly_ett(&self) -> bool {
        let header = self.header.as_deref().unwrap_or_default();
        self.values.len() == ETT_HOURS && header == ETT_COLUMNS
    }
}
