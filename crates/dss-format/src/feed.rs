//! Input as it arrives: what an [`Encoder`] makes of a whole file, made from bytes, rows or samples as they come.

use std::collections::HashMap;
use std::fmt;

use crate::encoder::{
    Alphabet, CharacterIds, EOS, Encoder, Form, ReadCells, SPECIALS, Scaling, SpeechEncoder,
    TableShape, UNK, Unit, Vocabulary, listops, quoted,
};

/// What some editors write at the beginning of UTF-8 text; it is not part of it.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// What an encoder reads position by position.
#[derive(Clone, Debug)]
pub enum Feed {
    /// Sound of one channel: x' = (x - mean) / divisor, x from -1 to 1.
    Sound(SoundFeed),
    /// Numbers, in the rows of a table.
    Numbers(NumberFeed),
    /// Characters, bytes or words.
    Tokens(TokenFeed),
}

/// Where input cannot be read, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Line, from 1.
    pub line: u64,
    /// Column, from 1, in a table.
    pub column: Option<usize>,
    /// The fault.
    pub what: String,
}

impl Fault {
    fn line(line: u64, what: impl Into<String>) -> Self {
        Self { line, column: None, what: what.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, what } = self;
        match column {
            Some(column) => write!(f, "line {line}, column {column}: {what}"),
            None => write!(f, "line {line}: {what}"),
        }
    }
}

impl std::error::Error for Fault {}

impl Encoder {
    /// How to read input as it arrives; `Err` says why it has to be there as a whole.
    pub fn feed(&self) -> Result<Feed, String> {
        Ok(match self {
            Self::Speech(encoder) => Feed::Sound(SoundFeed::new(encoder)?),
            Self::ValueSteps { channels, .. } => {
                Feed::Numbers(NumberFeed::new(TableShape::steps(*channels), None)?)
            }
            Self::TokenRows { vocab, .. } => {
                Feed::Tokens(TokenFeed::new(Ids::Number(*vocab), None))
            }
            Self::Listops(encoder) => {
                let symbols = encoder.vocabulary.symbols().iter().cloned().zip(0..).collect();
                Feed::Tokens(TokenFeed::new(Ids::Word(symbols), Some(EOS)))
            }
            Self::Files(encoder) => match (&encoder.form, encoder.shape()) {
                (Form::Numbers { scaling, .. }, Some(shape)) => {
                    Feed::Numbers(NumberFeed::new(shape, scaling.clone())?)
                }
                (Form::Characters(vocabulary), _) => Feed::Tokens(document(vocabulary)),
                _ => Feed::Tokens(document_bytes()),
            },
            Self::Text(encoder) => Feed::Tokens(match &encoder.alphabet {
                Alphabet::Characters(vocabulary) => document(vocabulary),
                Alphabet::Bytes => document_bytes(),
            }),
            Self::Lm(encoder) => Feed::Tokens(match encoder.unit {
                Unit::Byte => TokenFeed::new(Ids::Byte(0), None),
                Unit::Char => {
                    let ids = CharacterIds::of_characters(&encoder.symbols);
                    TokenFeed::new(Ids::Character { ids, unknown: None }, None)
                }
            }),
            Self::TextPairs(_) => return Err("this model compares two texts".into()),
            Self::Forecast(_) => {
                return Err("this model reads the last rows of a table, relative to its end".into());
            }
            Self::Images(_) | Self::Pathfinder(_) | Self::Grey(_) => {
                return Err("this model reads pictures, which have no order in time".into());
            }
        })
    }
}

/// A text of known characters, without the line ends after it.
fn document(vocabulary: &Vocabulary) -> TokenFeed {
    let ids = CharacterIds::of_vocabulary(vocabulary);
    let feed = TokenFeed::new(Ids::Character { ids, unknown: Some(UNK) }, Some(EOS));
    TokenFeed { start: Some(Vec::new()), held: Some(Vec::new()), ..feed }
}

/// The bytes of a text, without the line ends after it.
fn document_bytes() -> TokenFeed {
    let feed = TokenFeed::new(Ids::Byte(SPECIALS.len() as u32), Some(EOS));
    TokenFeed { start: Some(Vec::new()), held: Some(Vec::new()), ..feed }
}

/// Sound of one channel.
#[derive(Clone, Debug, PartialEq)]
pub struct SoundFeed {
    /// Positions per second.
    pub rate: f64,
    mean: f32,
    divisor: f32,
}

impl SoundFeed {
    /// `Err` says why the model does not read samples.
    pub fn new(encoder: &SpeechEncoder) -> Result<Self, String> {
        let rate =
            encoder.sample_rate().ok_or("this model reads features (MFCC) of whole clips")?;
        match encoder.is_valid() {
            true => Ok(Self { rate, mean: encoder.mean[0], divisor: encoder.divisor[0] }),
            false => Err("the model's scaling of sound is damaged; export the model again".into()),
        }
    }

    /// The model's input of a sample from -1 to 1.
    pub fn value(&self, sample: f32) -> f32 {
        (sample - self.mean) / self.divisor
    }
}

/// Tokens, read from text.
#[derive(Clone, Debug)]
pub struct TokenFeed {
    ids: Ids,
    /// The token that follows the last one, where the training had it.
    pub end: Option<u32>,
    /// The first bytes of a text, until they are more than a byte order mark, which is left out; `None` after that.
    start: Option<Vec<u8>>,
    /// Bytes that are not a whole character, word or row yet.
    pending: Vec<u8>,
    /// Line ends that are left out if nothing follows them; `None`: they are never left out.
    held: Option<Vec<u8>>,
    line: u64,
}

#[derive(Clone, Debug)]
enum Ids {
    Character {
        ids: CharacterIds,
        unknown: Option<u32>,
    },
    /// Each byte is so much above its value.
    Byte(u32),
    /// The symbols of ListOps, between white space.
    Word(HashMap<String, u32>),
    /// Numbers below this, between white space or commas.
    Number(usize),
}

impl TokenFeed {
    fn new(ids: Ids, end: Option<u32>) -> Self {
        Self { ids, end, start: None, pending: Vec::new(), held: None, line: 1 }
    }

    /// Takes more text and adds its tokens to `tokens`.
    pub fn push(&mut self, text: &[u8], tokens: &mut Vec<u32>) -> Result<(), Fault> {
        if let Some(start) = &mut self.start {
            start.extend_from_slice(text);
            if start.len() < BYTE_ORDER_MARK.len() && BYTE_ORDER_MARK.starts_with(start) {
                return Ok(());
            }
            let text = self.start.take().unwrap_or_default();
            return self.push(text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&text), tokens);
        }
        let Some(held) = &mut self.held else { return self.read(text, tokens) };
        let end = text.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map(|last| last + 1);
        let Some(end) = end else {
            held.extend_from_slice(text);
            return Ok(());
        };
        let line_ends = std::mem::replace(held, text[end..].to_vec());
        self.read(&line_ends, tokens)?;
        self.read(&text[..end], tokens)
    }

    fn read(&mut self, text: &[u8], tokens: &mut Vec<u32>) -> Result<(), Fault> {
        match &self.ids {
            Ids::Byte(above) => {
                tokens.extend(text.iter().map(|&byte| u32::from(byte) + above));
                Ok(())
            }
            Ids::Character { .. } => {
                self.pending.extend_from_slice(text);
                let whole = match std::str::from_utf8(&self.pending) {
                    Ok(text) => text.len(),
                    Err(error) if error.error_len().is_none() => error.valid_up_to(),
                    Err(error) => {
                        let before = &self.pending[..error.valid_up_to()];
                        let line = self.line + line_ends(before);
                        return Err(Fault::line(line, "not UTF-8 text; convert the text to UTF-8"));
                    }
                };
                let rest = self.pending.split_off(whole);
                let whole = std::mem::replace(&mut self.pending, rest);
                let text = std::str::from_utf8(&whole).expect("just checked");
                text.chars().try_for_each(|c| self.character(c, tokens))
            }
            Ids::Word(_) => {
                for piece in text.split_inclusive(|&byte| byte == b'\n') {
                    self.pending.extend_from_slice(piece);
                    if piece.ends_with(b"\n") {
                        self.row(tokens)?;
                        self.line += 1;
                    }
                }
                // Only a tab makes a row of a table; the last word may not be whole.
                let space = self.pending.iter().rposition(|&byte| byte == b' ');
                if let Some(space) = space.filter(|_| !self.pending.contains(&b'\t')) {
                    let rest = self.pending.split_off(space);
                    self.row(tokens)?;
                    self.pending = rest;
                }
                Ok(())
            }
            Ids::Number(_) => {
                for &byte in text {
                    if byte.is_ascii_whitespace() || byte == b',' {
                        self.number(tokens)?;
                    } else {
                        self.pending.push(byte);
                    }
                    self.line += u64::from(byte == b'\n');
                }
                Ok(())
            }
        }
    }

    /// Takes what is left at the end of the text.
    pub fn finish(&mut self, tokens: &mut Vec<u32>) -> Result<(), Fault> {
        if let Some(start) = self.start.take() {
            self.push(&start, tokens)?;
        }
        match &self.ids {
            Ids::Word(_) => self.row(tokens),
            Ids::Number(_) => self.number(tokens),
            _ if self.pending.is_empty() => Ok(()),
            _ => Err(Fault::line(self.line, "the text ends within a character")),
        }
    }

    fn character(&mut self, c: char, tokens: &mut Vec<u32>) -> Result<(), Fault> {
        let Ids::Character { ids, unknown } = &self.ids else { unreachable!("a text") };
        let line = self.line;
        self.line += u64::from(c == '\n');
        tokens.push(ids.id(c).or(*unknown).ok_or_else(|| {
            let what = format!("the model was not trained on the character {c:?}; leave it out");
            Fault::line(line, what)
        })?);
        Ok(())
    }

    /// The expression in a row of ListOps, or in a part of one.
    fn row(&mut self, tokens: &mut Vec<u32>) -> Result<(), Fault> {
        let Ids::Word(ids) = &self.ids else { unreachable!("words") };
        let row = std::mem::take(&mut self.pending);
        let row = String::from_utf8_lossy(&row);
        let row = row.strip_prefix('\u{feff}').filter(|_| self.line == 1).unwrap_or(&row);
        let words =
            listops::expression(row.trim_end_matches(['\r', '\n'])).split_ascii_whitespace();
        for word in words.filter(|word| !matches!(*word, "(" | ")")) {
            let id = ids.get(if word == "]" { "X" } else { word });
            let wrong = || format!("{} is not a symbol of the task", quoted(word));
            tokens.push(*id.ok_or_else(|| Fault::line(self.line, wrong()))?);
        }
        Ok(())
    }

    fn number(&mut self, tokens: &mut Vec<u32>) -> Result<(), Fault> {
        let Ids::Number(vocab) = self.ids else { unreachable!("numbers") };
        let word = std::mem::take(&mut self.pending);
        let word = String::from_utf8_lossy(&word);
        if word.is_empty() {
            return Ok(());
        }
        let id = word.parse().ok().filter(|&id: &u32| (id as usize) < vocab);
        let wrong = || format!("expected a token id below {vocab}, found {}", quoted(&word));
        tokens.push(id.ok_or_else(|| Fault::line(self.line, wrong()))?);
        Ok(())
    }

    /// The text of a token; nothing for one that stands for no text.
    pub fn text(&self, token: u32) -> Vec<u8> {
        match &self.ids {
            Ids::Byte(above) => {
                token.checked_sub(*above).and_then(|b| u8::try_from(b).ok()).into_iter().collect()
            }
            Ids::Character { ids, .. } => {
                ids.character(token).map_or(Vec::new(), |c| c.to_string().into_bytes())
            }
            Ids::Word(ids) => {
                let found = ids.iter().find(|(_, id)| **id == token);
                found.map_or(Vec::new(), |(word, _)| format!("{word} ").into_bytes())
            }
            Ids::Number(_) => format!("{token} ").into_bytes(),
        }
    }
}

fn line_ends(text: &[u8]) -> u64 {
    text.iter().filter(|&&byte| byte == b'\n').count() as u64
}

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

    /// The text in pieces of every size gives the same tokens.
    fn tokens(feed: &TokenFeed, text: &[u8]) -> Result<Vec<u32>, String> {
        let whole = |size: usize| {
            let (mut feed, mut found) = (feed.clone(), Vec::new());
            text.chunks(size).try_for_each(|part| feed.push(part, &mut found))?;
            feed.finish(&mut found)?;
            Ok(found)
        };
        let all = whole(text.len().max(1));
        (1..text.len()).for_each(|size| assert_eq!(whole(size), all, "{size}"));
        all.map_err(|fault: Fault| fault.to_string())
    }

    #[test]
    fn characters_bytes_words_and_ids() {
        let ids = CharacterIds::of_characters(&['a', 'é', '\n']);
        let feed = TokenFeed::new(Ids::Character { ids, unknown: None }, None);
        assert_eq!(tokens(&feed, "aé\naé\n".as_bytes()).unwrap(), [0, 1, 2, 0, 1, 2]);
        assert!(tokens(&feed, "a\na?".as_bytes()).unwrap_err().starts_with("line 2: "));
        assert!(tokens(&feed, b"a\n\xff").unwrap_err().starts_with("line 2: not UTF-8"));
        assert!(tokens(&feed, &"é".as_bytes()[..1]).is_err());
        assert_eq!(feed.text(1), "é".as_bytes());

        assert_eq!(tokens(&document_bytes(), b"\0\xff").unwrap(), [3, 258]);
        assert_eq!(document_bytes().text(258), [255]);
        let ids = TokenFeed::new(Ids::Number(10), None);
        assert_eq!(tokens(&ids, b"1 2,3\n9").unwrap(), [1, 2, 3, 9]);
        assert!(tokens(&ids, b"1\n10").unwrap_err().contains("line 2"));
        let words = TokenFeed::new(Ids::Word([("X".into(), 3), ("[MIN".into(), 4)].into()), None);
        assert_eq!(tokens(&words, b"( [MIN X ) ]\n").unwrap(), [4, 3, 3]);
        assert!(tokens(&words, b"[MIN ?").unwrap_err().contains("\"?\" is not a symbol"));
        assert!(tokens(&words, b"X\n[MIN,X\n").unwrap_err().starts_with("line 2: \"[MIN,X\""));
        let (mut words, mut found) = (words, Vec::new());
        words.push(b"[MIN X ]", &mut found).unwrap();
        assert_eq!(found, [4, 3], "words are not kept until their line ends");
    }

    #[test]
    fn a_document_ends_before_its_last_line_ends() {
        let line_end = u32::from(b'\n') + 3;
        let (a, b) = (u32::from(b'a') + 3, u32::from(b'b') + 3);
        assert_eq!(tokens(&document_bytes(), b"a\n\nb\n").unwrap(), [a, line_end, line_end, b]);
        assert_eq!(tokens(&document_bytes(), b"a\r\n\n").unwrap(), [a]);
        assert_eq!(tokens(&document_bytes(), b"\n").unwrap(), [0u32; 0]);
    }

    #[test]
    fn a_document_begins_after_its_byte_order_mark() {
        let a = u32::from(b'a') + 3;
        assert_eq!(tokens(&document_bytes(), "\u{feff}a".as_bytes()).unwrap(), [a]);
        assert_eq!(tokens(&document_bytes(), "\u{feff}".as_bytes()).unwrap(), [0u32; 0]);
        assert_eq!(tokens(&document_bytes(), b"\xef\xbb").unwrap(), [0xef + 3, 0xbb + 3]);
        assert_eq!(tokens(&document_bytes(), "a\u{feff}".as_bytes()).unwrap().len(), 4);
        let vocabulary = Vocabulary::from_counts([("a".to_owned(), 1)]);
        let found = tokens(&document(&vocabulary), "\u{feff}a".as_bytes()).unwrap();
        assert_eq!(found, [SPECIALS.len() as u32]);
    }

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
