//! The words: ten commands as in the paper, or all of the data set.

use serde::{Deserialize, Serialize};

/// The ten commands, in the order of the paper's labels.
pub const SC10: [&str; 10] =
    ["yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go"];

/// All words of version 0.02; version 0.01 lacks backward, follow, forward, learn and visual.
pub const ALL: [&str; 35] = [
    "backward", "bed", "bird", "cat", "dog", "down", "eight", "five", "follow", "forward", "four",
    "go", "happy", "house", "learn", "left", "marvin", "nine", "no", "off", "on", "one", "right",
    "seven", "sheila", "six", "stop", "three", "tree", "two", "up", "visual", "wow", "yes", "zero",
];

/// Which words are classified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Words {
    /// The ten commands of the paper.
    #[default]
    Sc10,
    /// All 35, in alphabetical order.
    All,
}

impl Words {
    /// The words in the order of their labels.
    pub fn list(self) -> &'static [&'static str] {
        match self {
            Self::Sc10 => &SC10,
            Self::All => &ALL,
        }
    }
}
