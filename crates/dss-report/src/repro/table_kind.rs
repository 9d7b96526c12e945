//! Which table of the paper.

use serde::{Deserialize, Serialize};

use super::paper::{self, PaperTable};

/// A table of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TableKind {
    /// Table 1: Long Range Arena.
    Lra,
    /// Table 2: Speech Commands.
    Speech,
    /// Table 3: what DSS-softmax loses without its parts.
    Ablations,
}

impl TableKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Lra, Self::Speech, Self::Ablations];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lra => "lra",
            Self::Speech => "speech",
            Self::Ablations => "ablations",
        }
    }

    /// Its title.
    pub fn title(self) -> &'static str {
        match self {
            Self::Lra => "Long Range Arena (Table 1)",
            Self::Speech => "Speech Commands (Table 2)",
            Self::Ablations => "Ablations of DSS-softmax (Table 3)",
        }
    }

    /// The paper's numbers.
    pub fn paper(self) -> &'static PaperTable {
        match self {
            Self::Lra => &paper::LRA,
            Self::Speech => &paper::SPEECH,
            Self::Ablations => &paper::ABLATIONS,
        }
    }

    /// The tasks, unless others are asked for.
    pub fn tasks(self) -> &'static [&'static str] {
        self.paper().tasks
    }

    /// The models, unless others are asked for: those of the paper's table that can be run here, and two ablations
    /// that the paper describes in its text.
    pub fn models(self) -> impl Iterator<Item = &'static str> {
        let more: &[&str] = match self {
            Self::Lra | Self::Speech => &[],
            Self::Ablations => &["dss-exp-no-scale", "tied-delta"],
        };
        self.paper().rows.iter().filter_map(|row| row.model).chain(more.iter().copied())
    }
}
