//! From examples to one rectangular batch.

use crate::{Example, Input, InputKind, Target, TargetKind, TaskSpec};

/// B examples in arrays of one length l, padded on the right.
///
/// Pair tasks have 2B rows: first all first inputs, then all second ones.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// Sequences: B, or 2B for pairs.
    pub rows: usize,
    /// Common length l.
    pub l: usize,
    /// The sequences.
    pub input: BatchInput,
    /// True length of each row.
    pub lengths: Vec<usize>,
    /// The targets of the B examples.
    pub target: BatchTarget,
    /// Examples B.
    pub examples: usize,
}

/// The sequences of a batch.
#[derive(Clone, Debug, PartialEq)]
pub enum BatchInput {
    /// Token ids, `[rows, l]`; 0 in the padding.
    Tokens(Vec<i32>),
    /// Numbers; 0 in the padding.
    Values {
        /// `[rows, l, channels]`.
        data: Vec<f32>,
        /// Numbers per position.
        channels: usize,
    },
}

/// The targets of a batch.
#[derive(Clone, Debug, PartialEq)]
pub enum BatchTarget {
    /// Classes, `[B]`.
    Class(Vec<i32>),
    /// Vectors, `[B, outputs]`.
    Values(Vec<f32>),
    /// Classes by position, `[B, l]`; -1 where there is no target, as in the padding.
    PositionClasses(Vec<i32>),
    /// Vectors by position, `[B, l, outputs]`; NaN where there is no target, as in the padding.
    PositionValues(Vec<f32>),
}

/// The length that a batch is padded to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// As its longest row, rounded up to a multiple of 64, at most the task's length.
    Longest,
    /// As its longest row, rounded up to a multiple of 16: for batches of sequences of similar length.
    Tight,
    /// As the task's length.
    Full,
}

impl Padding {
    fn length(self, longest: usize, full: usize) -> usize {
        match self {
            Self::Longest => longest.next_multiple_of(64).min(full),
            Self::Tight => longest.next_multiple_of(16).min(full),
            Self::Full => full,
        }
    }
}

/// Puts examples into one batch.
///
/// # Panics
/// If an example does not have the kinds, lengths or pairing of `spec`: a bug of the data set, not bad data.
pub fn collate(spec: &TaskSpec, examples: Vec<Example>, padding: Padding) -> Batch {
    let inputs: Vec<&Input> = if spec.pair {
        let second = |e: &'_ Example| e.second.is_some();
        assert!(examples.iter().all(second), "{}: a pair task needs second inputs", spec.name);
        let firsts = examples.iter().map(|e| &e.input);
        firsts.chain(examples.iter().filter_map(|e| e.second.as_ref())).collect()
    } else {
        examples.iter().map(|e| &e.input).collect()
    };
    let lengths: Vec<usize> = inputs.iter().map(|input| length(spec, input)).collect();
    let longest = lengths.iter().copied().max().unwrap_or(0);
    assert!(longest <= spec.len, "{}: example of {longest} > L = {}", spec.name, spec.len);
    let l = padding.length(longest, spec.len);
    Batch {
        rows: inputs.len(),
        l,
        input: collate_inputs(spec, &inputs, l),
        target: collate_targets(spec, &examples, l),
        examples: examples.len(),
        lengths,
    }
}

/// Positions of an input.
fn length(spec: &TaskSpec, input: &Input) -> usize {
    match (&spec.input, input) {
        (InputKind::Tokens { .. }, Input::Tokens(tokens)) => tokens.len(),
        (InputKind::Values { channels }, Input::Values(values)) => {
            assert_eq!(values.len() % channels, 0, "{}: whole positions only", spec.name);
            values.len() / channels
        }
        _ => panic!("{}: the input is not of the kind {:?}", spec.name, spec.input),
    }
}

fn collate_inputs(spec: &TaskSpec, inputs: &[&Input], l: usize) -> BatchInput {
    match spec.input {
        InputKind::Tokens { .. } => {
            let mut data = vec![0; inputs.len() * l];
            for (row, input) in data.chunks_mut(l.max(1)).zip(inputs) {
                if let Input::Tokens(tokens) = input {
                    row.iter_mut().zip(tokens).for_each(|(to, &id)| *to = id as i32);
                }
            }
            BatchInput::Tokens(data)
        }
        InputKind::Values { channels } => {
            let rows = inputs.iter().map(|input| match input {
                Input::Values(values) => values.as_slice(),
                Input::Tokens(_) => &[],
            });
            BatchInput::Values { data: pad(rows, l * channels, 0.0), channels }
        }
    }
}

fn collate_targets(spec: &TaskSpec, examples: &[Example], l: usize) -> BatchTarget {
    let wrong = || -> ! { panic!("{}: a target is not of the kind {:?}", spec.name, spec.target) };
    let targets = examples.iter().map(|e| &e.target);
    match &spec.target {
        TargetKind::Class { .. } => BatchTarget::Class(
            targets.map(|t| if let Target::Class(c) = t { *c as i32 } else { wrong() }).collect(),
        ),
        TargetKind::Values { outputs } => {
            let rows = targets.map(|t| match t {
                Target::Values(v) if v.len() == *outputs => v.as_slice(),
                _ => wrong(),
            });
            BatchTarget::Values(pad(rows, *outputs, f32::NAN))
        }
        TargetKind::PositionClasses { .. } | TargetKind::NextToken { .. } => {
            let rows = targets.map(|t| match t {
                Target::PositionClasses(v) if v.len() <= l => v.as_slice(),
                _ => wrong(),
            });
            BatchTarget::PositionClasses(pad(rows, l, -1))
        }
        TargetKind::PositionValues { outputs } => {
            let rows = targets.map(|t| match t {
                Target::PositionValues(v) if v.len() <= l * outputs => v.as_slice(),
                _ => wrong(),
            });
            BatchTarget::PositionValues(pad(rows, l * outputs, f32::NAN))
        }
    }
}

/// Rows one after the other, each filled up to `width`.
fn pad<'a, T: Copy + 'a>(rows: impl Iterator<Item = &'a [T]>, width: usize, fill: T) -> Vec<T> {
    let mut data = Vec::with_capacity(rows.size_hint().0 * width);
    for row in rows {
        let end = data.len() + width;
        data.extend_from_slice(row);
        data.resize(end, fill);
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(input: InputKind, target: TargetKind, len: usize, pair: bool) -> TaskSpec {
        TaskSpec { name: "test".into(), input, target, len, pair }
    }

    fn tokens(n: usize, class: u32) -> Example {
        let input = Input::Tokens((1..=n as u32).collect());
        Example { input, second: None, target: Target::Class(class) }
    }

    fn two_classes() -> TargetKind {
        TargetKind::Class { labels: vec!["a".into(), "b".into()] }
    }

    #[test]
    fn longest_is_a_multiple_of_64_up_to_the_full_length() {
        let spec = spec(InputKind::Tokens { vocab: 300 }, two_classes(), 200, false);
        for (n, expected) in [(1, 64), (64, 64), (65, 128), (129, 192), (193, 200), (200, 200)] {
            let batch = collate(&spec, vec![tokens(1, 0), tokens(n, 1)], Padding::Longest);
            assert_eq!((batch.l, batch.lengths), (expected, vec![1, n]));
        }
        assert_eq!(collate(&spec, vec![tokens(1, 0)], Padding::Full).l, 200);
        assert_eq!(collate(&spec, vec![tokens(65, 0)], Padding::Tight).l, 80);
    }

    #[test]
    fn tokens_are_padded_on_the_right_with_zero() {
        let spec = spec(InputKind::Tokens { vocab: 9 }, two_classes(), 4, false);
        let batch = collate(&spec, vec![tokens(2, 1), tokens(3, 0)], Padding::Full);
        assert_eq!(batch.input, BatchInput::Tokens(vec![1, 2, 0, 0, 1, 2, 3, 0]));
        assert_eq!(batch.target, BatchTarget::Class(vec![1, 0]));
        assert_eq!((batch.rows, batch.examples), (2, 2));
    }

    #[test]
    fn values_keep_their_channels_together() {
        let target = TargetKind::PositionValues { outputs: 1 };
        let spec = spec(InputKind::Values { channels: 2 }, target, 3, false);
        let example = Example {
            input: Input::Values(vec![1.0, 2.0, 3.0, 4.0]),
            second: None,
            target: Target::PositionValues(vec![5.0, 6.0]),
        };
        let batch = collate(&spec, vec![example], Padding::Full);
        let data = vec![1.0, 2.0, 3.0, 4.0, 0.0, 0.0];
        assert_eq!(batch.input, BatchInput::Values { data, channels: 2 });
        let BatchTarget::PositionValues(target) = batch.target else { panic!() };
        assert!(target[..2] == [5.0, 6.0] && target[2].is_nan() && target.len() == 3);
    }

    #[test]
    fn unasked_positions_are_minus_one_in_the_padding_too() {
        let target = TargetKind::PositionClasses { labels: vec!["a".into()] };
        let spec = spec(InputKind::Tokens { vocab: 9 }, target, 4, false);
        let example = Example {
            input: Input::Tokens(vec![1, 2]),
            second: None,
            target: Target::PositionClasses(vec![-1, 0]),
        };
        let batch = collate(&spec, vec![example], Padding::Full);
        assert_eq!(batch.target, BatchTarget::PositionClasses(vec![-1, 0, -1, -1]));
    }

    #[test]
    fn pairs_stand_first_inputs_first() {
        let spec = spec(InputKind::Tokens { vocab: 9 }, two_classes(), 2, true);
        let pair = |a: u32, b: Vec<u32>| Example {
            input: Input::Tokens(vec![a]),
            second: Some(Input::Tokens(b)),
            target: Target::Class(0),
        };
        let batch = collate(&spec, vec![pair(1, vec![3, 3]), pair(2, vec![4])], Padding::Longest);
        assert_eq!(batch.input, BatchInput::Tokens(vec![1, 0, 2, 0, 3, 3, 4, 0]));
        assert_eq!((batch.rows, batch.examples, batch.lengths), (4, 2, vec![1, 1, 2, 1]));
    }
}
