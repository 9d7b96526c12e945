//! What the ids of a language model stand for.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::CharacterIds;
use crate::feed::Fault;

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
    pub fn plural(self) -> &'static str {
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

impl LmEncoder {
    /// For all characters of a text.
    pub fn for_text(unit: Unit, text: &[u8], len: usize) -> Result<Self, Fault> {
        let symbols = match unit {
            Unit::Byte => Vec::new(),
            Unit::Char => utf8(text)?.chars().collect::<BTreeSet<_>>().into_iter().collect(),
        };
        if symbols.len() > MAX_SYMBOLS {
            let n = symbols.len();
            let what = format!("{n} different characters are too many; set task.unit to byte");
            return Err(Fault { line: 1, column: None, what });
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
    pub fn encode(&self, text: &[u8]) -> Result<Vec<u32>, Fault> {
        if self.unit == Unit::Byte {
            return Ok(text.iter().map(|&b| b.into()).collect());
        }
        let ids = CharacterIds::of_characters(&self.symbols);
        let text = utf8(text)?;
        let id = |(at, c): (usize, char)| {
            ids.id(c).ok_or_else(|| Fault {
                line: line(text.as_bytes(), at),
                column: None,
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
}

fn utf8(text: &[u8]) -> Result<&str, Fault> {
    std::str::from_utf8(text).map_err(|error| Fault {
        line: line(text, error.valid_up_to()),
        column: None,
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
        let encoder = LmEncoder::for_text(Unit::Char, "bé a\nb".as_bytes(), 8).unwrap();
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

        let bytes = LmEncoder::for_text(Unit::Byte, b"\xff", 8).unwrap();
        assert_eq!((bytes.vocab(), bytes.labels()[255].as_str()), (256, "0xff"));
        assert_eq!(bytes.decode(&[256]), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn decode_is_the_inverse_of_encode(text in any::<String>(), bytes in any::<Vec<u8>>()) {
            let chars = LmEncoder::for_text(Unit::Char, text.as_bytes(), 8).unwrap();
            let ids = chars.encode(text.as_bytes()).unwrap();
            prop_assert!(ids.iter().all(|&id| (id as usize) < chars.vocab()));
            prop_assert_eq!(chars.decode(&ids).unwrap(), text.as_bytes());
            let encoder = LmEncoder::for_text(Unit::Byte, &bytes, 8).unwrap();
            let ids = encoder.encode(&bytes).unwrap();
            prop_assert_eq!(encoder.decode(&ids).unwrap(), bytes.clone());
            // Any bytes: ids or a fault, never a panic.
            let _ = chars.encode(&bytes);
            let _ = LmEncoder::for_text(Unit::Char, &bytes, 8);
        }
    }
}
