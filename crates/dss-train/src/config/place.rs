//! Where a key was set.

use std::collections::BTreeMap;
use std::fmt;

use super::Setting;
use super::section::Key;

/// Where each key was set last; a key that is missing has its default.
pub(super) type KeyPlaces = BTreeMap<Key, Place>;

/// Where a key was set. The greatest of several is the one to blame: what was typed, before a file, before what comes
/// with the program.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Place {
    /// By a rule of the program.
    Rule(&'static str),
    /// A line of a preset, model or ablation that comes with the program.
    BuiltIn {
        /// The name of the document.
        name: String,
        line: usize,
        /// Where its author has the value from.
        source: String,
    },
    /// A line of a file.
    File { name: String, line: usize },
    /// A single setting.
    Set(Setting),
}

impl Place {
    /// The source of the value, in a few words.
    fn source(&self) -> String {
        match self {
            Self::Rule(why) => (*why).to_owned(),
            Self::BuiltIn { source, .. } => source.clone(),
            Self::File { .. } => self.to_string(),
            Self::Set(_) => "--set".to_owned(),
        }
    }

    fn rank(&self) -> usize {
        match self {
            Self::Rule(_) => 0,
            Self::BuiltIn { .. } => 1,
            Self::File { .. } => 2,
            Self::Set(_) => 3,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(why) => f.write_str(why),
            Self::BuiltIn { name, line, .. } | Self::File { name, line } => {
                write!(f, "{name}, line {line}")
            }
            Self::Set(setting) => write!(f, "--set {setting}"),
        }
    }
}

/// The place to blame for keys such as `model.h` that do not go together.
pub(super) fn blamed<'a>(places: &'a KeyPlaces, keys: &[&str]) -> Option<&'a Place> {
    let set = places.iter().filter(|(key, _)| keys.contains(&key.to_string().as_str()));
    set.map(|(_, place)| place).max_by_key(|place| place.rank())
}

/// The source of every key: a preset's own remark, an option, a file, or the default.
#[derive(Clone, Debug, Default)]
pub struct Sources(BTreeMap<String, String>);

impl Sources {
    pub(super) fn new(places: &KeyPlaces) -> Self {
        Self(places.iter().map(|(key, place)| (key.to_string(), place.source())).collect())
    }

    /// The source of a key such as `model.h`.
    pub fn source(&self, key: &str) -> &str {
        self.0.get(key).map_or("default", String::as_str)
    }
}
