//! Texts as tokens: Unicode characters, or bytes of UTF-8.
//!
//! Of a text the first L - 1 characters (or bytes) are read, `<eos>` follows; longer texts are cut. Characters have the
//! ids of a vocabulary counted on the training texts. Bytes need none: after the specials `<pad> <unk> <eos>` byte b
//! has the id b + 3. (The Long Range Arena has b + 1 and no `<eos>`.)

mod counter;
mod order;
pub(crate) mod rows;
mod texts;

pub use dss_format::encoder::{Alphabet, TextEncoder};
use dss_format::encoder::{CharacterIds, EOS, SPECIALS, UNK};
use serde::{Deserialize, Serialize};

pub(crate) use self::order::balanced_order;
pub(crate) use self::texts::{TextDigest, TextWriter, Texts, damaged, digest};
use crate::{Error, Input, Result, limits};

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

/// What one token is.
fn level(encoder: &TextEncoder) -> Level {
    match encoder.alphabet {
        Alphabet::Characters(_) => Level::Characters,
        Alphabet::Bytes => Level::Bytes,
    }
}

/// The id of every character or byte.
pub(crate) enum Ids {
    Characters(CharacterIds),
    Bytes,
}

impl Ids {
    /// The ids of an encoder, ready for use.
    pub(crate) fn new(encoder: &TextEncoder) -> Self {
        match &encoder.alphabet {
            Alphabet::Characters(vocabulary) => {
                Self::Characters(CharacterIds::of_vocabulary(vocabulary))
            }
            Alphabet::Bytes => Self::Bytes,
        }
    }

    /// Ids of a text that was cut already, and `<eos>`; `None` if characters are wanted of what is not UTF-8.
    pub(crate) fn tokens(&self, text: &[u8]) -> Option<Input> {
        let mut tokens = Vec::with_capacity(text.len() + 1);
        match self {
            Self::Bytes => {
                tokens.extend(text.iter().map(|&b| u32::from(b) + SPECIALS.len() as u32))
            }
            Self::Characters(ids) => {
                let characters = std::str::from_utf8(text).ok()?.chars();
                tokens.extend(characters.map(|c| ids.id(c).unwrap_or(UNK)));
            }
        }
        tokens.push(EOS);
        Some(Input::Tokens(tokens))
    }
}

/// Tokens of a text, cut to the length of the model; `Err` says why it cannot be read.
pub(crate) fn encode(
    encoder: &TextEncoder,
    ids: &Ids,
    text: &[u8],
) -> std::result::Result<Input, &'static str> {
    let cut = level(encoder).cut(text, encoder.len.saturating_sub(1))?;
    ids.tokens(cut).ok_or("not UTF-8 text")
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
        match encode(encoder, &Ids::new(encoder), text).unwrap() {
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
        assert!(encode(&encoder, &Ids::new(&encoder), b"\xff").is_err());
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
