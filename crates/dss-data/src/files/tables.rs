//! Sequences in tables: one per row, or one step per row.

use std::collections::{HashMap, HashSet};

use dss_format::encoder::{Column, LABEL_NAMES, TEXT_NAMES, find_names, is_number, listed};

use super::record::{Content, Label, Layout, Record, Records};
use super::{FilesConfig, InputChoice, TargetChoice};
use crate::delimited::Separator;
use crate::table::{Header, Table};
use crate::{Error, Result, io, units};

/// Rows that are looked at before a column without a name is taken for a count of the rows.
const INDEX_ROWS: usize = 10;
/// Cells that have to count the columns before a first row is taken for names.
const COUNTED_CELLS: usize = 10;

/// A table with a label column and either one text column or one column per step; `columns` are the steps of the
/// table before.
pub(super) fn read_rows(
    config: &FilesConfig,
    mut table: Table,
    columns: &[Column],
) -> Result<Records> {
    if config.header == Header::Auto && table.header.is_none() && begins_with_names(config, &table)?
    {
        table.take_header();
    }
    let table = &table;
    let index = index_column(table);
    let label = label_column(config, table, index)?;
    let index = index.filter(|index| *index != label);
    let rest = selected(config, table, Some(label), index)?;
    let text = if choose_text(config, table, &rest) {
        Some(text_column(config, table, &rest)?)
    } else {
        None
    };
    let rest = if text.is_none() { in_order_of(columns, table, rest)? } else { rest };
    let file = io::file_name(&table.path);
    let mut records = Vec::new();
    table.for_each(|line, cells| {
        let found = cells.get(label).map(|cell| cell.trim()).filter(|cell| !cell.is_empty());
        let found = found.ok_or_else(|| {
            Error::cell(&table.path, line, label + 1, "the label is missing; every row needs one")
        })?;
        let content = match text {
            Some(column) => Content::Text(row_text(table, line, cells, column)?),
            None => Content::Numbers(row_numbers(table, line, cells, &rest)?),
        };
        let label = Label::Name(found.to_owned());
        records.push(Record { name: format!("{file}:{line}"), content, label });
        Ok(())
    })?;
    let content = match text {
        Some(column) => format!("the text from column {}", column_name(table, column)),
        None => format!("{} of numbers per row", units::plural(rest.len() as u64, "step")),
    };
    let rows = units::plural(records.len() as u64, "row");
    let note = format!(
        "{file}: {rows}{}, label from column {}, {content}{}",
        writing(table),
        column_name(table, label),
        index_words(table, index.filter(|index| !rest.contains(index)))
    );
    let notes = vec![note.into()];
    let layout = match text {
        Some(column) => Layout::Texts(table.columns(&[column]).pop()),
        None => Layout::Rows(table.columns(&rest)),
    };
    Ok(Records { records, layout, decimal_comma: table.decimal_comma, notes })
}

/// How a table is written, for a note: ` separated by tabs, decimal comma, no header`.
pub(super) fn writing(table: &Table) -> String {
    let separator = match table.separator {
        Separator::Comma => String::new(),
        other => format!(" separated by {}", other.plural()),
    };
    let decimal = if table.decimal_comma { ", decimal comma" } else { "" };
    let header = if table.header.is_some() { "a header" } else { "no header" };
    format!("{separator}{decimal}, {header}")
}

/// That a column is left out, for a note.
pub(super) fn index_words(table: &Table, index: Option<usize>) -> String {
    let words = |i| format!(", column {} only counts the rows", column_name(table, i));
    index.map(words).unwrap_or_default()
}

/// The number of a column from 1, and its name.
fn column_name(table: &Table, i: usize) -> String {
    match &table.header {
        Some(names) => format!("{} ({:?})", i + 1, names.get(i).map_or("", String::as_str)),
        None => (i + 1).to_string(),
    }
}

/// The text of a row.
pub(super) fn row_text(table: &Table, line: u64, cells: &[&str], column: usize) -> Result<String> {
    let text = cells.get(column).map(|cell| cell.to_string());
    text.ok_or_else(|| {
        let cells = units::plural(cells.len() as u64, "cell");
        let what = format!("the row has only {cells}; the text is missing");
        Error::cell(&table.path, line, column + 1, what)
    })
}

/// The numbers of a row. Empty cells at its end make a shorter sequence.
pub(super) fn row_numbers(
    table: &Table,
    line: u64,
    cells: &[&str],
    columns: &[usize],
) -> Result<Vec<f32>> {
    let cell = |&column: &usize| cells.get(column).map_or("", |cell| cell.trim());
    let used = columns.iter().rposition(|column| !cell(column).is_empty()).map_or(0, |i| i + 1);
    if used == 0 {
        return Err(Error::line(&table.path, line, "no numbers in this row"));
    }
    columns[..used].iter().map(|column| table.number(line, *column, cell(column))).collect()
}

/// All rows of a table as the steps of one sequence, `[len, columns]`.
pub(super) fn steps(table: &Table, columns: &[usize]) -> Result<Vec<f32>> {
    let mut numbers = Vec::new();
    table.for_each(|line, cells| {
        for &column in columns {
            let cell = cells.get(column).copied().unwrap_or_default();
            numbers.push(table.number(line, column, cell)?);
        }
        Ok(())
    })?;
    Ok(numbers)
}

/// The columns named in the settings, or all but those of the label and of the index.
pub(super) fn selected(
    config: &FilesConfig,
    table: &Table,
    label: Option<usize>,
    index: Option<usize>,
) -> Result<Vec<usize>> {
    let mut places = Vec::new();
    for part in config.columns.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let range = part.split_once('-').filter(|_| table.named(part).is_none());
        match range {
            Some((first, last)) => {
                let [first, last] = [first, last].map(|end| table.column("columns", end));
                let (first, last) = (first?, last?);
                if first > last {
                    let what = format!("the range {part} ends before it begins");
                    return Err(Error::setting("columns", &config.columns, what));
                }
                places.extend(first..=last);
            }
            None => places.push(table.column("columns", part)?),
        }
    }
    if places.is_empty() {
        places = (0..table.width()).filter(|place| Some(*place) != index).collect();
    }
    places.retain(|&place| Some(place) != label);
    if places.is_empty() {
        let what = format!(
            "nothing is left beside the label; the table has {}, if {} separate them: else set task.delimiter",
            table.describe(),
            table.separator.plural()
        );
        return Err(Error::content(&table.path, what));
    }
    Ok(places)
}

/// The places in the order of the `columns` of another table, if both tables have the same names in another order. One
/// may have more columns at the end; other names are an error.
pub(super) fn in_order_of(
    columns: &[Column],
    table: &Table,
    places: Vec<usize>,
) -> Result<Vec<usize>> {
    let expected = columns.iter().map(|column| column.name.as_deref()).collect::<Option<Vec<_>>>();
    let found = table.columns(&places);
    let found = found.iter().map(|column| column.name.as_deref()).collect::<Option<Vec<_>>>();
    let (Some(expected), Some(found)) = (expected, found) else { return Ok(places) };
    if expected.iter().zip(&found).all(|(a, b)| a.eq_ignore_ascii_case(b)) {
        return Ok(places);
    }
    let order = if expected.len() == found.len() { find_names(&found, &expected) } else { None };
    match order {
        Some(order) => Ok(order.into_iter().map(|i| places[i]).collect()),
        None => {
            let [expected, found] = [expected, found].map(|names| listed(&names));
            let what =
                format!("expected the columns {expected}, as in the other files, found {found}");
            Err(Error::content(&table.path, what))
        }
    }
}

/// Whether the first row holds names although it has numbers: they count the columns, or what would be its label occurs
/// nowhere else, and every other label does.
fn begins_with_names(config: &FilesConfig, table: &Table) -> Result<bool> {
    if counts_columns(table) {
        return Ok(true);
    }
    let label = label_column(config, table, index_column(table))?;
    let first = table.head[0].1.get(label).map(|cell| cell.trim()).unwrap_or_default();
    if config.target != TargetChoice::Class || first.is_empty() || is_number(first) {
        return Ok(false);
    }
    let mut counts: HashMap<String, usize> = HashMap::new();
    table.for_each(|_, cells| {
        let cell = cells.get(label).map(|cell| cell.trim()).unwrap_or_default();
        *counts.entry(cell.to_owned()).or_default() += 1;
        Ok(())
    })?;
    let once = counts.remove(first) == Some(1);
    Ok(once && counts.len() > 1 && counts.values().all(|count| *count > 1))
}

/// Whether the first row counts its cells from 0 or 1, but for one name that the rows below do not have there, and for
/// nothing above an index: `kind,0,1,2`, as pandas writes columns without names.
fn counts_columns(table: &Table) -> bool {
    let first: Vec<&str> = table.head[0].1.iter().map(|cell| cell.trim()).collect();
    let cells = first.strip_prefix(&[""]).unwrap_or(&first);
    let names: Vec<&str> = cells.iter().copied().filter(|cell| !is_number(cell)).collect();
    let numbers: Vec<&str> = cells.iter().copied().filter(|cell| is_number(cell)).collect();
    let counts_from = |start: usize| {
        numbers.iter().zip(start..).all(|(cell, number)| cell.parse::<usize>() == Ok(number))
    };
    let is_name = |name: &str| {
        let place = first.iter().position(|cell| *cell == name);
        let below =
            |row: &[String]| place.is_some_and(|i| row.get(i).is_some_and(|c| c.trim() == name));
        !name.is_empty() && !table.head[1..].iter().any(|(_, row)| below(row))
    };
    // Few cells may be data; an example does not begin with an empty cell.
    let enough = numbers.len() >= COUNTED_CELLS || cells.len() < first.len() && !numbers.is_empty();
    enough
        && names.len() <= 1
        && names.into_iter().all(is_name)
        && (counts_from(0) || counts_from(1))
}

/// The column that only counts the rows: whole numbers without a name, in the first column and the only one without a
/// name (pandas repeats them where it joins tables), or all of them different; in a table without a header the first
/// column, each number one more than the one before.
pub(super) fn index_column(table: &Table) -> Option<usize> {
    let place = match &table.header {
        Some(names) => names.iter().position(|name| is_unnamed(name))?,
        None => 0,
    };
    let only_unnamed =
        |names: &[String]| place == 0 && !names[1..].iter().any(|name| is_unnamed(name));
    let numbers = table.head.iter().map(|(_, row)| row.get(place)?.trim().parse::<i64>().ok());
    let numbers = numbers.collect::<Option<Vec<_>>>()?;
    let counts = match &table.header {
        Some(names) if only_unnamed(names) => true,
        Some(_) => {
            numbers.len() > 1 && numbers.iter().collect::<HashSet<_>>().len() == numbers.len()
        }
        None => numbers.len() >= INDEX_ROWS && numbers.windows(2).all(|two| two[1] == two[0] + 1),
    };
    (counts && table.width() > 1).then_some(place)
}

/// Whether a column has no name, or the one that pandas gives it then.
fn is_unnamed(name: &str) -> bool {
    name.is_empty() || name.starts_with("Unnamed:")
}

/// The column of a header whose name is not a number, if all others are.
fn only_name(table: &Table) -> Option<usize> {
    let mut names = table.header.iter().flatten().enumerate();
    let mut named = names.by_ref().filter(|(_, name)| !is_unnamed(name) && !is_number(name));
    let (place, _) = named.next()?;
    named.next().is_none().then_some(place)
}

fn label_column(config: &FilesConfig, table: &Table, index: Option<usize>) -> Result<usize> {
    if !config.label.is_empty() {
        return table.column("label", &config.label);
    }
    Ok(LABEL_NAMES
        .iter()
        .find_map(|name| table.named(name))
        .or_else(|| only_name(table))
        .unwrap_or(usize::from(index == Some(0))))
}

/// Whether the sequences are text: as told, or when a cell of the first rows is not a number.
fn choose_text(config: &FilesConfig, table: &Table, columns: &[usize]) -> bool {
    match config.input {
        InputChoice::Text => true,
        InputChoice::Numbers => false,
        InputChoice::Auto => !config.text.is_empty() || not_a_number(table, columns).is_some(),
    }
}

/// Line, column and text of the first cell that is neither a number nor empty.
fn not_a_number<'a>(table: &'a Table, columns: &'a [usize]) -> Option<(u64, usize, &'a str)> {
    let cells = table.head.iter().flat_map(|(line, row)| {
        columns.iter().filter_map(move |&column| Some((*line, column, row.get(column)?.as_str())))
    });
    cells.into_iter().find(|(_, _, cell)| !cell.trim().is_empty() && !is_number(cell))
}

fn text_column(config: &FilesConfig, table: &Table, columns: &[usize]) -> Result<usize> {
    if !config.text.is_empty() {
        return table.column("text", &config.text);
    }
    if let [only] = columns {
        return Ok(*only);
    }
    TEXT_NAMES.iter().find_map(|name| table.named(name)).ok_or_else(|| {
        let what =
            "which column holds the text? Set task.text, or task.columns to columns of numbers";
        match not_a_number(table, columns) {
            Some((line, column, cell)) => {
                let what = format!("{cell:?} is not a number, so this is read as text; {what}");
                Error::cell(&table.path, line, column + 1, what)
            }
            None => Error::content(&table.path, what),
        }
    })
}
