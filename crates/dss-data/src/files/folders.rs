//! Folders with one subfolder per class, and recognising whether a path is such a folder, a table or a pair of arrays.

use std::fs;
use std::path::{Path, PathBuf};

use dss_format::encoder::{Column, listed};

use super::record::{Content, Label, Layout, Record, Records};
use super::{FilesConfig, Format, InputChoice, arrays, tables};
use crate::delimited::Separator;
use crate::npy::read_npy;
use crate::table::{Decimal, Table, TableOptions};
use crate::task::Split;
use crate::{Error, Result, io, units};

/// Reads a path: per split if it has `train` (a folder or a table) inside, else all together.
pub(super) fn read(config: &FilesConfig, path: &Path) -> Result<Vec<(Option<Split>, Records)>> {
    let [train, val, test] = Split::ALL.map(|split| (split, part(path, split)));
    if train.1.is_none() {
        return Ok(vec![(None, read_one(config, path, &[])?)]);
    }
    let mut parts: Vec<(Option<Split>, Records)> = Vec::new();
    for (split, path) in [train, val, test] {
        let Some(path) = path else { continue };
        let columns = parts.first().map(|(_, train)| train.layout.columns());
        let records = read_one(config, &path, columns.unwrap_or_default())?;
        parts.push((Some(split), records));
    }
    Ok(parts)
}

/// The folder or table of a split.
fn part(path: &Path, split: Split) -> Option<PathBuf> {
    let names: &[&str] = match split {
        Split::Val => &["val", "valid", "validation", "dev"],
        _ => &[split.name()],
    };
    let folder = names.iter().map(|name| path.join(name)).find(|path| path.is_dir());
    let tables: Vec<String> =
        names.iter().flat_map(|name| ["csv", "tsv"].map(|e| format!("{name}.{e}"))).collect();
    folder.or_else(|| io::find(path, &tables.iter().map(String::as_str).collect::<Vec<_>>()))
}

/// Reads a table or a folder; `columns` are those of what was read before.
fn read_one(config: &FilesConfig, path: &Path, columns: &[Column]) -> Result<Records> {
    if !path.is_dir() {
        return tables::read_rows(config, table(config, path)?, columns);
    }
    match (io::find(path, &["x.npy"]), io::find(path, &["y.npy"])) {
        (Some(x), Some(y)) if matches!(config.format, Format::Auto | Format::Npy) => {
            if config.input == InputChoice::Text {
                return Err(Error::setting("input", "text", "x.npy holds numbers"));
            }
            let records = arrays::read_pair(&x, &y)?;
            Ok(with_sizes(&io::file_name(&x), records))
        }
        _ => read_classes(config, path, columns)
            .map(|records| with_sizes(&io::file_name(path), records)),
    }
}

/// Adds notes on how many records there are and how long they are: nothing else shows that the axes of an array are
/// swapped.
fn with_sizes(name: &str, mut records: Records) -> Records {
    let channels = records.layout.channels();
    let length = |record: &Record| match &record.content {
        Content::Text(text) => text.chars().count(),
        Content::Numbers(numbers) => numbers.len() / channels.unwrap_or(1).max(1),
    };
    let kinds = if channels.is_none() { ["text", "character"] } else { ["sequence", "step"] };
    let channels = channels.unwrap_or(1);
    let lengths: Vec<usize> = records.records.iter().map(length).collect();
    records.notes.push(format!("{name}: {}", sizes(kinds, &lengths, channels)).into());
    let longest = lengths.into_iter().max().unwrap_or(0);
    if channels > longest {
        let what = format!(
            "{name}: more channels ({channels}) than steps ({longest}); if the numbers are [channels, steps], as in \
             PyTorch, transpose them to [steps, channels]"
        );
        records.notes.push(what.into());
    }
    records
}

/// In words, how many sequences there are, and of which lengths: `60 sequences of 3 steps, 20 channels`.
pub(super) fn sizes([kind, unit]: [&str; 2], lengths: &[usize], channels: usize) -> String {
    let count = units::plural(lengths.len() as u64, kind);
    let (shortest, longest) = (lengths.iter().min(), lengths.iter().max());
    let (shortest, longest) = (shortest.copied().unwrap_or(0), longest.copied().unwrap_or(0));
    let length = match shortest == longest {
        true => units::plural(longest as u64, unit),
        false => format!("{shortest} to {longest} {unit}s"),
    };
    let each = if channels > 1 { format!(", {channels} channels") } else { String::new() };
    format!("{count} of {length}{each}")
}

/// Opens a table as the settings say.
fn table(config: &FilesConfig, path: &Path) -> Result<Table> {
    let separator = match (config.format, io::extension(path).as_str()) {
        (Format::Tsv, _) => Some(Separator::Tab),
        (Format::Csv, _) | (Format::Auto, "csv" | "tsv" | "tab") => None,
        (Format::Auto, "npy") => {
            let what = "one array has no labels; give the folder with x.npy and y.npy";
            return Err(Error::content(path, what));
        }
        (Format::Auto, _) => {
            let what = "is it a table? Set task.format to csv or tsv";
            return Err(Error::content(path, what));
        }
        (Format::Npy | Format::TextFolder, _) => {
            let what = format!("{} is a file; give a folder", path.display());
            return Err(Error::setting("format", config.format.name(), what));
        }
    };
    let names = [config.label.as_str(), config.text.as_str()];
    let names: Vec<&str> =
        names.into_iter().chain(config.columns.split(',')).map(str::trim).collect();
    open(config, path, separator, &names)
}

fn open(
    config: &FilesConfig,
    path: &Path,
    separator: Option<Separator>,
    names: &[&str],
) -> Result<Table> {
    let decimal = match (config.decimal, config.input) {
        // Commas in a text stay as they are.
        (Decimal::Auto, InputChoice::Text) => Decimal::Point,
        (decimal, _) => decimal,
    };
    let separator = config.delimiter.separator().or(separator);
    let options = TableOptions { separator, decimal, header: config.header, names, classes: &[] };
    let mut table = Table::open(path, options)?;
    table.measure()?;
    Ok(table)
}

/// A folder with one subfolder per class.
fn read_classes(config: &FilesConfig, path: &Path, columns: &[Column]) -> Result<Records> {
    let mut files: Vec<(String, PathBuf)> = Vec::new();
    for folder in entries(path)?.into_iter().filter(|entry| entry.is_dir()) {
        let class = io::file_name(&folder);
        let inside = entries(&folder)?.into_iter().filter(|entry| entry.is_file());
        files.extend(inside.map(|file| (class.clone(), file)));
    }
    let kind = kind(config, path, &files)?;
    let all = files.len();
    files.retain(|(_, file)| io::extension(file) == kind);
    let mut notes = Vec::new();
    if files.len() < all {
        let left_out = units::plural((all - files.len()) as u64, "file");
        notes.push(format!("{left_out} left out, not of the kind .{kind}").into());
    }
    let mut layout: Option<Layout> = None;
    let mut records = Vec::new();
    let mut decimal_comma = false;
    let (mut ways, mut remarked) = (Vec::new(), false);
    for (class, file) in files {
        let columns = layout.as_ref().map_or(columns, Layout::columns);
        let (content, this, reading) = read_sequence(config, &file, kind, columns)?;
        if let Some(TableReading { way, remark, decimal_comma: commas }) = reading {
            decimal_comma |= commas;
            let file = io::file_name(&file);
            let remark = remark.filter(|_| !remarked);
            remarked |= remark.is_some();
            if !ways.contains(&way) {
                notes.push(format!("{class}/{file}: a step per row{way}").into());
                ways.push(way);
            }
            notes.extend(remark.map(|remark| format!("{class}/{file}: {remark}").into()));
        }
        let channels = this.channels();
        let first = layout.get_or_insert(this);
        if first.channels() != channels {
            let [first, this] = [first.channels(), channels].map(Option::unwrap_or_default);
            let this = units::plural(this as u64, "channel");
            let what = format!("has {this}, but the files before have {first}");
            return Err(Error::content(&file, what));
        }
        let name = format!("{class}/{}", io::file_name(&file));
        records.push(Record { name, content, label: Label::Name(class) });
    }
    let layout = layout.expect("there is at least one file of the kind that was found");
    Ok(Records { records, layout, decimal_comma, notes })
}

/// How a table was read.
struct TableReading {
    way: String,
    /// A remark on what may be wrong with that.
    remark: Option<String>,
    decimal_comma: bool,
}

/// One file as one sequence; of a table also how it was read.
fn read_sequence(
    config: &FilesConfig,
    file: &Path,
    kind: &str,
    columns: &[Column],
) -> Result<(Content, Layout, Option<TableReading>)> {
    match kind {
        "txt" => Ok((Content::Text(document(file)?), Layout::Texts(None), None)),
        "npy" => {
            let (channels, mut one) = arrays::sequences(read_npy(file)?, false)
                .map_err(|what| Error::content(file, what))?;
            let content = Content::Numbers(one.pop().unwrap_or_default());
            Ok((content, Layout::Steps { columns: Vec::new(), channels, stacked: false }, None))
        }
        _ => {
            let names: Vec<&str> = config.columns.split(',').map(str::trim).collect();
            let table = open(config, file, None, &names)?;
            let mut index = tables::index_columns(&table)?;
            let places = tables::selected(config, &table, None, &index)?;
            index.retain(|index| !places.contains(index));
            let named = table.header.as_ref().map(|names| {
                let names: Vec<&str> =
                    places.iter().filter_map(|&i| names.get(i)).map(String::as_str).collect();
                format!(", the channels are {}", listed(&names))
            });
            let way =
                table.writing() + &named.unwrap_or_default() + &tables::index_words(&table, &index);
            let remark = tables::counting_words(config, &table, &places)?;
            let places = tables::in_order_of(columns, &table, places)?;
            let content = Content::Numbers(tables::steps(&table, &places)?);
            let (columns, channels) = (table.columns(&places), places.len());
            let layout = Layout::Steps { columns, channels, stacked: false };
            let reading = TableReading { way, remark, decimal_comma: table.decimal_comma };
            Ok((content, layout, Some(reading)))
        }
    }
}

/// The text of a file without its last line ends.
pub(super) fn document(file: &Path) -> Result<String> {
    let mut text = io::read_text(file)?;
    text.truncate(text.trim_end_matches(['\n', '\r']).len());
    Ok(text)
}

/// The extension of the files to read.
fn kind(config: &FilesConfig, path: &Path, files: &[(String, PathBuf)]) -> Result<&'static str> {
    let allowed: &[&'static str] = match (config.format, config.input) {
        (Format::TextFolder, InputChoice::Numbers) => {
            let what = "a text-folder holds text; set task.input to text or auto";
            return Err(Error::setting("input", "numbers", what));
        }
        (Format::Csv, _) => &["csv"],
        (Format::Tsv, _) => &["tsv"],
        (Format::Npy, _) => &["npy"],
        (Format::TextFolder, _) | (Format::Auto, InputChoice::Text) => &["txt"],
        (Format::Auto, InputChoice::Numbers) => &["csv", "tsv", "npy"],
        (Format::Auto, InputChoice::Auto) => &["txt", "csv", "tsv", "npy"],
    };
    let present = |kind: &&&str| files.iter().any(|(_, file)| io::extension(file) == **kind);
    let found: Vec<&'static str> = allowed.iter().filter(present).copied().collect();
    match found[..] {
        [kind] => Ok(kind),
        [] => Err(Error::content(
            path,
            format!(
                "no labelled sequences found; expected x.npy and y.npy, or one subfolder per class with files of the \
                 kind {}, or folders train, val, test of that form",
                allowed.join(", ")
            ),
        )),
        _ => Err(Error::content(
            path,
            format!(
                "the class folders hold files of the kinds {}; set task.format to one",
                found.join(", ")
            ),
        )),
    }
}

/// The entries of a folder, sorted by name, without hidden files.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let read = || -> std::io::Result<Vec<PathBuf>> {
        let mut paths = fs::read_dir(folder)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<std::io::Result<Vec<_>>>()?;
        paths.retain(|path| !io::file_name(path).starts_with('.'));
        paths.sort();
        Ok(paths)
    };
    read().map_err(Error::io("list", folder))
}
