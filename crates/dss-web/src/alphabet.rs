//! What the tokens of a text model stand for.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::engine::{Result, text};

/// Token i is symbol i, or byte i.
#[derive(Debug, Serialize)]
pub(crate) struct Alphabet {
    unit: Unit,
    #[serde(skip)]
    symbols: Vec<char>,
    #[serde(skip)]
    ids: HashMap<char, u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Unit {
    Char,
    Byte,
}

impl Alphabet {
    pub(crate) fn new(encoder: Value, vocab: usize) -> Result<Self> {
        #[derive(Deserialize)]
        struct Raw {
            unit: Unit,
            symbols: Vec<char>,
        }
        let Raw { unit, symbols } = serde_json::from_value(encoder).map_err(text)?;
        let count = if unit == Unit::Byte { 256 } else { symbols.len() };
        if count != vocab {
            return Err(format!("the file has {count} symbols for {vocab} tokens"));
        }
        let ids = symbols.iter().copied().zip(0..).collect();
        Ok(Self { unit, symbols, ids })
    }

    pub(crate) fn encode(&self, text: &str) -> Result<Vec<u32>> {
        if self.unit == Unit::Byte {
            return Ok(text.bytes().map(u32::from).collect());
        }
        let id = |c: char| {
            self.ids.get(&c).copied().ok_or_else(|| {
                format!("the model has never seen the character {c:?}; leave it out of the prompt")
            })
        };
        text.chars().map(id).collect()
    }

    /// Appends a token's text.
    pub(crate) fn decode(&self, token: u32, out: &mut Vec<u8>) -> Result<()> {
        let unknown = || format!("the model gave the token {token}, which has no text");
        match self.unit {
            Unit::Byte => out.push(u8::try_from(token).map_err(|_| unknown())?),
            Unit::Char => {
                let symbol = self.symbols.get(token as usize).ok_or_else(unknown)?;
                out.extend(symbol.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
        Ok(())
    }
}
