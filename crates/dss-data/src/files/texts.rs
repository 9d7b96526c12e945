//! The texts of a new table, for a model that was trained on texts: which column they are in, and whether its first row
//! is a header.

use std::path::Path;

use dss_format::encoder::{FilesEncoder, TEXT_NAMES, is_number, listed, quoted};

use super::tables;
use crate::delimited::Separator;
use crate::encoder::SequencePlace;
use crate::table::{Decimal, Table, TableOptions};
use crate::{Error, Result, io, units};

/// The texts of a table, with their places.
pub(super) fn read(
    encoder: &FilesEncoder,
    path: &Path,
    note: &mut dyn FnMut(String),
) -> Result<Vec<(SequencePlace, String)>> {
    let mut table = open(encoder, path)?;
    let column = match table.header.is_some() {
        true => named_column(encoder, &table)?,
        false => column_of_rows(encoder, &mut table)?,
    };
    let mut found = Vec::new();
    table.for_each(|line, cells| {
        let text = tables::row_text(&table, line, cells, column)?;
        if text.is_empty() {
            return Err(Error::cell(path, line, column + 1, "the text is empty"));
        }
        found.push((SequencePlace::Line(line), text));
        Ok(())
    })?;
    let rows = units::plural(found.len() as u64, "row");
    let (file, writing) = (io::file_name(path), table.writing());
    let column = table.column_name(column);
    note(format!("{file}: {rows}, each a sequence{writing}, the text from column {column}"));
    Ok(found)
}

/// The name of the column that the training read.
fn trained_name(encoder: &FilesEncoder) -> Option<&str> {
    encoder.columns.first().and_then(|column| column.name.as_deref())
}

fn open(encoder: &FilesEncoder, path: &Path) -> Result<Table> {
    let names: Vec<&str> = trained_name(encoder).into_iter().collect();
    let given = encoder.dialect.delimiter.and_then(Separator::written);
    let open = |separator| {
        let options = TableOptions {
            separator,
            decimal: Decimal::Point,
            names: &names,
            classes: &encoder.classes,
            ..Default::default()
        };
        Table::open(path, options)
    };
    // A text without commas may have semicolons: only a header or the labels can tell that these separate.
    if let Ok(mut table) = open(given) {
        table.measure()?;
        let labelled = || -> Result<bool> {
            Ok(table.width() > 1 && RowLabels::of_table(encoder, &table)?.are_there())
        };
        if place_of_name(encoder, &table).is_some() || table.header.is_none() && labelled()? {
            return Ok(table);
        }
    }
    let mut table = open(given.or(Separator::of_name(path)).or(Some(Separator::Comma)))?;
    table.measure()?;
    Ok(table)
}

/// The column that has the name of the training's, or, where that had none, a usual one.
fn place_of_name(encoder: &FilesEncoder, table: &Table) -> Option<usize> {
    match trained_name(encoder) {
        Some(name) => table.named(name),
        None => TEXT_NAMES.iter().find_map(|name| table.named(name)),
    }
}

/// Where the texts are in a table with a header.
fn named_column(encoder: &FilesEncoder, table: &Table) -> Result<usize> {
    let only = (trained_name(encoder).is_none() && table.width() == 1).then_some(0);
    place_of_name(encoder, table).or(only).ok_or_else(|| {
        let expected = match trained_name(encoder) {
            Some(name) => format!("the column {name:?} of the training"),
            None => format!("a column called {}", TEXT_NAMES.join(", ")),
        };
        let what = format!("expected {expected}; this table has {}", table.describe());
        Error::content(&table.path, what)
    })
}

/// Where the texts are in a table whose first row has no usual names: it is the only column, or at the place of the
/// training beside a label of the model in every row. A first row without one is a header.
fn column_of_rows(encoder: &FilesEncoder, table: &mut Table) -> Result<usize> {
    if table.width() == 1 {
        return Ok(0);
    }
    let labels = RowLabels::of_table(encoder, table)?;
    if !labels.are_there() {
        return Err(labels.error(encoder, table));
    }
    if labels.missing == 0 {
        return Ok(labels.text);
    }
    table.take_header();
    match trained_name(encoder) {
        Some(_) => named_column(encoder, table),
        None => Ok(place_of_name(encoder, table).unwrap_or(labels.text)),
    }
}

/// Which rows have a label of the model beside the text at the place of the training.
struct RowLabels {
    /// The place of the text.
    text: usize,
    rows: usize,
    /// Rows without a label.
    missing: usize,
    /// Whether the first row is one of them, and has a cell at the place of the text.
    first_may_be_names: bool,
    /// One of them, with several cells if there is such a row: its line and its cells.
    example: (u64, Vec<String>),
}

impl RowLabels {
    fn of_table(encoder: &FilesEncoder, table: &Table) -> Result<Self> {
        let text = encoder.columns.first().map_or(1, |column| column.index);
        let is_label = |cell: &str| match encoder.classes.is_empty() {
            true => cell.is_empty() || is_number(cell),
            false => cell.is_empty() || encoder.classes.iter().any(|class| is_class(cell, class)),
        };
        let is_labelled = |cells: &[&str]| {
            let mut others = cells.iter().enumerate().filter(|(i, _)| *i != text);
            text < cells.len() && others.any(|(_, cell)| is_label(cell.trim()))
        };
        let example = (0, Vec::new());
        let mut labels = Self { text, rows: 0, missing: 0, first_may_be_names: false, example };
        table.for_each(|line, cells| {
            labels.rows += 1;
            if is_labelled(cells) {
                return Ok(());
            }
            let first = labels.rows == 1;
            labels.missing += 1;
            labels.first_may_be_names |= first && cells.len() > text;
            let (shown, several) = (&labels.example, cells.len() > 1);
            // The first row may have been meant as a header.
            if shown.1.is_empty() || several && (shown.1.len() < 2 || shown.0 < 2) {
                labels.example = (line, cells.iter().map(|cell| cell.trim().to_owned()).collect());
            }
            Ok(())
        })?;
        Ok(labels)
    }

    /// Whether every row has one, but for a header.
    fn are_there(&self) -> bool {
        self.missing == 0 || self.missing == 1 && self.first_may_be_names && self.rows > 1
    }

    fn error(&self, encoder: &FilesEncoder, table: &Table) -> Error {
        let classes: Vec<&str> = encoder.classes.iter().map(String::as_str).collect();
        let label = if classes.is_empty() { "a number".to_owned() } else { listed(&classes) };
        let (line, cells) = &self.example;
        const SHOWN: usize = 4;
        let mut shown: Vec<String> = cells.iter().take(SHOWN).map(|cell| quoted(cell)).collect();
        if cells.len() > SHOWN {
            shown.push(format!("{} more", cells.len() - SHOWN));
        }
        let name = trained_name(encoder).unwrap_or(TEXT_NAMES[0]);
        let what = format!(
            "expected the text in column {} beside a label ({label}, or empty), or one text per row and nothing else; \
             found {}; a text with {} in it has to be quoted, and a header that calls a column {name:?} tells where the \
             text is",
            self.text + 1,
            shown.join(" and "),
            table.separator.plural()
        );
        Error::line(&table.path, *line, what)
    }
}

/// Whether a cell is the label of a class; whole numbers may be written in other ways.
fn is_class(cell: &str, class: &str) -> bool {
    let number = |text: &str| text.parse::<f64>().ok();
    cell == class || number(cell).is_some_and(|x| number(class) == Some(x))
}
