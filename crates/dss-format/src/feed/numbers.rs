//! Numbers in the rows of a table while they arrive.

use super::Fault;
use crate::encoder::{ReadCells, Scaling, TableShape, quoted};

/// Numbers in the rows of a table: a row is a step, or a piece of a sequence.
#[derive(Clone, Debug)]
pub struct NumberFeed {
    shape: TableShape,
    scaling: Option<Scaling>,
    /// Whether the first row was a header; `None` before it.
    header: Option<bool>,
    /// Which cells are read, once a row has told.
    places: Option<ReadCells>,
    /// Numbers so far.
    count: usize,
}

impl NumberFeed {
    /// `Err` says why the description is invalid.
    pub fn new(shape: TableShape, scaling: Option<Scaling>) -> Result<Self, String> {
        let channels = shape.channels;
        let wrong = |s: &Scaling| s.mean.len() != channels || s.sd.len() != channels;
        if channels == 0 || scaling.as_ref().is_some_and(wrong) {
            return Err("the model's scaling of numbers is damaged; export the model again".into());
        }
        Ok(Self { shape, scaling, header: None, places: None, count: 0 })
    }

    /// Which cells of a table hold the numbers.
    pub fn shape(&self) -> &TableShape {
        &self.shape
    }

    /// Numbers of a position.
    pub fn channels(&self) -> usize {
        self.shape.channels
    }

    /// The model's input of the next number, in the order of the channels.
    pub fn scaled(&mut self, x: f32) -> f32 {
        let channel = self.count % self.shape.channels;
        self.count += 1;
        match &self.scaling {
            Some(Scaling { mean, sd }) => (x - mean[channel]) / sd[channel],
            None => x,
        }
    }

    /// How the rows are read, in a few words; `None` before the first one.
    pub fn description(&self) -> Option<String> {
        let header = if self.header? { "a header" } else { "no header" };
        let columns = match self.places.as_ref()? {
            ReadCells::All => "all columns".to_owned(),
            ReadCells::At { width: 1, .. } => "its only column".to_owned(),
            ReadCells::At { places, width } if places.iter().copied().eq(0..*width) => {
                format!("all {width} columns")
            }
            ReadCells::At { places, width } => format!("columns {} of {width}", numbered(places)),
        };
        // As many cells as the training read: a row that is one step shorter and labelled looks the same.
        let unlabelled = self.header == Some(false)
            && self.shape.by_row
            && matches!(&self.places, Some(ReadCells::At { width, .. }) if *width == self.shape.columns.len());
        let label = if unlabelled { ", read without a label" } else { "" };
        Some(format!("{header}, numbers from {columns}{label}"))
    }

    /// Takes the next row of a table and adds its numbers, `[positions, channels]`, to `values`; a header adds none.
    pub fn row(&mut self, line: u64, cells: &[&str], values: &mut Vec<f32>) -> Result<(), Fault> {
        let fault = |what| Fault::line(line, what);
        if self.header.is_none() {
            let header = self.shape.has_header(cells);
            self.header = Some(header);
            if header {
                self.places = self.shape.places_by_name(cells).map_err(fault)?;
                return Ok(());
            }
        }
        let places = match self.places.take() {
            Some(places) => places,
            None => self.shape.places_by_row(cells).map_err(fault)?,
        };
        let all = (0..cells.len()).collect();
        let (read, width) = match &places {
            ReadCells::All => (&all, cells.len()),
            ReadCells::At { places, width } => (places, *width),
        };
        let filled = cells.iter().rposition(|cell| !cell.trim().is_empty()).map_or(0, |i| i + 1);
        if filled > width {
            return Err(fault(format!("expected {width} cells, found {filled}")));
        }
        // Empty cells at the end make a sequence shorter; a step has to be whole.
        let used = match self.shape.by_row {
            true => read.iter().rposition(|&place| place < filled).map_or(0, |i| i + 1),
            false => read.len(),
        };
        if used == 0 {
            return Err(fault("no numbers in this row".into()));
        }
        for &place in &read[..used] {
            let number = number(cells.get(place).copied().unwrap_or_default());
            let number = number.map_err(|what| Fault { line, column: Some(place + 1), what })?;
            values.push(self.scaled(number));
        }
        self.places = Some(places);
        Ok(())
    }
}

/// Places counted from 1, a range as `2 to 9`; of a long list the first ones.
fn numbered(places: &[usize]) -> String {
    const MOST: usize = 12;
    match places {
        [first, .., last] if places.iter().copied().eq(*first..=*last) => {
            format!("{} to {}", first + 1, last + 1)
        }
        _ => {
            let shown = places.iter().take(MOST).map(|place| (place + 1).to_string());
            let more = if places.len() > MOST { ", ..." } else { "" };
            shown.collect::<Vec<_>>().join(", ") + more
        }
    }
}

/// The number in a cell, which must be finite.
pub fn number(cell: &str) -> Result<f32, String> {
    match cell.trim().parse::<f32>() {
        Ok(number) if number.is_finite() => Ok(number),
        Ok(number) => Err(format!("is {number}; every number must be finite in f32")),
        Err(_) => Err(format!("expected a number, found {}", quoted(cell))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoder::Column;

    fn numbers(feed: &NumberFeed, rows: &[&[&str]]) -> Result<Vec<f32>, String> {
        let (mut feed, mut found) = (feed.clone(), Vec::new());
        for (row, line) in rows.iter().zip(1..) {
            feed.row(line, row, &mut found).map_err(|fault| fault.to_string())?;
        }
        Ok(found)
    }

    #[test]
    fn numbers_in_rows() {
        let shape = |channels, by_row| TableShape { by_row, ..TableShape::steps(channels) };
        let scaling = Scaling { mean: vec![1.0, 0.0], sd: vec![1.0, 2.0] };
        let two = NumberFeed::new(shape(2, false), Some(scaling.clone())).unwrap();
        let expected = [0.0, 1.0, 2.0, 2.0];
        assert_eq!(numbers(&two, &[&["a", "b"], &["1", "2"], &["3", " 4"]]).unwrap(), expected);
        assert_eq!(numbers(&two, &[&["1", "2"], &["3", "4", ""]]).unwrap(), expected);
        assert!(numbers(&two, &[&["1", "2"], &["3"]]).unwrap_err().contains("line 2, column 2"));
        let error = numbers(&two, &[&["1", "2"], &["3", "nan"]]).unwrap_err();
        assert!(error.contains("line 2, column 2: is NaN"), "{error}");
        assert!(numbers(&two, &[&["1", "2", "3"]]).unwrap_err().contains("2 numbers per row"));
        let rows = NumberFeed::new(shape(1, true), None).unwrap();
        assert_eq!(numbers(&rows, &[&["1", "2", "3", ""]]).unwrap(), [1.0, 2.0, 3.0]);
        assert!(NumberFeed::new(shape(1, true), Some(scaling)).is_err());
        assert!(NumberFeed::new(shape(0, true), None).is_err());
    }

    #[test]
    fn labels_are_not_read() {
        let column = |index| Column { name: None, index };
        let columns = vec![column(1), column(2)];
        let shape = TableShape { by_row: true, columns, ..TableShape::steps(1) };
        let feed = NumberFeed::new(shape, None).unwrap();
        let values = [5.0, 6.0, 7.0];
        assert_eq!(numbers(&feed, &[&["up", "5"], &["up", "6", "7"]]).unwrap(), values);
        assert_eq!(numbers(&feed, &[&["1", "5", ""], &["0", "6", "7"]]).unwrap(), values);
        assert!(numbers(&feed, &[&["1", "5", "6", "7"]]).unwrap_err().contains("found 4"));

        let described = |first: &[&str]| {
            let mut feed = feed.clone();
            feed.row(1, first, &mut Vec::new()).unwrap();
            feed.description().unwrap()
        };
        let short = described(&["1", "5"]);
        assert_eq!(short, "no header, numbers from all 2 columns, read without a label");
        assert_eq!(described(&["up", "5"]), "no header, numbers from columns 2 to 3 of 3");
    }
}
