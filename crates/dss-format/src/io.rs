//! The input and the output of a model.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// What a sequence consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
pub enum InputKind {
    /// Token ids below `vocab`.
    Tokens {
        /// How many ids there are.
        vocab: usize,
    },
    /// Vectors of numbers.
    Values {
        /// Numbers per position.
        channels: usize,
    },
}

/// What a model computes from its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
pub enum OutputKind {
    /// One vector per sequence.
    Sequence {
        /// Its size.
        outputs: usize,
    },
    /// One vector per position.
    Position {
        /// Its size.
        outputs: usize,
    },
    /// One vector per two sequences.
    Pair {
        /// Its size.
        outputs: usize,
    },
}

impl OutputKind {
    /// The size of an output vector.
    pub fn outputs(&self) -> usize {
        match *self {
            Self::Sequence { outputs } | Self::Position { outputs } | Self::Pair { outputs } => {
                outputs
            }
        }
    }
}

/// The two ends of a model, and the length it is trained at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelIo {
    /// The input.
    pub input: InputKind,
    /// The output.
    pub output: OutputKind,
    /// L: the training length. The softmax's normaliser and the C̃ of S4 always use it, so that a kernel does not depend
    /// on the batch.
    pub len: usize,
}

impl ModelIo {
    /// Every number is in its range.
    pub fn validate(&self) -> Result<()> {
        let input = match self.input {
            InputKind::Tokens { vocab } => ("the vocabulary", vocab),
            InputKind::Values { channels } => ("the number of input channels", channels),
        };
        let outputs = ("the number of outputs", self.output.outputs());
        for (name, value) in [input, outputs, ("the training length", self.len)] {
            if value == 0 {
                return Err(Error::setting(&[], format!("{name} must be at least 1, but is 0")));
            }
        }
        Ok(())
    }
}
