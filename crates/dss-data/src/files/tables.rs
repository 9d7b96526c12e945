//! Sequences in tables: one per row, or one step per row.

use std::collections::{HashMap, HashSet};

use dss_format::encoder::{Column, LABEL_NAMES, TEXT_NAMES, find_names, is_number, listed};

use super::record::{Content, Label, Layout, Record, Records};
use super::{FilesConfig, InputChoice, TargetChoice};
use crate::table::{Header, Table};
use crate::{Error, Result, io, units};

/// Rows that are needed before a column without a name is taken as a count of the rows.
const INDEX_ROWS: usize = 10;
/// Usual names of a column that tells the rows apart and says nothing about them.
const INDEX_NAMES: [&str; 9] =
    ["id", "idx", "index", "row", "rowid", "row_id", "row_number", "uid", "uuid"];
/// Cells that have to count the columns before a first row is taken as names.
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
    let mut index = index_columns(table)?;
    let label = label_column(config, table, &index)?;
    index.retain(|index| *index != label);
    let rest = selected(config, table, Some(label), &index)?;
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
        Some(column) => format!("the text from column {}", table.column_name(column)),
        None => format!("{} of numbers per row", units::plural(rest.len() as u64, "step")),
    };
    let rows = units::plural(records.len() as u64, "row");
    index.retain(|index| !rest.contains(index));
    let note = format!(
        "{file}: {rows}{}, label from column {}, {content}{}",
        table.writing(),
        table.column_name(label),
        index_words(table, &index)
    );
    let mut notes = vec![note.into()];
    if let Some(names) =
        table.header.as_ref().filter(|_| named_label(config, table, &index).is_none())
    {
        let usual = LABEL_NAMES.join(", ");
        let what = format!(
            "{file}: no column is called {usual}, so the label is taken from {:?}; if it is in another column, use --set task.label=NAME",
            names.get(label).map_or("", String::as_str)
        );
        notes.push(what.into());
    }
    if text.is_none() {
        notes.extend(
            counting_words(config, table, &rest)?.map(|what| format!("{file}: {what}").into()),
        );
    }
    let layout = match text {
        Some(column) => Layout::Texts(table.columns(&[column]).pop()),
        None => Layout::Rows(table.columns(&rest)),
    };
    Ok(Records { records, layout, decimal_comma: table.decimal_comma, notes })
}

/// Which columns are left out, for a note.
pub(super) fn index_words(table: &Table, index: &[usize]) -> String {
    let words = |&i: &usize| {
        let column = table.column_name(i);
        match table.header.as_ref().and_then(|names| names.get(i)).is_some_and(|n| !is_unnamed(n)) {
            true => format!(", column {column} is left out: it only tells the rows apart"),
            false => format!(", column {column} only counts the rows"),
        }
    };
    index.iter().map(words).collect()
}

/// A remark on columns among `places` that may be an index although they are read, unless the settings chose them: they
/// have the name of one, or count the rows in any order. Columns whose names are numbers are steps.
pub(super) fn counting_words(
    config: &FilesConfig,
    table: &Table,
    places: &[usize],
) -> Result<Option<String>> {
    let Some(names) = table.header.as_ref().filter(|_| config.columns.is_empty()) else {
        return Ok(None);
    };
    let name = |i: usize| names.get(i).map_or("", String::as_str);
    let named = |i: &&usize| !is_unnamed(name(**i)) && !is_number(name(**i));
    let candidates: Vec<usize> = places.iter().filter(named).copied().collect();
    let mut counts: Vec<Option<Vec<i64>>> = vec![Some(Vec::new()); candidates.len()];
    table.for_each(|_, cells| {
        for (&i, numbers) in candidates.iter().zip(&mut counts) {
            let number = cells.get(i).and_then(|cell| cell.trim().parse().ok());
            *numbers = numbers.take().zip(number).map(|(mut numbers, number)| {
                numbers.push(number);
                numbers
            });
        }
        Ok(())
    })?;
    let count_rows = |numbers: Option<Vec<i64>>| {
        let mut numbers = numbers.filter(|numbers| numbers.len() >= INDEX_ROWS)?;
        numbers.sort_unstable();
        numbers.windows(2).all(|two| two[0].checked_add(1) == Some(two[1])).then_some(())
    };
    let found: Vec<usize> = (candidates.into_iter().zip(counts))
        .filter(|(i, numbers)| is_index_name(name(*i)) || count_rows(numbers.clone()).is_some())
        .map(|(i, _)| i)
        .collect();
    let rest: Vec<usize> = places.iter().filter(|place| !found.contains(place)).copied().collect();
    if found.is_empty() || rest.is_empty() {
        return Ok(None);
    }
    let columns: Vec<String> = found.iter().map(|&i| table.column_name(i)).collect();
    let (subject, read) = match columns.len() {
        1 => ("column", "is read, but looks"),
        _ => ("columns", "are read, but look"),
    };
    Ok(Some(format!(
        "{subject} {} {read} like an index of the rows; if so, leave it out with --set task.columns={}",
        columns.join(", "),
        ranges(&rest)
    )))
}

/// Columns from 1 as in `task.columns`: `2-4,6`.
fn ranges(places: &[usize]) -> String {
    let runs = places.chunk_by(|a, b| a + 1 == *b);
    let run = |run: &[usize]| match run {
        [first, .., last] => format!("{}-{}", first + 1, last + 1),
        _ => (run[0] + 1).to_string(),
    };
    runs.map(run).collect::<Vec<_>>().join(",")
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
    index: &[usize],
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
        places = (0..table.width()).filter(|place| !index.contains(place)).collect();
    }
    places.retain(|&place| Some(place) != label);
    if places.is_empty() {
        let what = format!(
            "nothing is left besides the label; the table has {} if {} separate them, otherwise set task.delimiter",
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
    let label = label_column(config, table, &index_columns(table)?)?;
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

/// The columns that say nothing about their rows: one without a name that counts them, and those with the name of an
/// index that tell all rows apart by whole numbers, or by names.
pub(super) fn index_columns(table: &Table) -> Result<Vec<usize>> {
    let names = table.header.iter().flatten().enumerate();
    let named: Vec<usize> = names.filter(|(_, name)| is_index_name(name)).map(|(i, _)| i).collect();
    let mut seen = vec![(HashSet::new(), 0, 0); named.len()];
    if !named.is_empty() {
        table.for_each(|_, cells| {
            for (&i, (seen, rows, numbers)) in named.iter().zip(&mut seen) {
                let cell = cells.get(i).map_or("", |cell| cell.trim());
                *rows += 1;
                *numbers += usize::from(cell.parse::<i64>().is_ok());
                if !cell.is_empty() && (cell.parse::<i64>().is_ok() || !is_number(cell)) {
                    seen.insert(cell.to_owned());
                }
            }
            Ok(())
        })?;
    }
    let tells_apart = |(seen, rows, numbers): &(HashSet<String>, usize, usize)| {
        seen.len() == *rows && (*numbers == 0 || numbers == rows)
    };
    let named = named.into_iter().zip(seen).filter(|(_, cells)| tells_apart(cells));
    let mut found: Vec<usize> = unnamed_index(table).into_iter().collect();
    found.extend(named.map(|(i, _)| i));
    if found.len() >= table.width() {
        found.clear();
    }
    Ok(found)
}

/// The column that only counts the rows: whole numbers without a name, in the first column and the only one without a
/// name (pandas repeats them where it joins tables), or all of them different; in a table without a header the first
/// column, each number one more than the one before.
fn unnamed_index(table: &Table) -> Option<usize> {
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

/// Whether a column has the usual name of an index.
fn is_index_name(name: &str) -> bool {
    INDEX_NAMES.iter().any(|usual| usual.eq_ignore_ascii_case(name))
}

/// The column of a header whose name is not a number, if all others are.
fn only_name(table: &Table, index: &[usize]) -> Option<usize> {
    let names = table.header.iter().flatten().enumerate();
    let mut names = names.filter(|(i, _)| !index.contains(i));
    let mut named = names.by_ref().filter(|(_, name)| !is_unnamed(name) && !is_number(name));
    let (place, _) = named.next()?;
    named.next().is_none().then_some(place)
}

fn label_column(config: &FilesConfig, table: &Table, index: &[usize]) -> Result<usize> {
    if !config.label.is_empty() {
        return table.column("label", &config.label);
    }
    Ok(named_label(config, table, index)
        .or_else(|| (0..table.width()).find(|i| !index.contains(i)))
        .unwrap_or_default())
}

/// The column of the label, if the settings or its name tell.
fn named_label(config: &FilesConfig, table: &Table, index: &[usize]) -> Option<usize> {
    match config.label.is_empty() {
        true => (LABEL_NAMES.iter().find_map(|name| table.named(name)))
            .or_else(|| only_name(table, index)),
        false => table.column("label", &config.label).ok(),
    }
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
                let what = format!(
                    "{cell:?} is not a number, so this is read as text; {what}, or task.label if the label is in \
                     column {}",
                    column + 1
                );
                Error::cell(&table.path, line, column + 1, what)
            }
            None => Error::content(&table.path, what),
        }
    })
}
