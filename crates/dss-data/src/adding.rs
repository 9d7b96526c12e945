//! `adding`: two numbers of a long sequence are marked; the answer is their sum (Hochreiter & Schmidhuber 1997).
//!
//! Channel 0 is uniform on [0, 1), channel 1 is 1 at two positions, one in each half, and 0 elsewhere. Always answering
//! 1 has a mean squared error of 1/6.

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

/// Settings of the task `adding`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct AddingConfig {
    /// Length of a sequence, at least 2.
    pub length: usize,
    /// Training sequences per epoch.
    pub train: usize,
    /// Validation sequences.
    pub val: usize,
    /// Test sequences.
    pub test: usize,
    /// Random seed of the data.
    pub seed: u64,
}

impl Default for AddingConfig {
    fn default() -> Self {
        Self { length: 1000, train: 10_000, val: 1_000, test: 1_000, seed: 1112 }
    }
}

impl TaskSource for AddingConfig {
    fn load(&self, name: &str, _: Option<&Path>, _: &dyn Fn(&str)) -> Result<Task> {
        if self.length < 2 {
            return Err(Error::setting("length", self.length, "must be at least 2"));
        }
        limits::length("length", self.length)?;
        let spec = TaskSpec {
            name: name.to_owned(),
            input: InputKind::Values { channels: 2 },
            target: TargetKind::Values { outputs: 1 },
            len: self.length,
            pair: false,
        };
        let encoder = Encoder::ValueSteps { channels: 2, len: self.length };
        synthetic::task(Arc::new(self.clone()), spec, encoder, [self.train, self.val, self.test])
    }
}

impl Source for AddingConfig {
    fn identity(&self) -> serde_json::Value {
        serde_json::json!([self.length, self.seed])
    }

    fn example(&self, split: &str, i: u64) -> Example {
        let mut rng = stream(&format!("adding-{split}"), self.seed, i);
        let half = self.length / 2;
        let marked =
            [rng.random_range(0..half as u64), rng.random_range(half as u64..self.length as u64)];
        let mut values = vec![0.0; 2 * self.length];
        values.iter_mut().step_by(2).for_each(|x| *x = rng.random::<f32>());
        let mut sum = 0.0;
        for t in marked {
            values[2 * t as usize + 1] = 1.0;
            sum += values[2 * t as usize];
        }
        Example { input: Input::Values(values), second: None, target: Target::Values(vec![sum]) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn the_target_is_the_sum_of_the_marked(length in 2usize..200, i in 0usize..50) {
            let config = AddingConfig { length, train: 50, ..Default::default() };
            let task = config.load("adding", None, &|_| {}).unwrap();
            let Example { input: Input::Values(x), target: Target::Values(y), .. } =
                task.train.example(i).unwrap() else { panic!() };
            let marked: Vec<usize> = (0..length).filter(|t| x[2 * t + 1] == 1.0).collect();
            prop_assert_eq!(marked.len(), 2);
            prop_assert!(marked[0] < length / 2 && marked[1] >= length / 2);
            prop_assert_eq!(y, [x[2 * marked[0]] + x[2 * marked[1]]]);
            prop_assert!(x.iter().step_by(2).all(|v| (0.0..1.0).contains(v)));
            prop_assert_eq!(x.iter().skip(1).step_by(2).sum::<f32>(), 2.0);
        }
    }

    #[test]
    fn sizes_beyond_all_bounds_are_refused() {
        let refused = |config: AddingConfig| config.load("adding", None, &|_| {}).err().unwrap();
        let long = refused(AddingConfig { length: usize::MAX, ..Default::default() }).to_string();
        assert!(long.contains("task.length") && long.contains("2^24"), "{long}");
        let many = refused(AddingConfig { train: 1 << 32, ..Default::default() }).to_string();
        assert!(many.contains("task.train") && many.contains("2^32"), "{many}");
    }
}
