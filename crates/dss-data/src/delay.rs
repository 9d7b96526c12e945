//! `delay`: repeat at every position the symbol of d positions before. A pure memory task; nothing to download.
//!
//! The first `window` positions carry random symbols, the later ones the blank. Examples are generated when they are
//! needed, from (seed, split, number).

use std::path::Path;
use std::sync::Arc;

use documented::DocumentedFields;
use rand::RngExt;
use serde::{Deserialize, Serialize};

use crate::config::TaskSource;
use crate::random::stream;
use crate::synthetic::{self, Source};
use crate::{
    Encoder, Error, Example, Input, InputKind, Result, Target, TargetKind, Task, TaskSpec, limits,
};

/// Token of the positions after the window.
const BLANK: u32 = 1;
/// Token of symbol 0.
const FIRST_SYMBOL: u32 = 2;

/// Settings of the task `delay`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct DelayConfig {
    /// The delay: the target at position t is the symbol at position t - d.
    pub d: usize,
    /// Length of a sequence; 0 = d + window, or 2 d if window is 0.
    pub length: usize,
    /// Number of distinct symbols.
    pub symbols: usize,
    /// Leading positions that carry symbols, followed by blanks; 0 = all positions.
    pub window: usize,
    /// Training sequences per epoch.
    pub train: usize,
    /// Validation sequences.
    pub val: usize,
    /// Test sequences.
    pub test: usize,
    /// Random seed of the data.
    pub seed: u64,
}

impl Default for DelayConfig {
    fn default() -> Self {
        Self {
            d: 1000,
            length: 0,
            symbols: 8,
            window: 0,
            train: 10_000,
            val: 500,
            test: 500,
            seed: 1112,
        }
    }
}

impl TaskSource for DelayConfig {
    fn load(&self, name: &str, _: Option<&Path>, _: &dyn Fn(&str)) -> Result<Task> {
        for (key, value) in [("d", self.d), ("window", self.window), ("length", self.length)] {
            limits::length(key, value)?;
        }
        let length = self.length();
        limits::length("length", length)?;
        if length <= self.d {
            let what = format!("must be greater than d = {}; use 0 for automatic", self.d);
            return Err(Error::setting("length", self.length, what));
        }
        if !(2..=100_000).contains(&self.symbols) {
            return Err(Error::setting("symbols", self.symbols, "must be 2..100000"));
        }
        let symbols: Vec<String> = (0..self.symbols).map(|s| s.to_string()).collect();
        let vocabulary: Vec<String> =
            ["<pad>".into(), "<blank>".into()].into_iter().chain(symbols.clone()).collect();
        let spec = TaskSpec {
            name: name.to_owned(),
            input: InputKind::Tokens { vocab: vocabulary.len() },
            target: TargetKind::PositionClasses { labels: symbols },
            len: length,
            pair: false,
        };
        let encoder = Encoder::TokenRows { vocab: vocabulary.len(), len: length };
        let counts = [self.train, self.val, self.test];
        let task = synthetic::task(Arc::new(self.clone()), spec, encoder, counts)?;
        Ok(Task { vocabulary: Some(vocabulary), ..task })
    }
}

impl DelayConfig {
    fn length(&self) -> usize {
        match (self.length, self.window) {
            (0, 0) => 2 * self.d.max(1),
            (0, window) => self.d + window,
            (length, _) => length,
        }
    }
}

impl Source for DelayConfig {
    fn identity(&self) -> serde_json::Value {
        let Self { d, symbols, window, seed, .. } = self;
        serde_json::json!([d, self.length(), symbols, window, seed])
    }

    fn example(&self, split: &str, i: u64) -> Example {
        let mut rng = stream(&format!("delay-{split}"), self.seed, i);
        let length = self.length();
        let window = if self.window == 0 { length } else { self.window.min(length) };
        let highest = FIRST_SYMBOL + self.symbols as u32 - 1;
        let tokens: Vec<u32> = (0..length)
            .map(|t| if t < window { rng.random_range(FIRST_SYMBOL..=highest) } else { BLANK })
            .collect();
        let asked = |t: usize| match t.checked_sub(self.d) {
            Some(s) if s < window => (tokens[s] - FIRST_SYMBOL) as i32,
            _ => -1,
        };
        let target = Target::PositionClasses((0..length).map(asked).collect());
        Example { input: Input::Tokens(tokens), second: None, target }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn every_asked_position_names_the_symbol_d_before(
            d in 0usize..20, window in 0usize..12, extra in 1usize..9, symbols in 2usize..5,
        ) {
            for length in [0, d + extra] {
                let config = DelayConfig { d, length, symbols, window, train: 3, ..Default::default() };
                let task = config.load("delay", None, &|_| {}).unwrap();
                let Example { input: Input::Tokens(x), target: Target::PositionClasses(y), .. } =
                    task.train.example(2).unwrap() else { panic!() };
                prop_assert!(x.len() == task.spec.len && y.len() == x.len());
                for t in 0..x.len() {
                    let blank = window > 0 && t >= window;
                    prop_assert_eq!(x[t] == BLANK, blank);
                    prop_assert!(x[t] < 2 + symbols as u32);
                    let expected = if t < d || x[t - d] == BLANK { -1 } else { x[t - d] as i32 - 2 };
                    prop_assert_eq!(y[t], expected);
                }
                prop_assert!(y.iter().any(|&y| y >= 0));
            }
        }
    }

    #[test]
    fn examples_depend_on_seed_split_and_number_only() {
        let config = DelayConfig { d: 10, train: 4, val: 4, test: 4, ..Default::default() };
        let [a, b] = [0, 0].map(|_| config.load("delay", None, &|_| {}).unwrap());
        let other = DelayConfig { seed: 5, ..config.clone() }.load("delay", None, &|_| {}).unwrap();
        assert_eq!(a.train.example(3).unwrap(), b.train.example(3).unwrap());
        assert_eq!(a.split_hash, b.split_hash);
        assert_ne!(a.split_hash, other.split_hash);
        let first = a.train.example(3).unwrap();
        for example in
            [a.train.example(2), a.val.example(3), a.test.example(3), other.train.example(3)]
        {
            assert_ne!(first, example.unwrap());
        }
    }

    #[test]
    fn settings_are_checked() {
        let config = DelayConfig { d: 10, length: 10, ..Default::default() };
        let error = config.load("delay", None, &|_| {}).err().unwrap().to_string();
        assert!(error.contains("task.length = 10"), "{error}");
        let config = DelayConfig { d: 10, val: 0, ..Default::default() };
        let error = config.load("delay", None, &|_| {}).err().unwrap().to_string();
        assert!(error.contains("task.val = 0"), "{error}");
    }

    #[test]
    fn sizes_beyond_all_bounds_are_refused() {
        let some = DelayConfig { d: 10, ..Default::default() };
        for (key, config) in [
            ("d", DelayConfig { d: usize::MAX, ..some.clone() }),
            ("window", DelayConfig { window: usize::MAX, ..some.clone() }),
            ("length", DelayConfig { length: usize::MAX, ..some.clone() }),
            ("length", DelayConfig { d: 1 << 24, ..some.clone() }),
            ("test", DelayConfig { test: usize::MAX, ..some }),
        ] {
            let error = config.load("delay", None, &|_| {}).err().unwrap().to_string();
            assert!(error.starts_with(&format!("task.{key} = ")), "{error}");
        }
    }
}
