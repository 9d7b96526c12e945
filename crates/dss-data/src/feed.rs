//! Input while it arrives: what an [`Encoder`] does with a whole file, done with its bytes as they come.

use std::collections::HashMap;

use crate::characters::Alphabet;
use crate::files::Form;
use crate::lm::Unit;
use crate::table::{Column, quoted};
use crate::vocabulary::{EOS, SPECIALS, UNK};
use crate::{Encoder, Vocabulary};

/// What an encoder reads position by position.
#[derive(Clone, Debug)]
pub enum Feed {
    /// Sound of one channel: x' = (x - mean) / divisor, x from -1 to 1.
    Sound(SoundFeed),
    /// Numbers, written in lines.
    Numbers(NumberFeed),
    /// Characters, bytes or words.
    Tokens(TokenFeed),
}

impl Encoder {
    /// How to read input as it arrives; `Err` says why it has to be there as a whole.
    pub fn feed(&self) -> Result<Feed, String> {
        let whole =
            |what: &str| Err(format!("this model reads {what}, which have no order in time"));
        Ok(match self {
            Self::Speech(encoder) => match encoder.rate() {
                Some(rate) => Feed::Sound(SoundFeed {
                    rate,
                    mean: *encoder.mean.first().ok_or("the model's scaling of sound is damaged")?,
                    divisor: *encoder
                        .divisor
                        .first()
                        .ok_or("the model's scaling of sound is damaged")?,
                }),
                None => return Err("this model reads features (MFCC) of whole clips".into()),
            },
            Self::ValueSteps { channels, .. } => {
                Feed::Numbers(NumberFeed::new(*channels, false, Vec::new(), None))
            }
            Self::TokenRows { vocab, .. } => {
                Feed::Tokens(TokenFeed::new(Ids::Number(*vocab), None))
            }
            Self::Listops(encoder) => {
                let symbols = encoder.vocabulary.symbols().iter().cloned().zip(0..).collect();
                Feed::Tokens(TokenFeed::new(Ids::Word(symbols), Some(EOS)))
            }
            Self::Files(encoder) => match &encoder.form {
                Form::Characters(vocabulary) => Feed::Tokens(characters(vocabulary)),
                Form::Bytes => Feed::Tokens(bytes_and_end()),
                Form::Numbers { channels, scaling, rows, .. } => {
                    let scaling = scaling.as_ref().map(|s| (s.mean.clone(), s.sd.clone()));
                    let columns = encoder.columns.clone();
                    Feed::Numbers(NumberFeed::new(*channels, *rows, columns, scaling))
                }
            },
            Self::Text(encoder) => Feed::Tokens(match &encoder.alphabet {
                Alphabet::Characters(vocabulary) => characters(vocabulary),
                Alphabet::Bytes => bytes_and_end(),
            }),
            Self::Lm(encoder) => Feed::Tokens(match encoder.unit {
                Unit::Byte => TokenFeed::new(Ids::Byte(0), None),
                Unit::Char => {
                    let ids = encoder.symbols.iter().copied().zip(0..).collect();
                    TokenFeed::new(Ids::Character { ids, unknown: None }, None)
                }
            }),
            Self::TextPairs(_) => return Err("this model compares two texts".into()),
            Self::Forecast(_) => {
                return Err("this model reads the last rows of a table, relative to its end".into());
            }
            Self::Images(_) | Self::Pathfinder(_) | Self::Grey(_) => return whole("pictures"),
        })
    }
}

fn characters(vocabulary: &Vocabulary) -> TokenFeed {
    let single = |(symbol, id): (&String, u32)| {
        let mut characters = symbol.chars();
        Some((characters.next().filter(|_| characters.next().is_none())?, id))
    };
    let ids = vocabulary.symbols().iter().zip(0..).filter_map(single).collect();
    TokenFeed::new(Ids::Character { ids, unknown: Some(UNK) }, Some(EOS))
}

fn bytes_and_end() -> TokenFeed {
    TokenFeed::new(Ids::Byte(SPECIALS.len() as u32), Some(EOS))
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
    /// Bytes that are not a whole character or word yet.
    pending: Vec<u8>,
    line: usize,
}

#[derive(Clone, Debug)]
enum Ids {
    Character {
        ids: HashMap<char, u32>,
        unknown: Option<u32>,
    },
    /// Each byte is so much above its value.
    Byte(u32),
    /// Words between white space.
    Word(HashMap<String, u32>),
    /// Numbers below this.
    Number(usize),
}

impl TokenFeed {
    fn new(ids: Ids, end: Option<u32>) -> Self {
        Self { ids, end, pending: Vec::new(), line: 1 }
    }

    /// Takes more text and adds its tokens to `tokens`; `Err` says what is wrong, and where.
    pub fn push(&mut self, text: &[u8], tokens: &mut Vec<u32>) -> Result<(), String> {
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
                    Err(_) => return Err(format!("line {}: this is not UTF-8 text", self.line)),
                };
                let rest = self.pending.split_off(whole);
                let whole = std::mem::replace(&mut self.pending, rest);
                let text = std::str::from_utf8(&whole).expect("just checked");
                text.chars().try_for_each(|c| self.character(c, tokens))
            }
            Ids::Word(_) | Ids::Number(_) => {
                for &byte in text {
                    if byte.is_ascii_whitespace() || byte == b',' {
                        self.word(tokens)?;
                    } else {
                        self.pending.push(byte);
                    }
                    self.line += usize::from(byte == b'\n');
                }
                Ok(())
            }
        }
    }

    /// Takes what is left at the end of the text.
    pub fn finish(&mut self, tokens: &mut Vec<u32>) -> Result<(), String> {
        match &self.ids {
            Ids::Word(_) | Ids::Number(_) => self.word(tokens),
            _ if self.pending.is_empty() => Ok(()),
            _ => Err(format!("line {}: the text ends within a character", self.line)),
        }
    }

    fn character(&mut self, c: char, tokens: &mut Vec<u32>) -> Result<(), String> {
        let Ids::Character { ids, unknown } = &self.ids else { unreachable!("a text") };
        let line = self.line;
        self.line += usize::from(c == '\n');
        tokens.push(ids.get(&c).copied().or(*unknown).ok_or_else(|| {
            format!("line {line}: the model was not trained on the character {c:?}; leave it out")
        })?);
        Ok(())
    }

    fn word(&mut self, tokens: &mut Vec<u32>) -> Result<(), String> {
        let word = std::mem::take(&mut self.pending);
        let word = String::from_utf8_lossy(&word);
        let id = match (&self.ids, &*word) {
            (_, "") => return Ok(()),
            (Ids::Number(vocab), word) => {
                word.parse::<u32>().ok().filter(|&id| (id as usize) < *vocab).ok_or_else(|| {
                    format!(
                        "line {}: expected a token id below {vocab}, found {}",
                        self.line,
                        quoted(word)
                    )
                })
            }
            (_, "(" | ")") => return Ok(()),
            (Ids::Word(ids), word) => {
                let word = if word == "]" { "X" } else { word };
                let unknown = || format!("line {}: {word:?} is no symbol of the task", self.line);
                ids.get(word).copied().ok_or_else(unknown)
            }
            _ => unreachable!("words"),
        };
        tokens.push(id?);
        Ok(())
    }

    /// The text of a token; nothing for one that stands for no text.
    pub fn text(&self, token: u32) -> Vec<u8> {
        match &self.ids {
            Ids::Byte(above) => {
                token.checked_sub(*above).and_then(|b| u8::try_from(b).ok()).into_iter().collect()
            }
            Ids::Character { ids, .. } => {
                let found = ids.iter().find(|(_, id)| **id == token);
                found.map_or(Vec::new(), |(c, _)| c.to_string().into_bytes())
            }
            Ids::Word(ids) => {
                let found = ids.iter().find(|(_, id)| **id == token);
                found.map_or(Vec::new(), |(word, _)| format!("{word} ").into_bytes())
            }
            Ids::Number(_) => format!("{token} ").into_bytes(),
        }
    }
}

/// Numbers, one position per line, or all positions in one line.
#[derive(Clone, Debug)]
pub struct NumberFeed {
    channels: usize,
    rows: bool,
    columns: Vec<Column>,
    scaling: Option<(Vec<f32>, Vec<f32>)>,
    /// Where the columns stand, once the first line was seen.
    places: Option<Vec<usize>>,
    pending: Vec<u8>,
    line: usize,
    /// Numbers so far.
    count: usize,
}

impl NumberFeed {
    fn new(
        channels: usize,
        rows: bool,
        columns: Vec<Column>,
        scaling: Option<(Vec<f32>, Vec<f32>)>,
    ) -> Self {
        let (places, pending) = (None, Vec::new());
        Self { channels, rows, columns, scaling, places, pending, line: 0, count: 0 }
    }

    /// Numbers of a position.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Takes more text and adds its numbers, `[positions, channels]`, to `values`; `Err` says what is wrong, and where.
    pub fn push(&mut self, text: &[u8], values: &mut Vec<f32>) -> Result<(), String> {
        let mut rest = text;
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            self.pending.extend_from_slice(&rest[..end]);
            rest = &rest[end + 1..];
            self.take_line(values)?;
        }
        self.pending.extend_from_slice(rest);
        Ok(())
    }

    /// Takes what is left at the end of the text.
    pub fn finish(&mut self, values: &mut Vec<f32>) -> Result<(), String> {
        self.take_line(values)
    }

    /// The model's input of the next number, in the order of the channels.
    pub fn scaled(&mut self, x: f32) -> f32 {
        let channel = self.count % self.channels;
        self.count += 1;
        match &self.scaling {
            Some((mean, divisor)) => (x - mean[channel]) / divisor[channel],
            None => x,
        }
    }

    fn take_line(&mut self, values: &mut Vec<f32>) -> Result<(), String> {
        self.line += 1;
        let line = std::mem::take(&mut self.pending);
        let line = String::from_utf8_lossy(&line);
        let line = line.trim();
        if line.is_empty() {
            return Ok(());
        }
        let separators: &[char] =
            if line.contains([',', ';', '\t']) { &[',', ';', '\t'] } else { &[' '] };
        let cells: Vec<&str> =
            line.split(separators).map(str::trim).filter(|c| !c.is_empty()).collect();
        if self.places.is_none() {
            let head = cells.iter().all(|cell| cell.parse::<f32>().is_err());
            self.places = Some(self.find(&cells, head)?);
            if head {
                return Ok(());
            }
        }
        let all: Vec<usize> = (0..cells.len()).collect();
        let places = match &self.places {
            Some(places) if !self.rows => places.clone(),
            _ => all,
        };
        for place in places {
            let cell = cells
                .get(place)
                .ok_or_else(|| format!("line {}: {} numbers, too few", self.line, cells.len()))?;
            let number = cell.parse::<f32>().ok().filter(|x| x.is_finite());
            let number = number.ok_or_else(|| {
                format!("line {}, column {}: {cell:?} is not a finite number", self.line, place + 1)
            })?;
            let number = self.scaled(number);
            values.push(number);
        }
        Ok(())
    }

    /// The places of the columns: by the names in a head line, or all of them, or as they stood in the training.
    fn find(&self, cells: &[&str], head: bool) -> Result<Vec<usize>, String> {
        let named = self.columns.iter().map(|column| {
            let name = column.name.as_deref().filter(|_| head)?;
            cells.iter().position(|cell| *cell == name)
        });
        if let Some(places) = named.collect::<Option<Vec<_>>>().filter(|p| !p.is_empty()) {
            return Ok(places);
        }
        let width = cells.len();
        if width == self.channels || self.rows {
            return Ok((0..width).collect());
        }
        if self.columns.len() == self.channels && self.columns.iter().all(|c| c.index < width) {
            return Ok(self.columns.iter().map(|c| c.index).collect());
        }
        let channels = self.channels;
        Err(format!(
            "line {}: the model reads {channels} numbers per line, found {width}",
            self.line
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        all
    }

    #[test]
    fn characters_bytes_words_and_ids() {
        let ids = [('a', 3), ('é', 4), ('\n', 5)].into();
        let feed = TokenFeed::new(Ids::Character { ids, unknown: None }, None);
        assert_eq!(tokens(&feed, "aé\naé".as_bytes()).unwrap(), [3, 4, 5, 3, 4]);
        assert!(tokens(&feed, "a\na?".as_bytes()).unwrap_err().starts_with("line 2: "));
        assert!(tokens(&feed, b"a\xff").is_err() && tokens(&feed, &"é".as_bytes()[..1]).is_err());
        assert_eq!(feed.text(4), "é".as_bytes());

        assert_eq!(tokens(&bytes_and_end(), b"\0\xff").unwrap(), [3, 258]);
        assert_eq!(bytes_and_end().text(258), [255]);
        let ids = TokenFeed::new(Ids::Number(10), None);
        assert_eq!(tokens(&ids, b"1 2,3\n9").unwrap(), [1, 2, 3, 9]);
        assert!(tokens(&ids, b"1\n10").unwrap_err().contains("line 2"));
        let words = TokenFeed::new(Ids::Word([("X".into(), 3), ("[MIN".into(), 4)].into()), None);
        assert_eq!(tokens(&words, b"( [MIN X ) ]\n").unwrap(), [4, 3, 3]);
    }

    fn numbers(feed: &NumberFeed, text: &str) -> Result<Vec<f32>, String> {
        let (mut feed, mut found) = (feed.clone(), Vec::new());
        text.as_bytes().chunks(3).try_for_each(|part| feed.push(part, &mut found))?;
        feed.finish(&mut found)?;
        Ok(found)
    }

    #[test]
    fn numbers_in_lines() {
        let two = NumberFeed::new(2, false, Vec::new(), Some((vec![1.0, 0.0], vec![1.0, 2.0])));
        assert_eq!(numbers(&two, "a,b\n1,2\r\n\n3;4\n").unwrap(), [0.0, 1.0, 2.0, 2.0]);
        assert_eq!(numbers(&two, "1 2\n3  4").unwrap(), [0.0, 1.0, 2.0, 2.0]);
        assert!(numbers(&two, "1,2\n3\n").unwrap_err().contains("line 2"));
        assert!(numbers(&two, "1,2\n3,nan\n").unwrap_err().contains("line 2, column 2"));
        assert!(numbers(&two, "1,2,3\n").unwrap_err().contains("2 numbers per line"));
        let column = |name: &str, index| Column { name: Some(name.into()), index };
        let named = NumberFeed::new(1, false, vec![column("x", 1)], None);
        assert_eq!(numbers(&named, "x,y\n1,2\n3,4\n").unwrap(), [1.0, 3.0]);
        assert_eq!(numbers(&named, "1,2\n3,4\n").unwrap(), [2.0, 4.0]);
        let rows = NumberFeed::new(1, true, Vec::new(), None);
        assert_eq!(numbers(&rows, "1,2,3\n").unwrap(), [1.0, 2.0, 3.0]);
    }
}
