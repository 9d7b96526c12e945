//! The columns of a table: whether its first row holds their names, and which of them the model reads.

use std::collections::{HashMap, VecDeque};
use std::iter;

use serde::{Deserialize, Serialize};

/// A column of a table: its name, if there is a header, and its place (from 0).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Name in the header.
    pub name: Option<String>,
    /// Place, from 0.
    pub index: usize,
}

/// Usual names of a label's column.
pub const LABEL_NAMES: [&str; 4] = ["label", "class", "target", "y"];
/// Usual names of a text's column.
pub const TEXT_NAMES: [&str; 6] = ["text", "sentence", "review", "document", "sequence", "content"];

/// Whether a cell holds a number.
pub fn is_number(cell: &str) -> bool {
    cell.trim().parse::<f32>().is_ok()
}

/// Whether the first row of a table holds the names of its columns.
///
/// It does if it has one of the wanted `names`; or names a label, the rest being numbers or not (pandas numbers its
/// columns), unless the rows `below` have that name in the same place; or numbers its columns, and the rows below do
/// not; or has no number at all, and either a usual name or rows below it that hold `numbers`.
pub fn is_header(first: &[&str], below: &[Vec<&str>], names: &[&str], numbers: bool) -> bool {
    let usual = |names: &[&str], cell: &str| names.iter().any(|n| n.eq_ignore_ascii_case(cell));
    let cells = || first.iter().map(|cell| cell.trim());
    if cells().any(|cell| !cell.is_empty() && !is_number(cell) && names.contains(&cell)) {
        return true;
    }
    let repeated = |i: usize, cell: &str| {
        below.iter().any(|row| row.get(i).is_some_and(|below| below.trim() == cell))
    };
    // A class may be called "y", for yes: that name alone needs rows that do not have it.
    let names_label = |(i, cell): (usize, &str)| {
        let sure = !cell.eq_ignore_ascii_case("y") || !below.is_empty();
        sure && usual(&LABEL_NAMES, cell) && !repeated(i, cell)
    };
    if cells().enumerate().any(names_label) {
        return true;
    }
    if numbers_columns(first) && !below.iter().any(|row| numbers_columns(row)) {
        return true;
    }
    let no_numbers = !first.iter().any(|cell| is_number(cell));
    no_numbers && (cells().any(|c| usual(&LABEL_NAMES, c) || usual(&TEXT_NAMES, c)) || numbers)
}

/// Numbers that have to count the columns before they are taken for their names: few may be data.
const COUNTED: usize = 10;

/// Whether a row counts its cells from 0 or from 1, as pandas does for columns without names; the column that counts
/// the rows has none.
fn numbers_columns(row: &[&str]) -> bool {
    let row = without_corner(row);
    row.len() >= COUNTED && is_count(row)
}

/// Whether a row, of which nothing else is known, has one name and counts its other cells: `label,0,1,2`, or any name
/// above many columns. Without a name, numbers that count may be an example; an example does not begin with an empty
/// cell.
fn names_and_counts(row: &[&str]) -> bool {
    let cells = without_corner(row);
    let (numbers, names): (Vec<&str>, Vec<&str>) =
        cells.iter().map(|cell| cell.trim()).partition(|cell| is_number(cell));
    let many = numbers.len() >= COUNTED;
    let named = match names[..] {
        [] => many && cells.len() < row.len(),
        [name] => {
            many && !name.is_empty() || LABEL_NAMES.iter().any(|n| n.eq_ignore_ascii_case(name))
        }
        _ => false,
    };
    named && is_count(&numbers)
}

/// A row without the empty cell above the column that counts the rows.
fn without_corner<'a, 'b>(row: &'a [&'b str]) -> &'a [&'b str] {
    if row.first().is_some_and(|cell| cell.trim().is_empty()) { &row[1..] } else { row }
}

/// Whether cells count from 0 or from 1.
fn is_count(cells: &[&str]) -> bool {
    let counts_from = |first: usize| {
        cells.iter().zip(first..).all(|(cell, number)| cell.trim().parse::<usize>() == Ok(number))
    };
    counts_from(0) || counts_from(1)
}

/// Quotes found text in a message: only its beginning, if it is long.
pub fn quoted(found: &str) -> String {
    const MOST: usize = 40;
    match found.char_indices().nth(MOST) {
        Some((end, _)) => format!("{:?}...", &found[..end]),
        None => format!("{found:?}"),
    }
}

/// Which cells of a table hold the numbers that a model reads, as in the training.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableShape {
    /// Numbers per step.
    pub channels: usize,
    /// Whether a row is a sequence (else a step).
    pub by_row: bool,
    /// The columns of the training; none if it had no tables.
    pub columns: Vec<Column>,
    /// How its tables were written.
    pub dialect: Dialect,
    /// The classes that the model knows: a first row labelled with one of them is not a header.
    pub classes: Vec<String>,
}

/// How tables are written, where that is not for their first line to say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Dialect {
    /// What separates cells, if the training was told.
    pub delimiter: Option<char>,
    /// Whether numbers are written with a decimal comma.
    pub decimal_comma: bool,
}

impl Dialect {
    /// Whether the first line of a table says everything.
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

/// The cells of a row that the model reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadCells {
    /// All of them.
    All,
    /// Those at these places, of rows that have at most `width` cells.
    At {
        /// The places, in the order of the training.
        places: Vec<usize>,
        /// Cells of a whole row.
        width: usize,
    },
}

impl TableShape {
    /// One step per row, the columns without names.
    pub fn steps(channels: usize) -> Self {
        let (columns, classes) = (Vec::new(), Vec::new());
        Self { channels, by_row: false, columns, dialect: Dialect::default(), classes }
    }

    /// Whether the first row of a table is a header. The rows below it are not known yet, but they hold numbers.
    ///
    /// It is if it has the names of the training. Else it is data if its label is a class of the model, or if the
    /// training knew no names and there is a number in it, unless the numbers count the columns below a name.
    pub fn has_header(&self, first: &[&str]) -> bool {
        let names = self.names();
        if !names.is_empty() && find_names(first, &names).is_some() {
            return true;
        }
        if self.has_class(first) {
            return false;
        }
        if !names.is_empty() {
            return is_header(first, &[], &names, true);
        }
        !first.iter().any(|cell| is_number(cell)) || names_and_counts(first)
    }

    /// Whether a cell that the training did not read holds a class of the model: the label of an example.
    fn has_class(&self, first: &[&str]) -> bool {
        let is_read = |place: usize| self.columns.iter().any(|column| column.index == place);
        let is_class = |cell: &str| self.classes.iter().any(|class| class == cell.trim());
        let mut cells = first.iter().enumerate();
        self.by_row
            && !self.columns.is_empty()
            && cells.any(|(place, cell)| !is_read(place) && is_class(cell))
    }

    /// The names of the columns, if the training knew all of them.
    fn names(&self) -> Vec<&str> {
        let names = self.columns.iter().map(|column| column.name.as_deref());
        names.collect::<Option<_>>().unwrap_or_default()
    }

    /// The places by a header: the columns with the names of the training. `None`: the training knew no names.
    pub fn places_by_name(&self, header: &[&str]) -> Result<Option<ReadCells>, String> {
        let names = self.names();
        if names.is_empty() {
            return Ok(None);
        }
        let width = header.len();
        match find_names(header, &names) {
            Some(places) => Ok(Some(ReadCells::At { places, width })),
            None => {
                Err(format!("expected the columns {}, found {}", listed(&names), listed(header)))
            }
        }
    }

    /// The places by the cells of the first row: just the columns of the training, or the whole table as it was there,
    /// with its label.
    pub fn places_by_row(&self, first: &[&str]) -> Result<ReadCells, String> {
        let (width, read) = (first.len(), self.columns.len());
        if self.columns.is_empty() {
            return match self.channels {
                _ if self.by_row => Ok(ReadCells::All),
                channels if channels == width => {
                    Ok(ReadCells::At { places: (0..channels).collect(), width })
                }
                1 => Err(format!("expected one number per row, found {width} cells")),
                channels => Err(format!("expected {channels} numbers per row, found {width}")),
            };
        }
        let last = self.columns.iter().map(|column| column.index).max().unwrap_or(0);
        let whole = read + usize::from(self.by_row);
        let as_trained = |width| {
            let places = self.columns.iter().map(|column| column.index).collect();
            Ok(ReadCells::At { places, width })
        };
        // The place that the training did not read: the label.
        let label = (0..read).find(|place| self.columns.iter().all(|c| c.index != *place));
        let has_label = |label: usize| first.get(label).is_some_and(|cell| !is_number(cell));
        match width {
            _ if self.by_row && last <= read && width <= whole && label.is_some_and(has_label) => {
                return as_trained(whole);
            }
            _ if width == read => return Ok(ReadCells::At { places: (0..read).collect(), width }),
            _ if self.by_row && last <= read && width == whole => return as_trained(whole),
            // The training left other columns than a label out: the table has to reach to the last one that it read.
            _ if last >= whole && width > last => return as_trained(width),
            _ if last >= whole => {
                let whole = last + 1;
                return Err(format!(
                    "expected cells: {read}, or at least {whole} as in the training; found {width}"
                ));
            }
            _ => {}
        }
        let or = if self.by_row { format!(", or {whole} with a label") } else { String::new() };
        Err(format!(
            "expected {read} cells as in the training{or}, but found {width}; add a header, or fill shorter rows up with \
             empty cells"
        ))
    }
}

/// The places of columns with these names, upper and lower case alike when nothing fits exactly; `None` if one is
/// missing. The first name that occurs twice means the first such column, the second one the next.
pub fn find_names(header: &[&str], names: &[&str]) -> Option<Vec<usize>> {
    let mut exact: HashMap<&str, VecDeque<usize>> = HashMap::new();
    for (i, cell) in header.iter().enumerate() {
        exact.entry(cell.trim()).or_default().push_back(i);
    }
    let mut free = vec![true; header.len()];
    let mut places = Vec::with_capacity(names.len());
    for name in names {
        let alike = |i: &usize| free[*i] && header[*i].trim().eq_ignore_ascii_case(name);
        let same = exact.get_mut(*name);
        let place = same.and_then(|places| iter::from_fn(|| places.pop_front()).find(|&i| free[i]));
        let place = place.or_else(|| (0..header.len()).find(alike))?;
        free[place] = false;
        places.push(place);
    }
    Some(places)
}

/// The first of many names.
pub fn listed(names: &[&str]) -> String {
    const SHOWN: usize = 12;
    let more =
        if names.len() > SHOWN { format!(", ... ({} in all)", names.len()) } else { String::new() };
    let first: Vec<&str> = names.iter().take(SHOWN).map(|name| name.trim()).collect();
    format!("{}{more}", first.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(first: &[&str], below: &[&[&str]], numbers: bool) -> bool {
        let below: Vec<Vec<&str>> = below.iter().map(|row| row.to_vec()).collect();
        is_header(first, &below, &["mine"], numbers)
    }

    #[test]
    fn first_rows() {
        assert!(header(&["a", "b"], &[], true) && !header(&["a", "b"], &[], false));
        assert!(header(&["label", "0", "1"], &[&["cat", "3", "4"]], true));
        assert!(header(&["", "Label", "0"], &[], true));
        assert!(!header(&["cat", "3", "4"], &[], true));
        assert!(header(&["mine", "3"], &[], false) && !header(&["", "3"], &[], true));
        assert!(!header(&["y", "3", "4"], &[&["n", "1", "2"], &["y", "5", "6"]], true));
        assert!(header(&["y", "3", "4"], &[&["n", "1", "2"], &["m", "5", "6"]], true));
        assert!(!header(&["y", "3", "4"], &[], true), "a class, in a stream");
        assert!(header(&["review", "x"], &[], false) && !header(&["1", "2"], &[], true));
    }

    fn shape(by_row: bool, columns: &[(Option<&str>, usize)], channels: usize) -> TableShape {
        let column = |(name, index): &(Option<&str>, usize)| Column {
            name: name.map(str::to_owned),
            index: *index,
        };
        let columns = columns.iter().map(column).collect();
        TableShape { by_row, columns, ..TableShape::steps(channels) }
    }

    #[test]
    fn places_by_name_and_by_row() {
        let named = shape(true, &[(Some("a"), 1), (Some("b"), 2)], 1);
        let at = |places: &[usize], width| ReadCells::At { places: places.to_vec(), width };
        assert_eq!(named.places_by_name(&["b", "z", "a"]).unwrap(), Some(at(&[2, 0], 3)));
        let error = named.places_by_name(&["b", "c"]).unwrap_err();
        assert_eq!(error, "expected the columns a, b, found b, c");
        assert_eq!(named.places_by_row(&["1", "2"]).unwrap(), at(&[0, 1], 2));
        assert_eq!(named.places_by_row(&["9", "1", "2"]).unwrap(), at(&[1, 2], 3));
        assert_eq!(named.places_by_row(&["cat"]).unwrap(), at(&[1, 2], 3), "a short row, labelled");
        assert!(
            named
                .places_by_row(&["1"])
                .unwrap_err()
                .contains("2 cells as in the training, or 3 with a label")
        );
        assert!(named.places_by_row(&["1", "2", "3", "4"]).unwrap_err().contains("found 4"));

        let steps = shape(false, &[(None, 0), (None, 1)], 2);
        assert_eq!(steps.places_by_row(&["1", "2"]).unwrap(), at(&[0, 1], 2));
        assert!(steps.places_by_row(&["1", "2", "3"]).is_err());
        assert_eq!(steps.places_by_name(&["a", "b"]).unwrap(), None);
        let chosen = shape(false, &[(None, 3), (None, 1)], 2);
        assert_eq!(chosen.places_by_row(&["1", "2", "3", "4"]).unwrap(), at(&[3, 1], 4));
        assert!(chosen.places_by_row(&["1", "2", "3"]).unwrap_err().contains("at least 4"));
        assert_eq!(shape(true, &[], 1).places_by_row(&["1"; 7]).unwrap(), ReadCells::All);
        assert!(shape(false, &[], 2).places_by_row(&["1"; 7]).is_err());
    }

    #[test]
    fn names_that_are_numbers_are_a_header() {
        let pandas = shape(true, &[(Some("0"), 1), (Some("1"), 2)], 1);
        assert!(pandas.has_header(&["0", "1"]) && pandas.has_header(&["label", "0", "1"]));
        assert!(!pandas.has_header(&["0.5", "1"]));
    }

    /// As pandas writes a table of numbers, with an index and without.
    #[test]
    fn numbered_columns_are_a_header() {
        let numbers: Vec<String> = (0..11).map(|i| i.to_string()).collect();
        let first: Vec<&str> = numbers.iter().map(String::as_str).collect();
        let data = ["2", "0.5", "1", "1", "1", "1", "1", "1", "1", "1", "1"];
        assert!(header(&first, &[&data], true) && header(&first[1..], &[&data[1..]], true));
        assert!(header(&[&[""], &first[..]].concat(), &[&data], true));
        assert!(!header(&first, &[&data, &first], true), "a ramp among the data");
        assert!(!header(&first[..9], &[&data[..9]], true), "too short to tell");
        assert!(!header(&data, &[&first], true));
    }

    /// Of a training without a header, whose label was in the first column.
    fn unnamed(steps: usize, classes: &[&str]) -> TableShape {
        let columns: Vec<_> = (1..=steps).map(|index| (None, index)).collect();
        let classes = classes.iter().map(|class| (*class).to_owned()).collect();
        TableShape { classes, ..shape(true, &columns, 1) }
    }

    #[test]
    fn an_example_is_not_a_header() {
        let classes = ["target", "class", "label", "y"];
        for name in classes {
            let known = unnamed(3, &classes);
            assert!(!known.has_header(&[name, "0.5", "1", "2"]), "{name}");
            assert!(!known.has_header(&[name, "0", "1", "2"]), "{name}: a ramp");
            assert!(!known.has_header(&[name, "0.5"]), "{name}: a short row");
            assert!(!known.has_header(&[name, "", "", ""]), "{name}: nothing is silently dropped");
            let unknown = unnamed(3, &["cat"]);
            assert!(!unknown.has_header(&[name, "0.5", "1", "2"]), "{name}: of no class");
            assert!(unknown.has_header(&[name, "0", "1", "2"]), "{name}: above columns");
        }
        let names = unnamed(3, &["cat"]);
        assert!(names.has_header(&["kind", "a", "b", "c"]) && names.has_header(&["a", "b", "c"]));
        let labelled_last =
            TableShape { classes: vec!["y".into()], ..shape(true, &[(None, 0), (None, 1)], 1) };
        assert!(!labelled_last.has_header(&["0", "1", "y"]));
    }

    #[test]
    fn a_ramp_is_not_a_header() {
        let numbers: Vec<String> = (0..11).map(|i| i.to_string()).collect();
        let ramp: Vec<&str> = numbers.iter().map(String::as_str).collect();
        let shape = unnamed(10, &["cat", "dog"]);
        assert!(!shape.has_header(&ramp[..10]), "without a label");
        assert!(!shape.has_header(&ramp), "with the label 0");
        assert!(!TableShape::steps(10).has_header(&ramp[..10]));
        assert!(!shape.has_header(&[&["cat"], &ramp[..10]].concat()), "with a known label");
        assert!(shape.has_header(&[&["kind"], &ramp[..10]].concat()), "as pandas writes it");
        assert!(shape.has_header(&[&[""], &ramp[..10]].concat()), "with an index");
        assert!(shape.has_header(&[&["", "label"], &ramp[..10]].concat()), "with both");
    }

    #[test]
    fn names_that_occur_twice() {
        let pair = shape(true, &[(Some("a"), 1), (Some("a"), 2)], 1);
        let places = ReadCells::At { places: vec![0, 2], width: 3 };
        assert_eq!(pair.places_by_name(&["a", "b", "A"]).unwrap(), Some(places));
        assert!(pair.places_by_name(&["a", "b"]).is_err());
        assert_eq!(find_names(&["a", "b", "a"], &["b", "a"]), Some(vec![1, 0]));
    }

    #[test]
    fn messages_quote_little() {
        assert_eq!(quoted("a\tb"), r#""a\tb""#);
        assert_eq!(quoted(&"é".repeat(1000)), format!("{:?}...", "é".repeat(40)));
    }
}
