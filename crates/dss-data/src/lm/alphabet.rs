//! What the ids of a language model stand for.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::find;
use crate::{Error, Input, Result, io};

/// More different characters than this are a sign of something else than text.
const MAX_SYMBOLS: usize = 1 << 16;

/// What one token of a text is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// A Unicode character.
    #[default]
    Char,
    /// A byte.
    Byte,
}

impl Unit {
    /// Several of them.
    pub(super) fn plural(self) -> &'static str {
        match self {
            Self::Char => "characters",
            Self::Byte => "bytes",
        }
    }
}

/// How texts become ids and ids texts: id i, as input and as answer, is `symbols[i]`, or byte i.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LmEncoder {
    /// What one token is.
    pub unit: Unit,
    /// The character of every id, in the order of code points; empty for bytes.
    pub symbols: Vec<char>,
    /// Length L of the model.
    pub len: usize,
}

/// Where a text cannot be read, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Line, from 1.
    pub line: u64,
    /// What is wrong.
    pub what: String,
}

impl LmEncoder {
    /// All characters of a text.
    pub(super) fn of(unit: Unit, text: &[u8], len: usize) -> std::result::Result<Self, Fault> {
        let symbols = match unit {
            Unit::Byte => Vec::new(),
            Unit::Char => utf8(text)?.chars().collect::<BTreeSet<_>>().into_iter().collect(),
        };
        if symbols.len() > MAX_SYMBOLS {
            let n = symbols.len();
            let what = format!("{n} different characters are too many; set task.unit to byte");
            return Err(Fault { line: 1, what });
        }
        Ok(Self { unit, symbols, len })
    }

    /// Number of ids.
    pub fn vocab(&self) -> usize {
        match self.unit {
            Unit::Char => self.symbols.len(),
            Unit::Byte => 256,
        }
    }

    /// A name for every id.
    pub fn labels(&self) -> Vec<String> {
        match self.unit {
            Unit::Char => self.symbols.iter().map(char::to_string).collect(),
            Unit::Byte => (0..=255u8).map(|b| format!("0x{b:02x}")).collect(),
        }
    }

    /// The ids of a text. A character that the model does not know is a fault: the model has no idea of it.
    pub fn encode(&self, text: &[u8]) -> std::result::Result<Vec<u32>, Fault> {
        if self.unit == Unit::Byte {
            return Ok(text.iter().map(|&b| b.into()).collect());
        }
        let ids: HashMap<char, u32> = self.symbols.iter().copied().zip(0..).collect();
        let mut ascii = [None; 128];
        for (&symbol, &id) in ids.iter().filter(|(symbol, _)| symbol.is_ascii()) {
            ascii[symbol as usize] = Some(id);
        }
        let text = utf8(text)?;
        let id = |(at, c): (usize, char)| {
            let known = match ascii.get(c as usize) {
                Some(id) => *id,
                None => ids.get(&c).copied(),
            };
            known.ok_or_else(|| Fault {
                line: line(text.as_bytes(), at),
                what: format!(
                    "the character {c:?} does not occur in the text the model was trained on; leave it out, \
                     or train on a text that has it (or with task.unit = \"byte\")"
                ),
            })
        };
        text.char_indices().map(id).collect()
    }

    /// The text of ids; `None` if one of them does not exist.
    pub fn decode(&self, ids: &[u32]) -> Option<Vec<u8>> {
        let mut text = Vec::with_capacity(ids.len());
        for &id in ids {
            match self.unit {
                Unit::Byte => text.push(u8::try_from(id).ok()?),
                Unit::Char => {
                    let c = *self.symbols.get(usize::try_from(id).ok()?)?;
                    text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                }
            }
        }
        Some(text)
    }

    /// A whole file as one sequence.
    pub(crate) fn read(&self, path: &Path) -> Result<Vec<(String, Input)>> {
        let text = find::read(path)?;
        let ids = self.encode(&text).map_err(|f| Error::line(path, f.line, f.what))?;
        Ok(vec![(io::file_name(path), Input::Tokens(ids))])
    }
}

fn utf8(text: &[u8]) -> std::result::Result<&str, Fault> {
    std::str::from_utf8(text).map_err(|error| Fault {
        line: line(text, error.valid_up_to()),
        what: "not UTF-8 text; convert it, or train with task.unit = \"byte\"".into(),
    })
}

/// The line, from 1, of a place in a text.
fn line(text: &[u8], at: usize) -> u64 {
    1 + text[..at].iter().filter(|&&b| b == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ids_by_hand() {
        let encoder = LmEncoder::of(Unit::Char, "bé a\nb".as_bytes(), 8).unwrap();
        assert_eq!(encoder.symbols, ['\n', ' ', 'a', 'b', 'é']);
        assert_eq!(encoder.encode("é\nb".as_bytes()).unwrap(), [4, 0, 3]);
        let fault = encoder.encode("ab\nb?".as_bytes()).unwrap_err();
        assert!(fault.line == 2 && fault.what.contains("'?'"), "{fault:?}");
        assert_eq!(encoder.encode(b"ab\n\xff").unwrap_err().line, 2);
        assert_eq!(encoder.decode(&[5]), None);
        let json = serde_json::to_value(&encoder).unwrap();
        let expected =
            serde_json::json!({"unit": "char", "symbols": ["\n", " ", "a", "b", "é"], "len": 8});
        assert_eq!(json, expected);

        let bytes = LmEncoder::of(Unit::Byte, b"\xff", 8).unwrap();
        assert_eq!((bytes.vocab(), bytes.labels()[255].as_str()), (256, "0xff"));
        assert_eq!(bytes.decode(&[256]), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn decode_is_the_inverse_of_encode(text in any::<String>(), bytes in any::<Vec<u8>>()) {
            let chars = LmEncoder::of(Unit::Char, text.as_bytes(), 8).unwrap();
            let ids = chars.encode(text.as_bytes()).unwrap();
            prop_assert!(ids.iter().all(|&id| (id as usize) < chars.vocab()));
            prop_assert_eq!(chars.decode(&ids).unwrap(), text.as_bytes());
            let encoder = LmEncoder::of(Unit::Byte, &bytes, 8).unwrap();
            let ids = encoder.encode(&bytes).unwrap();
            prop_assert_eq!(encoder.decode(&ids).unwrap(), bytes.clone());
            // Any bytes: ids or a fault, never a panic.
            let _ = chars.encode(&bytes);
            let _ = LmEncoder::of(Unit::Char, &bytes, 8);
        }
    }
}
