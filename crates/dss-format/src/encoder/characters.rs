//! How texts become tokens.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::{SPECIALS, Vocabulary};

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

/// The id of every character.
#[derive(Clone, Debug)]
pub struct CharacterIds {
    ascii: Box<[Option<u32>; 128]>,
    others: HashMap<char, u32>,
}

impl CharacterIds {
    /// Character i of the list has the id i.
    pub fn of_characters(characters: &[char]) -> Self {
        Self::new(characters.iter().copied().zip(0..))
    }

    /// The symbols of one character; the others, such as `<eos>`, never occur in a text.
    pub fn of_vocabulary(vocabulary: &Vocabulary) -> Self {
        Self::new(vocabulary.symbols().iter().zip(0..).filter_map(|(symbol, id)| {
            let mut characters = symbol.chars();
            Some((characters.next().filter(|_| characters.next().is_none())?, id))
        }))
    }

    fn new(ids: impl Iterator<Item = (char, u32)>) -> Self {
        let (mut ascii, mut others) = (Box::new([None; 128]), HashMap::new());
        for (character, id) in ids {
            match ascii.get_mut(character as usize) {
                Some(slot) => *slot = Some(id),
                None => drop(others.insert(character, id)),
            }
        }
        Self { ascii, others }
    }

    /// The id of a character; `None` if it has none.
    pub fn id(&self, character: char) -> Option<u32> {
        match self.ascii.get(character as usize) {
            Some(id) => *id,
            None => self.others.get(&character).copied(),
        }
    }

    /// The character of an id; `None` if there is none.
    pub fn character(&self, id: u32) -> Option<char> {
        let ascii = self.ascii.iter().position(|slot| *slot == Some(id));
        let other = || self.others.iter().find(|(_, other)| **other == id).map(|(c, _)| *c);
        ascii.map(|code| code as u8 as char).or_else(other)
    }
}
