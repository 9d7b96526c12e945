//! Tables as their bytes arrive: rows of cells between commas, semicolons, tabs or spaces.
//!
//! Lines end with LF, CR LF or CR. Cells between commas or semicolons may be quoted; between tabs and spaces a quotation
//! mark is a character like any other. Empty lines are skipped, but counted.

use std::path::Path;

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};
use dss_format::encoder::{Dialect, is_number};

use crate::io::{self, BYTE_ORDER_MARK};

/// The longest row: a text of the longest length L in UTF-8. A quotation mark that is never closed would take in the
/// whole file.
pub(crate) const ROW_LIMIT: usize = 64 << 20;
/// The beginning of a first line for Excel, which is not a row but gives the separator: `sep=;`.
const EXCEL_MARK: &[u8] = b"sep=";

/// How columns are separated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separator {
    /// By commas; cells may be quoted.
    Comma,
    /// By semicolons; cells may be quoted.
    Semicolon,
    /// By tabs; quotation marks are ordinary characters.
    Tab,
    /// By any number of spaces.
    Space,
}

impl Separator {
    /// Tabs for `.tsv` and `.tab`; for other files the first line decides.
    pub fn of_name(path: &Path) -> Option<Self> {
        matches!(io::extension(path).as_str(), "tsv" | "tab").then_some(Self::Tab)
    }

    /// The separator that is written like this.
    pub fn written(delimiter: char) -> Option<Self> {
        Some(match delimiter {
            ',' => Self::Comma,
            ';' => Self::Semicolon,
            '\t' => Self::Tab,
            ' ' => Self::Space,
            _ => return None,
        })
    }

    /// In words, after "separated by".
    pub(crate) fn plural(self) -> &'static str {
        match self {
            Self::Comma => "commas",
            Self::Semicolon => "semicolons",
            Self::Tab => "tabs",
            Self::Space => "spaces",
        }
    }

    /// The separator given by a first line for Excel.
    fn of_excel_line(line: &[u8]) -> Option<Self> {
        let (mark, separator) = line.split_last_chunk::<1>().map(|(mark, [last])| (mark, *last))?;
        let separator = Self::written(separator.into())?;
        mark.eq_ignore_ascii_case(EXCEL_MARK).then_some(separator)
    }

    /// The unquoted part decides: semicolons or tabs, if all commas are within numbers (`1,5;2,5`); spaces between
    /// numbers; else commas.
    fn of_line(line: &[u8]) -> Self {
        let mut quoted = false;
        let plain: Vec<u8> = (line.iter().copied())
            .filter(|&byte| {
                quoted ^= byte == b'"';
                !quoted
            })
            .collect();
        let text = String::from_utf8_lossy(&plain);
        let words = || text.split_ascii_whitespace();
        let numbers = || words().all(|word| is_number(word) || is_decimal_comma(word.as_bytes()));
        // Whether this separates cells, in which a comma is part of a number.
        let separates = |separator: char| {
            let cells = || text.split(separator).map(|cell| cell.trim().as_bytes());
            cells().count() > 1 && cells().all(|c| !c.contains(&b',') || is_decimal_comma(c))
        };
        if separates(';') {
            Self::Semicolon
        } else if separates('\t') {
            Self::Tab
        } else if words().count() > 1 && numbers() {
            Self::Space
        } else {
            Self::Comma
        }
    }

    fn parser(self) -> Reader {
        let (delimiter, quoting) = match self {
            Self::Comma => (b',', true),
            Self::Semicolon => (b';', true),
            Self::Tab => (b'\t', false),
            Self::Space => (b' ', false),
        };
        ReaderBuilder::new().delimiter(delimiter).quoting(quoting).build()
    }
}

/// Whether a cell is a number with a decimal comma: `-1,5` or `2,5e3`.
pub(crate) fn is_decimal_comma(cell: &[u8]) -> bool {
    let digit_at = |i: Option<usize>| i.and_then(|i| cell.get(i)).is_some_and(u8::is_ascii_digit);
    let Some(comma) = cell.iter().position(|&byte| byte == b',') else { return false };
    let mut point = cell.to_vec();
    point[comma] = b'.';
    digit_at(comma.checked_sub(1))
        && digit_at(Some(comma + 1))
        && std::str::from_utf8(&point).is_ok_and(is_number)
}

/// A row of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row<'a> {
    /// The line on which it begins, from 1.
    pub line: u64,
    /// What separates its cells.
    pub separator: Separator,
    bytes: &'a [u8],
    ends: &'a [usize],
}

impl<'a> Row<'a> {
    /// The cells.
    pub fn cells(&self) -> impl Iterator<Item = &'a [u8]> {
        let (bytes, ends) = (self.bytes, self.ends);
        let starts = std::iter::once(0).chain(ends.iter().copied());
        starts.zip(ends).map(move |(start, &end)| &bytes[start..end])
    }

    /// The cells as text; `None` if they are not UTF-8.
    pub fn text(&self) -> Option<Vec<&'a str>> {
        self.cells().map(|cell| std::str::from_utf8(cell).ok()).collect()
    }
}

/// Takes the bytes of a table and gives its rows.
#[derive(Clone, Debug)]
pub struct RowReader {
    separator: Option<Separator>,
    /// Whether numbers are written with a decimal comma: it becomes a point.
    decimal_comma: bool,
    /// Present once the separator is known.
    parser: Option<Reader>,
    /// Bytes that came before the separator was known, and how many of them are parsed.
    held: Vec<u8>,
    parsed: usize,
    /// The cells of the row so far, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    filled: [usize; 2],
    within_row: bool,
    row_line: u64,
    line: u64,
    after_return: bool,
}

impl RowReader {
    /// A reader for a table with this separator; with `None`, the first line decides.
    pub fn new(separator: Option<Separator>) -> Self {
        Self {
            separator,
            decimal_comma: false,
            parser: None,
            held: Vec::new(),
            parsed: 0,
            bytes: vec![0; 1 << 10],
            ends: vec![0; 1 << 6],
            filled: [0; 2],
            within_row: false,
            row_line: 1,
            line: 1,
            after_return: false,
        }
    }

    /// A reader for new tables for a model trained on tables of this dialect; the name of the file may decide the rest.
    pub fn for_dialect(dialect: Dialect, path: &Path) -> Self {
        let separator = dialect.delimiter.and_then(Separator::written);
        let reader = Self::new(separator.or_else(|| Separator::of_name(path)));
        reader.with_decimal_comma(dialect.decimal_comma)
    }

    /// The same; with a decimal comma, `1,5` is read as the number 1.5 unless commas separate the cells.
    pub fn with_decimal_comma(self, decimal_comma: bool) -> Self {
        Self { decimal_comma, ..self }
    }

    /// The line (from 1) that is being read.
    pub fn line(&self) -> u64 {
        if self.within_row { self.row_line } else { self.line }
    }

    /// Takes bytes off `input` up to the end of a row; `None`: all are taken, and more are needed.
    pub fn next<'a>(&'a mut self, input: &mut &[u8]) -> Result<Option<Row<'a>>, String> {
        if self.parser.is_none() {
            self.held.extend_from_slice(input);
            *input = &[];
            self.begin(false);
            if self.parser.is_none() {
                return self.check_length(self.held.len()).map(|()| None);
            }
        }
        if self.parse_held()? {
            return Ok(Some(self.row()));
        }
        let (used, complete) = self.parse(input)?;
        *input = &input[used..];
        Ok(if complete { Some(self.row()) } else { None })
    }

    /// At the end of the bytes: returns the remaining rows one by one.
    pub fn finish(&mut self) -> Result<Option<Row<'_>>, String> {
        if self.parser.is_none() {
            self.begin(true);
        }
        if self.parse_held()? {
            return Ok(Some(self.row()));
        }
        // There is no parser for a byte order mark alone.
        while self.within_row && self.parser.is_some() {
            if self.parse_record(&[])?.1 {
                return Ok(Some(self.row()));
            }
        }
        Ok(None)
    }

    /// Creates the parser once the first non-empty line, or the whole input, has arrived.
    fn begin(&mut self, ended: bool) {
        let mark = BYTE_ORDER_MARK.len();
        if !ended && self.held.len() < mark {
            return;
        }
        let text = self.held.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&self.held);
        let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
        let Some(start) = text.iter().position(|byte| !is_end(byte)) else { return };
        let first = &text[start..];
        let end = first.iter().position(is_end);
        let line = &first[..end.unwrap_or(first.len())];
        let begins = &line[..line.len().min(EXCEL_MARK.len())];
        let for_excel = EXCEL_MARK[..begins.len()].eq_ignore_ascii_case(begins);
        if end.is_none() && !ended && (self.separator.is_none() || for_excel) {
            return;
        }
        self.parsed = self.held.len() - text.len();
        let excel = Separator::of_excel_line(line);
        if excel.is_some() {
            self.parsed += start + line.len();
        }
        let before = text[..start].to_vec();
        let separator = (self.separator.or(excel)).unwrap_or_else(|| Separator::of_line(line));
        if excel.is_some() {
            self.count_lines(&before);
            self.after_return = false;
        }
        self.separator = Some(separator);
        self.parser = Some(separator.parser());
    }

    /// Whether what was held has another row.
    fn parse_held(&mut self) -> Result<bool, String> {
        if self.held.is_empty() {
            return Ok(false);
        }
        let held = std::mem::take(&mut self.held);
        let (used, complete) = self.parse(&held[self.parsed..])?;
        self.parsed += used;
        if self.parsed < held.len() {
            self.held = held;
        }
        Ok(complete)
    }

    /// How many bytes were taken, and whether they end a row.
    fn parse(&mut self, input: &[u8]) -> Result<(usize, bool), String> {
        if input.is_empty() {
            return Ok((0, false));
        }
        let mut skipped = 0;
        if !self.within_row {
            skipped = input.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
            self.count_lines(&input[..skipped]);
            if skipped == input.len() {
                return Ok((skipped, false));
            }
            (self.within_row, self.row_line, self.filled) = (true, self.line, [0; 2]);
        }
        let (used, complete) = self.parse_record(&input[skipped..])?;
        Ok((skipped + used, complete))
    }

    /// Continues a row; no input at all is the end of the table.
    fn parse_record(&mut self, input: &[u8]) -> Result<(usize, bool), String> {
        let Some(parser) = &mut self.parser else { return Ok((0, false)) };
        let mut used = 0;
        loop {
            let [bytes, ends] = self.filled;
            let (result, read, written, ended) = parser.read_record(
                &input[used..],
                &mut self.bytes[bytes..],
                &mut self.ends[ends..],
            );
            used += read;
            self.filled = [bytes + written, ends + ended];
            match result {
                ReadRecordResult::OutputFull => {
                    let more = self.bytes.len() * 2;
                    if more > 2 * ROW_LIMIT {
                        return Err(too_long());
                    }
                    self.bytes.resize(more, 0);
                }
                ReadRecordResult::OutputEndsFull => self.ends.resize(self.ends.len() * 2, 0),
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::Record | ReadRecordResult::End => {
                    self.within_row = false;
                    self.count_lines(&input[..used]);
                    return Ok((used, self.filled[1] > 0));
                }
            }
            if used == input.len() && !input.is_empty() {
                self.count_lines(input);
                return self.check_length(self.filled[0]).map(|()| (used, false));
            }
        }
    }

    fn check_length(&self, length: usize) -> Result<(), String> {
        if length <= ROW_LIMIT { Ok(()) } else { Err(too_long()) }
    }

    fn count_lines(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            let line_end = byte == b'\r' || byte == b'\n' && !self.after_return;
            self.line += u64::from(line_end);
            self.after_return = byte == b'\r';
        }
    }

    /// The row that was just completed.
    fn row(&mut self) -> Row<'_> {
        let [bytes, mut count] = self.filled;
        if self.separator == Some(Separator::Space) {
            // Several spaces in a row separate only once.
            let mut last = 0;
            let mut kept = 0;
            for i in 0..count {
                if self.ends[i] > last {
                    (last, self.ends[kept]) = (self.ends[i], self.ends[i]);
                    kept += 1;
                }
            }
            count = kept;
        }
        // There is a separator as soon as there is a row.
        let separator = self.separator.unwrap_or(Separator::Comma);
        if self.decimal_comma && separator != Separator::Comma {
            let mut start = 0;
            for &end in &self.ends[..count] {
                let cell = &mut self.bytes[start..end];
                if is_decimal_comma(cell.trim_ascii()) {
                    cell.iter_mut().filter(|byte| **byte == b',').for_each(|byte| *byte = b'.');
                }
                start = end;
            }
        }
        let (bytes, ends) = (&self.bytes[..bytes], &self.ends[..count]);
        Row { line: self.row_line, separator, bytes, ends }
    }
}

pub(crate) fn too_long() -> String {
    format!("the row is longer than {} MiB", ROW_LIMIT >> 20)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Rows = Vec<(u64, Vec<String>)>;

    fn pieces(separator: Option<Separator>, table: &[u8], size: usize) -> Result<Rows, String> {
        let (mut reader, mut rows) = (RowReader::new(separator), Vec::new());
        let mut keep = |row: Row| {
            let cells = row.cells().map(|cell| String::from_utf8_lossy(cell).into_owned());
            rows.push((row.line, cells.collect()));
        };
        for mut piece in table.chunks(size) {
            while let Some(row) = reader.next(&mut piece)? {
                keep(row);
            }
        }
        while let Some(row) = reader.finish()? {
            keep(row);
        }
        Ok(rows)
    }

    /// Pieces of every size give the same rows.
    #[track_caller]
    fn rows(table: &str) -> Rows {
        let whole = pieces(None, table.as_bytes(), table.len().max(1)).unwrap();
        for size in 1..table.len() {
            assert_eq!(pieces(None, table.as_bytes(), size).unwrap(), whole, "{size}");
        }
        whole
    }

    fn row(line: u64, cells: &[&str]) -> (u64, Vec<String>) {
        (line, cells.iter().map(|cell| cell.to_string()).collect())
    }

    #[test]
    fn line_ends_and_their_numbers() {
        for end in ["\n", "\r\n", "\r"] {
            let table = ["", "a,b", "1,2", "", "", "3,4"].join(end);
            let expected = [row(2, &["a", "b"]), row(3, &["1", "2"]), row(6, &["3", "4"])];
            assert_eq!(rows(&table), expected, "{end:?}");
            assert_eq!(rows(&(table + end)), expected, "{end:?}");
            let quoted = ["\"a", "b\",c", "d,e"].join(end);
            assert_eq!(
                rows(&quoted),
                [row(1, &[&format!("a{end}b"), "c"]), row(3, &["d", "e"])],
                "{end:?}"
            );
        }
    }

    #[test]
    fn separators() {
        let expected = [row(1, &["1", "2"]), row(2, &["3", "4"])];
        for table in ["1,2\n3,4", "1;2\n3;4\n", "1\t2\n3\t4", "1 2\n3  4 \n", " 1 2\n3 4"] {
            assert_eq!(rows(table), expected, "{table:?}");
        }
        assert_eq!(rows("\"a;b\",c\n"), [row(1, &["a;b", "c"])]);
        assert_eq!(rows("\"a,b\";c\n"), [row(1, &["a,b", "c"])]);
        for table in ["1,5;2\n3;4,5", "1,5\t2\n3\t4,5\n", "1,5 2\n3 4,5", "1,5;2\n3;4,5e0"] {
            assert_eq!(rows(table)[0], row(1, &["1,5", "2"]), "{table:?}");
            let mut reader = RowReader::new(None).with_decimal_comma(true);
            let first = reader.next(&mut table.as_bytes()).unwrap().unwrap();
            assert_eq!(first.text().unwrap(), ["1.5", "2"]);
        }
        assert_eq!(rows("1,2 apples; 3\n"), [row(1, &["1", "2 apples; 3"])]);
        for end in ["\n", "\r\n", "\r"] {
            let table = ["\u{feff}sep=;", "two words,c;d", "1,2;3"].join(end);
            let expected = [row(2, &["two words,c", "d"]), row(3, &["1,2", "3"])];
            assert_eq!(rows(&table), expected, "{end:?}");
            let table = [end, "SEP=,", end, "1;2,3"].concat();
            assert_eq!(rows(&table), [row(3, &["1;2", "3"])], "{end:?}");
        }
        let given = pieces(Some(Separator::Tab), b"sep=;\n1\t2", 3).unwrap();
        assert_eq!(given, [row(2, &["1", "2"])]);
        assert_eq!(rows("sep=,,\nsep=|\n"), [row(1, &["sep=", "", ""]), row(2, &["sep=|"])]);
        assert!(rows("sep=;").is_empty() && rows("sep=;\n").is_empty());
        assert_eq!(rows("1, 2, 3\n"), [row(1, &["1", " 2", " 3"])]);
        let mut reader = RowReader::new(None).with_decimal_comma(true);
        let first = reader.next(&mut &b"1,5\n"[..]).unwrap().unwrap();
        assert_eq!(first.text().unwrap(), ["1", "5"], "commas separate");
        assert_eq!(rows("two words\n1 2\n"), [row(1, &["two words"]), row(2, &["1 2"])]);
        assert_eq!(rows("\u{feff}\"a \"\"b\"\"\",\n"), [row(1, &["a \"b\"", ""])]);
        assert!(rows("\u{feff}").is_empty() && rows("\u{feff}\r\n\n").is_empty());
        assert!(rows("").is_empty() && rows("\n\r\n").is_empty());
        let tabs = pieces(Some(Separator::Tab), b"\"a,b\tc", 2).unwrap();
        assert_eq!(tabs, [row(1, &["\"a,b", "c"])], "tabs do not quote");
    }

    #[test]
    fn many_and_long_cells() {
        let cells: Vec<String> = (0..500).map(|i| i.to_string().repeat(9)).collect();
        let table = format!("{}\n{}", cells.join(","), "x".repeat(5000));
        let read = pieces(None, table.as_bytes(), 97).unwrap();
        assert_eq!(read, [(1, cells), row(2, &[&"x".repeat(5000)])]);
    }

    #[test]
    fn a_row_without_end_is_refused() {
        let zeros = vec![0; 1 << 20];
        for start in ["0,x\n0,\"", "no line end"] {
            let mut reader = RowReader::new(None);
            let mut input = start.as_bytes();
            while reader.next(&mut input).unwrap().is_some() {}
            let error = (0..(2 * ROW_LIMIT) >> 20).find_map(|_| reader.next(&mut &zeros[..]).err());
            assert_eq!(error.unwrap(), "the row is longer than 64 MiB");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn pieces_make_no_difference(table in "[a1,;\\t\"\\r\\n ]{0,40}", size in 1usize..41) {
            let whole = pieces(None, table.as_bytes(), 41).unwrap();
            prop_assert_eq!(pieces(None, table.as_bytes(), size).unwrap(), whole);
        }
    }
}
