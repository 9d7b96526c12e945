//! Windows of a text: random ones to train on, fixed ones to be scored.

use std::ops::Range;
use std::sync::Arc;

use rand::RngExt;

use crate::random::stream;
use crate::{Dataset, Example, Input, Result, Target};

/// The ids of a text, as small as they fit.
pub(super) enum Tokens {
    Small(Vec<u8>),
    Large(Vec<u32>),
}

impl Tokens {
    pub(super) fn new(ids: Vec<u32>, vocab: usize) -> Self {
        match vocab <= 256 {
            true => Self::Small(ids.into_iter().map(|id| id as u8).collect()),
            false => Self::Large(ids),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Small(ids) => ids.len(),
            Self::Large(ids) => ids.len(),
        }
    }

    fn get(&self, range: Range<usize>) -> Vec<u32> {
        match self {
            Self::Small(ids) => ids[range].iter().map(|&id| id.into()).collect(),
            Self::Large(ids) => ids[range].to_vec(),
        }
    }

    /// Reads the positions before each of `targets`, and `context` more; asks for `targets`. Needs `targets.start > 0`.
    fn example(&self, targets: Range<usize>, context: usize) -> Example {
        let start = targets.start - 1 - context;
        let input = self.get(start..targets.end - 1);
        let unscored = std::iter::repeat_n(-1, context);
        let target = unscored.chain(self.get(targets).into_iter().map(|id| id as i32)).collect();
        Example {
            input: Input::Tokens(input),
            second: None,
            target: Target::PositionClasses(target),
        }
    }
}

/// Windows of `len` positions, all scored: number i begins in stretch i of the first `end` positions, at its start or,
/// in an epoch, anywhere.
pub(super) struct ShiftedWindows {
    tokens: Arc<Tokens>,
    end: usize,
    len: usize,
    epoch: Option<(u64, u64)>,
}

impl ShiftedWindows {
    /// Of the first `end` positions, which must be more than `len`.
    pub(super) fn new(tokens: Arc<Tokens>, end: usize, len: usize) -> Self {
        Self { tokens, end, len, epoch: None }
    }

    fn start(&self, i: usize) -> usize {
        let shift = match self.epoch {
            None => 0,
            Some((seed, epoch)) => {
                let mut rng = stream(&format!("lm-windows-{epoch}"), seed, i as u64);
                rng.random_range(0..self.len as u64) as usize
            }
        };
        // The window and the token after it.
        (i * self.len + shift).min(self.end - self.len - 1)
    }
}

impl Dataset for ShiftedWindows {
    fn len(&self) -> usize {
        (self.end - 1) / self.len
    }

    fn example(&self, i: usize) -> Result<Example> {
        let first = self.start(i) + 1;
        Ok(self.tokens.example(first..first + self.len, 0))
    }

    fn in_epoch(&self, seed: u64, epoch: u64) -> Option<Arc<dyn Dataset>> {
        let (tokens, end, len) = (self.tokens.clone(), self.end, self.len);
        Some(Arc::new(Self { tokens, end, len, epoch: Some((seed, epoch)) }))
    }

    fn streams(&self, count: usize, seed: u64, epoch: u64) -> Option<Arc<dyn Dataset>> {
        let windows = self.len() / count.max(1);
        // They begin anywhere in what is left over.
        let left = self.end - 1 - count * windows * self.len;
        let start = stream("lm-streams", seed, epoch).random_range(0..=left as u64) as usize;
        let (tokens, len) = (self.tokens.clone(), self.len);
        Some(Arc::new(Streams { tokens, start, len, count, windows }))
    }
}

/// Consecutive windows of equally long streams that follow each other in the text.
struct Streams {
    tokens: Arc<Tokens>,
    start: usize,
    len: usize,
    count: usize,
    windows: usize,
}

impl Dataset for Streams {
    fn len(&self) -> usize {
        self.count * self.windows
    }

    fn example(&self, i: usize) -> Result<Example> {
        let (window, stream) = (i / self.count, i % self.count);
        let first = self.start + (stream * self.windows + window) * self.len + 1;
        Ok(self.tokens.example(first..first + self.len, 0))
    }
}

/// Windows that score every position of a part once, each but those at the head of the text after `context` positions
/// that are only read.
pub(super) struct FixedWindows {
    tokens: Arc<Tokens>,
    part: Range<usize>,
    /// Scored positions per window.
    scored: usize,
    context: usize,
}

impl FixedWindows {
    /// `part` must not begin with the first token, which has no context; `context < len`.
    pub(super) fn new(tokens: Arc<Tokens>, part: Range<usize>, len: usize, context: usize) -> Self {
        Self { tokens, part, scored: len - context, context }
    }
}

impl Dataset for FixedWindows {
    fn len(&self) -> usize {
        self.part.len().div_ceil(self.scored)
    }

    fn example(&self, i: usize) -> Result<Example> {
        let start = self.part.start + i * self.scored;
        let end = (start + self.scored).min(self.part.end);
        Ok(self.tokens.example(start..end, self.context.min(start - 1)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The text 0, 1, 2, ...: a position is its id.
    fn count_up(n: usize) -> Arc<Tokens> {
        Arc::new(Tokens::new((0..n as u32).collect(), n))
    }

    fn parts(example: Example) -> (Vec<u32>, Vec<i32>) {
        match example {
            Example { input: Input::Tokens(x), target: Target::PositionClasses(y), .. } => (x, y),
            _ => panic!(),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn every_position_is_scored_once_after_its_context(
            n in 3usize..400, start in 1usize..300, len in 2usize..50, context in 0usize..49,
        ) {
            let (start, context) = (start.min(n - 1), context.min(len - 1));
            let windows = FixedWindows::new(count_up(n), start..n, len, context);
            let mut seen = Vec::new();
            for i in 0..windows.len() {
                let (x, y) = parts(windows.example(i).unwrap());
                prop_assert!(x.len() == y.len() && x.len() <= len);
                prop_assert!(x.windows(2).all(|pair| pair[1] == pair[0] + 1));
                for (t, (&x, &y)) in x.iter().zip(&y).enumerate().filter(|(_, (_, y))| **y >= 0) {
                    prop_assert_eq!(y, x as i32 + 1);
                    prop_assert!(t >= context.min(x as usize));
                    seen.push(y as usize);
                }
            }
            prop_assert_eq!(seen, (start..n).collect::<Vec<_>>());
        }

        #[test]
        fn training_windows_stay_in_their_part(
            n in 4usize..2000, len in 2usize..50, seed in any::<u64>(), epoch in any::<u64>(),
        ) {
            prop_assume!(n > len + 1);
            let end = n - 1;
            let all = ShiftedWindows::new(count_up(n), end, len);
            let shifted = all.in_epoch(seed, epoch).unwrap();
            prop_assert_eq!(shifted.len(), all.len());
            for i in 0..all.len() {
                let (x, y) = parts(shifted.example(i).unwrap());
                prop_assert!(x.len() == len && y.len() == len);
                prop_assert!(x.iter().zip(&y).all(|(&x, &y)| y == x as i32 + 1));
                prop_assert!((y[len - 1] as usize) < end);
                let stretch = i * len..(i + 1) * len;
                prop_assert!(stretch.contains(&(x[0] as usize)) || x[0] as usize == end - len - 1);
                prop_assert_eq!(parts(all.example(i).unwrap()).0[0] as usize, i * len);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn each_stream_continues_where_it_stopped(
            n in 100usize..2000, len in 2usize..30, count in 1usize..9, epoch in any::<u64>(),
        ) {
            let end = n - 1;
            let all = ShiftedWindows::new(count_up(n), end, len);
            let streams = all.streams(count, 7, epoch).unwrap();
            prop_assert_eq!(streams.len(), all.len() / count * count);
            let mut seen = std::collections::BTreeSet::new();
            let mut next = vec![None; count];
            for i in 0..streams.len() {
                let (x, y) = parts(streams.example(i).unwrap());
                prop_assert!(x.len() == len && x.iter().zip(&y).all(|(&x, &y)| y == x as i32 + 1));
                prop_assert!((y[len - 1] as usize) < end);
                let next = &mut next[i % count];
                prop_assert!(next.is_none() || *next == Some(x[0]));
                *next = Some(x[len - 1] + 1);
                seen.extend(x);
            }
            prop_assert_eq!(seen.len(), streams.len() * len, "nothing twice");
        }
    }

    #[test]
    fn windows_depend_on_seed_and_epoch() {
        let all = ShiftedWindows::new(count_up(1000), 900, 100);
        let start = |seed, epoch| {
            let set = all.in_epoch(seed, epoch).unwrap();
            (0..5).map(|i| parts(set.example(i).unwrap()).0[0]).collect::<Vec<_>>()
        };
        assert_eq!(start(1, 2), start(1, 2));
        assert_ne!(start(1, 2), start(1, 3));
        assert_ne!(start(1, 2), start(2, 2));
    }
}
