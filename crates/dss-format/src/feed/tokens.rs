//! Text while it arrives: characters, bytes, words or numbers of tokens.

use std::collections::HashMap;

use super::Fault;
use crate::encoder::{CharacterIds, EOS, SPECIALS, UNK, Vocabulary, listops, quoted};

/// What some editors write at the beginning of UTF-8 text; it is not part of it.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

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
pub(super) enum Ids {
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
    pub(super) fn new(ids: Ids, end: Option<u32>) -> Self {
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

/// A text of known characters, without the line ends after it.
pub(super) fn document(vocabulary: &Vocabulary) -> TokenFeed {
    let ids = CharacterIds::of_vocabulary(vocabulary);
    let feed = TokenFeed::new(Ids::Character { ids, unknown: Some(UNK) }, Some(EOS));
    TokenFeed { start: Some(Vec::new()), held: Some(Vec::new()), ..feed }
}

/// The bytes of a text, without the line ends after it.
pub(super) fn document_bytes() -> TokenFeed {
    let feed = TokenFeed::new(Ids::Byte(SPECIALS.len() as u32), Some(EOS));
    TokenFeed { start: Some(Vec::new()), held: Some(Vec::new()), ..feed }
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
}
