//! What a task is: the shape of its examples, three splits, and how new input is encoded.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Encoder, Note, Result};

/// What the model reads at each position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputKind {
    /// One token id below `vocab` per position; id 0 is the padding.
    Tokens {
        /// Number of ids.
        vocab: usize,
    },
    /// `channels` numbers per position.
    Values {
        /// Numbers per position.
        channels: usize,
    },
}

/// What the model is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// One class per sequence.
    Class {
        /// Name of every class, in the order of the class numbers.
        labels: Vec<String>,
    },
    /// Regression: one vector per sequence.
    Values {
        /// Length of the vector.
        outputs: usize,
    },
    /// One class per position.
    PositionClasses {
        /// Name of every class, in the order of the class numbers.
        labels: Vec<String>,
    },
    /// Regression: one vector per position.
    PositionValues {
        /// Length of the vector.
        outputs: usize,
    },
    /// The token that follows, at every position: a language model. The targets are position classes.
    NextToken {
        /// A name for every token id.
        symbols: Vec<String>,
    },
}

/// The shape of a task: all a model needs to know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSpec {
    /// Name of the task, such as `listops`.
    pub name: String,
    /// What comes in.
    pub input: InputKind,
    /// What is asked for.
    pub target: TargetKind,
    /// The length L of the model; no example is longer.
    pub len: usize,
    /// Whether an example consists of two sequences.
    pub pair: bool,
}

/// One sequence.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Token ids, `[len]`.
    Tokens(Vec<u32>),
    /// Numbers, `[len, channels]`, channels innermost.
    Values(Vec<f32>),
}

/// The right answer of one example.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// Class of the sequence.
    Class(u32),
    /// Vector for the sequence.
    Values(Vec<f32>),
    /// A class for every position, `[len]`; -1 where nothing is asked.
    PositionClasses(Vec<i32>),
    /// A vector for every position, `[len, outputs]`; NaN where nothing is asked.
    PositionValues(Vec<f32>),
}

/// One example.
#[derive(Clone, Debug, PartialEq)]
pub struct Example {
    /// The sequence.
    pub input: Input,
    /// The second sequence of a pair task.
    pub second: Option<Input>,
    /// The right answer.
    pub target: Target,
}

/// What a simple method reaches on the examples of a regression.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// The method.
    pub name: String,
    /// Its mean squared error.
    pub mse: f64,
    /// Its mean absolute error.
    pub mae: f64,
}

/// A split: examples by number. `example(i)` is a pure function of `i`.
pub trait Dataset: Send + Sync {
    /// Number of examples.
    fn len(&self) -> usize;

    /// Example `i < len()`.
    fn example(&self, i: usize) -> Result<Example>;

    /// The split as it is in one epoch of a training, where that differs from epoch to epoch: a pure function of
    /// (seed, epoch), with as many examples.
    fn in_epoch(&self, _seed: u64, _epoch: u64) -> Option<Arc<dyn Dataset>> {
        None
    }

    /// The split as `count` streams that begin anew in each epoch, where it can be: example i is the next window of
    /// stream i mod `count`; `len() / count` windows each.
    fn streams(&self, _count: usize, _seed: u64, _epoch: u64) -> Option<Arc<dyn Dataset>> {
        None
    }

    /// What simple methods reach on all examples, where such are known.
    fn baselines(&self) -> Vec<Baseline> {
        Vec::new()
    }

    /// Whether there is no example at all.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A task, ready for training.
pub struct Task {
    /// Its shape.
    pub spec: TaskSpec,
    /// Examples to learn from.
    pub train: Arc<dyn Dataset>,
    /// Examples to choose the checkpoint by.
    pub val: Arc<dyn Dataset>,
    /// Examples for the reported result.
    pub test: Arc<dyn Dataset>,
    /// SHA-256, in hex, of what identifies the three splits: equal hashes, equal splits.
    pub split_hash: String,
    /// The symbol of every token id, for token tasks.
    pub vocabulary: Option<Vec<String>>,
    /// How a new file becomes input; to be stored with the trained model.
    pub encoder: Encoder,
    /// Remarks for the user.
    pub notes: Vec<Note>,
}

/// The three splits, in the order train, val, test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Split {
    Train,
    Val,
    Test,
}

impl Split {
    pub(crate) const ALL: [Self; 3] = [Self::Train, Self::Val, Self::Test];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Val => "val",
            Self::Test => "test",
        }
    }
}
