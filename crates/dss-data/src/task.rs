//! What a task is: the shape of its examples, three splits, and how new input is encoded.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::hash::SplitHash;
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

/// What the model predicts.
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
    /// The input.
    pub input: InputKind,
    /// The target.
    pub target: TargetKind,
    /// The length L of the model; no example is longer.
    pub len: usize,
    /// Whether an example consists of two sequences.
    pub pair: bool,
}

impl TaskSpec {
    /// One class per sequence.
    pub(crate) fn classes<L: Into<String>>(
        name: &str,
        input: InputKind,
        labels: impl IntoIterator<Item = L>,
        len: usize,
    ) -> Self {
        let labels = labels.into_iter().map(Into::into).collect();
        let target = TargetKind::Class { labels };
        Self { name: name.to_owned(), input, target, len, pair: false }
    }
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
    /// A class for every position, `[len]`; -1 where there is no target.
    PositionClasses(Vec<i32>),
    /// A vector for every position, `[len, outputs]`; NaN where there is no target.
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

impl Example {
    /// One sequence and its class.
    pub(crate) fn classified(input: Input, class: u32) -> Self {
        Self { input, second: None, target: Target::Class(class) }
    }
}

/// The standard deviation and the mean of a training's targets, by output: a model learns (target - mean) / sd, whatever
/// the units of the targets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetScaling {
    /// Mean of the training targets.
    pub mean: Vec<f64>,
    /// Their standard deviation; 1 where they are constant.
    pub sd: Vec<f64>,
}

impl TargetScaling {
    /// That of the targets of a training, all of the same number of outputs.
    pub(crate) fn of_targets<'a>(targets: impl Iterator<Item = &'a [f32]> + Clone) -> Self {
        let outputs = targets.clone().next().map_or(0, <[f32]>::len);
        let n = targets.clone().count().max(1) as f64;
        let average = |of: &dyn Fn(&[f32]) -> f64| targets.clone().map(of).sum::<f64>() / n;
        let mean: Vec<f64> = (0..outputs).map(|k| average(&|y| y[k].into())).collect();
        let sd = |k: usize| {
            let sd = average(&|y| (f64::from(y[k]) - mean[k]).powi(2)).sqrt();
            if sd > 0.0 { sd } else { 1.0 }
        };
        Self { sd: (0..outputs).map(sd).collect(), mean }
    }
}

/// The scores of a simple method on the examples of a split.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// The method.
    pub name: String,
    /// Its share of right classes, of a classification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<f64>,
    /// Its mean squared error, of a regression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mse: Option<f64>,
    /// Its mean absolute error, of a regression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mae: Option<f64>,
}

impl Baseline {
    /// A method of a regression.
    pub fn errors(name: impl Into<String>, mse: f64, mae: f64) -> Self {
        Self { name: name.into(), mse: Some(mse), mae: Some(mae), accuracy: None }
    }
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

    /// The split as `count` streams that start again in each epoch, where it can be: example i is the next window of
    /// stream i mod `count`; `len() / count` windows each.
    fn streams(&self, _count: usize, _seed: u64, _epoch: u64) -> Option<Arc<dyn Dataset>> {
        None
    }

    /// The scores of simple methods on all examples, if there are any.
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
    /// Examples that select the checkpoint.
    pub val: Arc<dyn Dataset>,
    /// Examples for the reported result.
    pub test: Arc<dyn Dataset>,
    /// SHA-256, in hex, of what identifies the three splits: equal hashes, equal splits.
    pub split_hash: String,
    /// The hash that earlier versions of the program computed for these splits, where it differs.
    pub(crate) earlier_split_hash: Option<String>,
    /// The symbol of every token id, for token tasks.
    pub vocabulary: Option<Vec<String>>,
    /// How a new file becomes input; to be stored with the trained model.
    pub encoder: Encoder,
    /// The scaling of the targets that a training should use, if any. Examples and scores have the original targets.
    pub target_scaling: Option<TargetScaling>,
    /// Remarks for the user.
    pub notes: Vec<Note>,
}

impl Task {
    /// A task with the splits train, val and test, without remarks.
    pub(crate) fn new(
        spec: TaskSpec,
        [train, val, test]: [Arc<dyn Dataset>; 3],
        hash: SplitHash,
        encoder: Encoder,
    ) -> Self {
        Self {
            spec,
            train,
            val,
            test,
            split_hash: hash.hex(),
            earlier_split_hash: None,
            vocabulary: encoder.vocabulary(),
            encoder,
            target_scaling: None,
            notes: Vec::new(),
        }
    }

    /// Whether a run that stored this split hash had the same splits.
    pub fn has_splits(&self, split_hash: &str) -> bool {
        split_hash == self.split_hash || self.earlier_split_hash.as_deref() == Some(split_hash)
    }
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
