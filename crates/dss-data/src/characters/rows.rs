//! Rows of tables: TSV (no quoting) and CSV, each row bounded in size.

use std::io::{BufRead, Read};
use std::path::Path;

use crate::delimited::{ROW_LIMIT, RowReader, Separator, too_long};
use crate::{Error, Result, io, table};

/// Columns that [`first`] looks at.
const FIRST_COLUMNS: usize = 64;

/// Receives the number of a line (from 1) and its bytes.
pub(crate) type Visit<'a> = dyn FnMut(u64, &[u8]) -> Result<()> + 'a;
/// Receives the number of a line (from 1) and its cells.
pub(crate) type VisitCells<'a> = dyn FnMut(u64, &[&[u8]]) -> Result<()> + 'a;

/// Visits every line that is not empty, without its end.
pub(crate) fn for_each_line(path: &Path, visit: &mut Visit<'_>) -> Result<()> {
    let mut reader = io::open(path)?;
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let n = (&mut reader).take(ROW_LIMIT as u64 + 1).read_until(b'\n', &mut line);
        if n.map_err(Error::io("read", path))? == 0 {
            break;
        }
        if line.len() > ROW_LIMIT {
            return Err(Error::line(path, number, too_long()));
        }
        let mut text = line.strip_suffix(b"\n").unwrap_or(&line);
        text = text.strip_suffix(b"\r").unwrap_or(text);
        if number == 1 {
            text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
        }
        if !text.is_empty() {
            visit(number, text)?;
        }
    }
    Ok(())
}

/// Visits every row of a table. In a TSV file the last of `most` cells takes the rest of its line, tabs included.
pub(crate) fn for_each_row(path: &Path, most: usize, visit: &mut VisitCells<'_>) -> Result<()> {
    match Separator::of_name(path) {
        Some(_) => for_each_line(path, &mut |number, line| {
            visit(number, &line.splitn(most, |&b| b == b'\t').collect::<Vec<_>>())
        }),
        None => table::for_each_row(path, RowReader::new(Some(Separator::Comma)), &mut |row| {
            visit(row.line, &row.cells().collect::<Vec<_>>())?;
            Ok(true)
        }),
    }
}

/// The cells of the first row of a table; none if it is empty.
pub(crate) fn first(path: &Path) -> Result<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    // An error ends the reading; it is the end of the search, unless it comes before the first row.
    let stop = || Error::content(path, "the first row was read");
    let read = for_each_row(path, FIRST_COLUMNS, &mut |_, cells| {
        found = cells.iter().map(|cell| cell.to_vec()).collect();
        Err(stop())
    });
    match (read, found.is_empty()) {
        (Err(error), true) => Err(error),
        _ => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    fn file(name: &str, bytes: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        (dir, path)
    }

    fn read(path: &Path, most: usize) -> Result<Vec<(u64, Vec<String>)>> {
        let mut rows = Vec::new();
        for_each_row(path, most, &mut |line, cells| {
            let cells = cells.iter().map(|cell| String::from_utf8_lossy(cell).into_owned());
            rows.push((line, cells.collect()));
            Ok(())
        })?;
        Ok(rows)
    }

    fn row(line: u64, cells: &[&str]) -> (u64, Vec<String>) {
        (line, cells.iter().map(|cell| cell.to_string()).collect())
    }

    #[test]
    fn tabs_do_not_quote_and_the_last_cell_takes_the_rest() {
        let (_dir, path) = file("a.tsv", b"\xef\xbb\xbf0\t\"a\tb\r\n\n1");
        assert_eq!(read(&path, 2).unwrap(), [row(1, &["0", "\"a\tb"]), row(3, &["1"])]);
        assert_eq!(first(&path).unwrap(), [&b"0"[..], b"\"a", b"b"]);
    }

    #[test]
    fn commas_quote() {
        let (_dir, path) = file("a.csv", b"0,\"a, \"\"b\"\"\nc\"\n1,d\n");
        assert_eq!(read(&path, 1).unwrap(), [row(1, &["0", "a, \"b\"\nc"]), row(3, &["1", "d"])]);
        assert_eq!(first(&path).unwrap().len(), 2);
    }

    #[test]
    fn nothing_in_an_empty_file() {
        let (_dir, path) = file("a.csv", b"");
        assert!(first(&path).unwrap().is_empty() && read(&path, 5).unwrap().is_empty());
        assert!(first(&path.with_extension("gone")).is_err());
    }

    #[test]
    fn a_row_without_end_is_refused() {
        for (name, start) in [("a.tsv", &b"0\tx\n0\t"[..]), ("a.csv", b"0,x\n0,\"")] {
            let (_dir, path) = file(name, start);
            // Zeros follow, which take no room on the disk.
            File::options()
                .write(true)
                .open(&path)
                .unwrap()
                .set_len(ROW_LIMIT as u64 + 4096 * 8)
                .unwrap();
            let error = read(&path, 2).unwrap_err().to_string();
            assert!(error.contains("line 2: the row is longer than 64 MiB"), "{error}");
        }
    }
}
