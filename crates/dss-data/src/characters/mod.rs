//! Texts as tokens: Unicode characters, or bytes of UTF-8.
//!
//! Of a text the first L - 1 characters (or bytes) are read, `<eos>` follows; longer texts are cut. Characters have the
//! ids of a vocabulary counted on the training texts. Bytes need none: after the specials `<pad> <unk> <eos>` byte b
//! has the id b + 3. (The Long Range Arena has b + 1 and no `<eos>`.)

mod counter;
mod order;
pub(crate) mod rows;
mod texts;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

pub(crate) use self::order::balanced_order;
pub(crate) use self::texts::{TextDigest, TextWriter, Texts, damaged, digest};
use crate::vocabulary::{EOS, SPECIALS, UNK};
use crate::{Error, Input, Result, Vocabulary, limits};

/// What one token of a text is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// A Unicode character.
    #[default]
    Characters,
    /// A byte of UTF-8.
    Bytes,
}

impl Level {
    /// The first `most` characters or bytes of a text; `Err` says why they cannot be read.
    pub(crate) fn cut(self, text: &[u8], most: usize) -> std::result::Result<&[u8], &'static str> {
        match self {
            Self::Bytes => Ok(&text[..text.len().min(most)]),
            Self::Characters => {
                let all = std::str::from_utf8(text)
                    .map_err(|_| "not UTF-8 text; convert it, or set task.level to bytes")?;
                // No text has more characters than bytes.
                if all.len() <= most {
                    return Ok(text);
                }
                let end = all.char_indices().nth(most).map_or(all.len(), |(at, _)| at);
                Ok(&text[..end])
            }
        }
    }
}

/// The length L of a task of texts: one character and `<eos>` at least.
pub(crate) fn check_len(len: usize) -> Result<()> {
    if len < 2 {
        return Err(Error::setting("len", len, "must be at least 2: a character and <eos>"));
    }
    limits::length("len", len)
}

/// What the ids stand for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Alphabet {
    /// Characters and their ids.
    Characters(Vocabulary),
    /// Bytes, each 3 above its value.
    Bytes,
}

impl Alphabet {
    /// The symbol of every id.
    pub fn symbols(&self) -> Vec<String> {
        match self {
            Self::Characters(vocabulary) => vocabulary.symbols().to_vec(),
            Self::Bytes => {
                let bytes = (0..=255u8).map(|b| format!("0x{b:02x}"));
                SPECIALS.iter().map(|s| s.to_string()).chain(bytes).collect()
            }
        }
    }
}

/// How texts become tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextEncoder {
    /// What the ids stand for.
    pub alphabet: Alphabet,
    /// Length L of the model, `<eos>` included.
    pub len: usize,
}

impl TextEncoder {
    /// What one token is.
    pub fn level(&self) -> Level {
        match self.alphabet {
            Alphabet::Characters(_) => Level::Characters,
            Alphabet::Bytes => Level::Bytes,
        }
    }

    /// Tokens of a text; `Err` says why it cannot be read.
    pub(crate) fn encode(
        &self,
        ids: &Ids,
        text: &[u8],
    ) -> std::result::Result<Input, &'static str> {
        let cut = self.level().cut(text, self.len.saturating_sub(1))?;
        ids.tokens(cut).ok_or("not UTF-8 text")
    }

    /// The ids, ready for use.
    pub(crate) fn ids(&self) -> Ids {
        let Alphabet::Characters(vocabulary) = &self.alphabet else { return Ids::Bytes };
        let mut ascii = [UNK; 128];
        let mut others = HashMap::new();
        for (symbol, id) in vocabulary.symbols().iter().zip(0..) {
            let mut characters = symbol.chars();
            match (characters.next(), characters.next()) {
                (Some(c), None) if c.is_ascii() => ascii[c as usize] = id,
                (Some(c), None) => drop(others.insert(c, id)),
                // A special: no character of a text.
                _ => {}
            }
        }
        Ids::Characters { ascii: Box::new(ascii), others }
    }
}

/// The id of every character or byte.
pub(crate) enum Ids {
    Characters { ascii: Box<[u32; 128]>, others: HashMap<char, u32> },
    Bytes,
}

impl Ids {
    /// Ids of a text that was cut already, and `<eos>`; `None` if characters are wanted of what is not UTF-8.
    pub(crate) fn tokens(&self, text: &[u8]) -> Option<Input> {
        let mut tokens = Vec::with_capacity(text.len() + 1);
        match self {
            Self::Bytes => {
                tokens.extend(text.iter().map(|&b| u32::from(b) + SPECIALS.len() as u32))
            }
            Self::Characters { ascii, others } => {
                let id = |c: char| match ascii.get(c as usize) {
                    Some(&id) => id,
                    None => others.get(&c).copied().unwrap_or(UNK),
                };
                tokens.extend(std::str::from_utf8(text).ok()?.chars().map(id));
            }
        }
        tokens.push(EOS);
        Some(Input::Tokens(tokens))
    }
}

#[cfg(test)]
mod tests {
    use super::counter::Counter;
    use super::*;

    fn encoder(len: usize) -> TextEncoder {
        let mut counter = Counter::default();
        counter.add("bé bé é\u{2603}".as_bytes(), 1);
        TextEncoder { alphabet: Alphabet::Characters(counter.vocabulary(2)), len }
    }

    fn ids(encoder: &TextEncoder, text: &[u8]) -> Vec<u32> {
        match encoder.encode(&encoder.ids(), text).unwrap() {
            Input::Tokens(ids) => ids,
            Input::Values(_) => panic!(),
        }
    }

    #[test]
    fn characters_by_hand() {
        let encoder = encoder(5);
        assert_eq!(encoder.alphabet.symbols(), ["<pad>", "<unk>", "<eos>", "é", " ", "b"]);
        assert_eq!(ids(&encoder, "éb☃".as_bytes()), [3, 5, 1, 2]);
        assert_eq!(ids(&encoder, "éb☃é b".as_bytes()), [3, 5, 1, 3, 2], "cut to L - 1 = 4");
        assert_eq!(ids(&encoder, b""), [2]);
        assert!(encoder.encode(&encoder.ids(), b"\xff").is_err());
        let json = serde_json::to_string(&encoder).unwrap();
        assert_eq!(serde_json::from_str::<TextEncoder>(&json).unwrap(), encoder);
    }

    #[test]
    fn bytes_by_hand() {
        let encoder = TextEncoder { alphabet: Alphabet::Bytes, len: 4 };
        assert_eq!(ids(&encoder, "é".as_bytes()), [0xc3 + 3, 0xa9 + 3, 2]);
        assert_eq!(ids(&encoder, &[0, 255, 1, 2]), [3, 258, 4, 2]);
        let symbols = encoder.alphabet.symbols();
        assert_eq!((symbols.len(), &*symbols[258]), (259, "0xff"));
    }

    #[test]
    fn no_length_makes_it_panic() {
        for len in 0..3 {
            let tokens = ids(&encoder(len), b"bbbb");
            assert_eq!(tokens.len(), len.max(1));
        }
    }
}
