//! The official files; `dss_format::encoder::listops` describes their rows.

use std::io::Write;
use std::path::Path;

use dss_format::encoder::listops::{HEADER, expression, source_and_label};

use super::evaluate;
use super::expressions::Expressions;
use super::symbols::{parse, to_tree};
use crate::characters::rows::for_each_line;
use crate::{Error, Result};

/// Reads a TSV file of either form, gzipped or not. Every label is checked against the value of its expression.
pub fn read_tsv(path: &Path) -> Result<Expressions> {
    let mut rows = Expressions::default();
    for_each_line(path, &mut |number, line| {
        let line = text(path, number, line)?;
        if number == 1 && line == HEADER {
            return Ok(());
        }
        let fault = |what: String| Error::line(path, number, what);
        let Some((source, label)) = source_and_label(line) else {
            return Err(fault(format!(
                "expected `{HEADER}` or `label\\tsource`: two fields with a tab between, one a digit"
            )));
        };
        let codes = codes(source).map_err(fault)?;
        let value = evaluate(&codes).map_err(fault)?;
        if value != label {
            return Err(fault(format!(
                "the label is {label}, but the expression has the value {value}"
            )));
        }
        rows.push(&codes, label);
        Ok(())
    })?;
    if rows.is_empty() {
        return Err(Error::content(path, "no expressions in this file"));
    }
    Ok(rows)
}

/// Reads expressions to be predicted: one per line, in either written form, or the rows of a TSV file (labels ignored).
/// Each comes with its line number.
pub fn read_unlabelled(path: &Path) -> Result<Vec<(u64, Vec<u8>)>> {
    let mut found = Vec::new();
    for_each_line(path, &mut |number, line| {
        let line = text(path, number, line)?;
        if !line.trim().is_empty() && line != HEADER {
            let codes = codes(expression(line)).and_then(|codes| evaluate(&codes).map(|_| codes));
            found.push((number, codes.map_err(|what| Error::line(path, number, what))?));
        }
        Ok(())
    })?;
    Ok(found)
}

/// Writes the form of the Long Range Arena.
pub fn write_tsv(to: &mut impl Write, rows: &Expressions) -> std::io::Result<()> {
    write!(to, "{HEADER}\r\n")?;
    for (i, label) in rows.labels().iter().enumerate() {
        write!(to, "{}\t{label}\r\n", to_tree(rows.codes(i)))?;
    }
    Ok(())
}

fn text<'a>(path: &Path, number: u64, line: &'a [u8]) -> Result<&'a str> {
    std::str::from_utf8(line).map_err(|_| Error::not_utf8(path, number))
}

fn codes(source: &str) -> std::result::Result<Vec<u8>, String> {
    parse(source).map_err(|symbol| {
        format!(
            "unknown symbol `{symbol}`; symbols are 0..9, [MIN [MAX [MED [SM [FIRST [LAST, ] or X"
        )
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn file(content: &str) -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("basic_train.tsv");
        fs::write(&path, content).unwrap();
        (dir, path)
    }

    #[test]
    fn both_official_forms() {
        let row = "( ( ( [MAX 2 ) 9 ) ] )";
        let (_a, lra) = file(&format!("Source\tTarget\r\n{row}\t9\r\n"));
        let (_b, original) = file(&format!("9\t{row}\n"));
        let read = read_tsv(&lra).unwrap();
        assert_eq!(read, read_tsv(&original).unwrap());
        let mut written = Vec::new();
        write_tsv(&mut written, &read).unwrap();
        assert_eq!(written, fs::read(&lra).unwrap());
    }

    #[test]
    fn faults_name_file_and_line() {
        let cases = [
            ("Source\tTarget\r\n( ( [MAX 2 ) ] )\t3\r\n", "line 2: the label is 3"),
            ("0\t[MAX 2 ?\n", "line 1: unknown symbol `?`"),
            ("[MAX 2 ]\n", "line 1: expected"),
            ("1\t[MAX 2\n", "line 1: [MAX is never closed"),
            ("Source\tTarget\r\n", "no expressions"),
        ];
        for (content, part) in cases {
            let (_dir, path) = file(content);
            let error = read_tsv(&path).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("basic_train.tsv"), "{error}");
        }
    }

    #[test]
    fn prediction_takes_plain_lines() {
        let (_dir, path) = file("[MAX 2 9 X\n\n( ( ( [MIN 2 ) 9 ) ] )\n3\t[SM 1 2 ]\n");
        let read = read_unlabelled(&path).unwrap();
        assert_eq!(read.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1, 3, 4]);
    }
}
