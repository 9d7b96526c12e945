//! Learning from the inputs of a task alone: the objective of `dss pretrain`.
//!
//! A causal model predicts at every position what follows. For a bidirectional one some positions are blanked out (with
//! token 0, which is otherwise padding, or the value 0), and it predicts what was there.

use std::sync::Arc;

use dss_data::{Dataset, Example, Input, InputKind, Result, Target, TargetKind, Task, TaskSpec};

/// One position in this many is blank.
const BLANK_EVERY: u64 = 6;

/// The task of predicting the inputs of `task`; both inputs of a pair count as examples.
pub fn pretext(mut task: Task, bidirectional: bool) -> Task {
    let symbols = |vocab: usize| {
        let names = task.vocabulary.clone().filter(|names| names.len() == vocab);
        names.unwrap_or_else(|| (0..vocab).map(|id| id.to_string()).collect())
    };
    let (channels, target) = match task.spec.input {
        InputKind::Tokens { vocab } if bidirectional => {
            (1, TargetKind::PositionClasses { labels: symbols(vocab) })
        }
        InputKind::Tokens { vocab } => (1, TargetKind::NextToken { symbols: symbols(vocab) }),
        InputKind::Values { channels } => {
            (channels, TargetKind::PositionValues { outputs: channels })
        }
    };
    let inputs = if task.spec.pair { 2 } else { 1 };
    let asked = |examples| -> Arc<dyn Dataset> {
        let blanks = bidirectional.then_some((0, 0));
        Arc::new(Inputs { examples, inputs, channels, blanks })
    };
    let (train, val, test) = (asked(task.train), asked(task.val), asked(task.test));
    (task.train, task.val, task.test) = (train, val, test);
    task.spec = TaskSpec { target, pair: false, ..task.spec };
    task.target_scaling = None;
    task
}

/// The inputs of other examples, each with a target made from it.
struct Inputs {
    examples: Arc<dyn Dataset>,
    /// Inputs per example.
    inputs: usize,
    channels: usize,
    /// (seed, epoch) of the blank positions; `None`: the next symbol is asked for.
    blanks: Option<(u64, u64)>,
}

impl Dataset for Inputs {
    fn len(&self) -> usize {
        self.examples.len() * self.inputs
    }

    fn example(&self, i: usize) -> Result<Example> {
        let example = self.examples.example(i / self.inputs)?;
        let input = example.second.filter(|_| i % self.inputs == 1).unwrap_or(example.input);
        let (input, target) = match self.blanks {
            Some((seed, epoch)) => self.blanked(input, &|t| blank(seed, epoch, i as u64, t as u64)),
            None => self.shifted(input),
        };
        Ok(Example { input, second: None, target })
    }

    fn in_epoch(&self, seed: u64, epoch: u64) -> Option<Arc<dyn Dataset>> {
        let examples = self.examples.in_epoch(seed, epoch);
        if examples.is_none() && self.blanks.is_none() {
            return None;
        }
        let examples = examples.unwrap_or_else(|| self.examples.clone());
        // Epoch 0 is that of the validation and test sets.
        let blanks = self.blanks.map(|_| (seed, epoch + 1));
        Some(Arc::new(Self { examples, blanks, ..*self }))
    }
}

impl Inputs {
    /// The input, and at each position what follows it; nothing at the last one.
    fn shifted(&self, input: Input) -> (Input, Target) {
        let target = match &input {
            Input::Tokens(ids) => {
                let next = ids.iter().skip(1).map(|&id| id as i32);
                Target::PositionClasses(next.chain([-1]).collect())
            }
            Input::Values(values) => {
                let next = values.iter().skip(self.channels).copied();
                Target::PositionValues(next.chain(vec![f32::NAN; self.channels]).collect())
            }
        };
        (input, target)
    }

    /// The input with blank positions, and what was there; nothing elsewhere.
    fn blanked(&self, input: Input, blank: &dyn Fn(usize) -> bool) -> (Input, Target) {
        match input {
            Input::Tokens(mut ids) => {
                let hide = |(t, id): (usize, &mut u32)| match blank(t) {
                    true => std::mem::take(id) as i32,
                    false => -1,
                };
                let target = ids.iter_mut().enumerate().map(hide).collect();
                (Input::Tokens(ids), Target::PositionClasses(target))
            }
            Input::Values(mut values) => {
                let hide = |(i, value): (usize, &mut f32)| match blank(i / self.channels) {
                    true => std::mem::take(value),
                    false => f32::NAN,
                };
                let target = values.iter_mut().enumerate().map(hide).collect();
                (Input::Values(values), Target::PositionValues(target))
            }
        }
    }
}

/// Whether position `t` of example `i` is blank: every number is mixed in as SplitMix64 does.
fn blank(seed: u64, epoch: u64, i: u64, t: u64) -> bool {
    let mixed = [seed, epoch, i, t].iter().fold(0u64, |state, &number| {
        let z = (state ^ number).wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    });
    mixed.is_multiple_of(BLANK_EVERY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Setting};

    fn task(name: &str, bidirectional: bool) -> (Task, Task) {
        let sets = ["train", "val", "test"].map(|key| Setting::new(format!("task.{key}"), 30));
        let config = Config::resolve(name, None, &[], &sets).unwrap();
        let load = || config.task.load(None, &|_| {}).unwrap();
        (load(), pretext(load(), bidirectional))
    }

    #[test]
    fn causal_models_are_asked_for_the_next_symbol() {
        let (plain, next) = task("listops", false);
        assert!(
            matches!(&next.spec.target, TargetKind::NextToken { symbols } if symbols.len() == 18)
        );
        let (a, b) = (plain.train.example(3).unwrap(), next.train.example(3).unwrap());
        let (Input::Tokens(ids), Target::PositionClasses(target)) = (&a.input, b.target) else {
            panic!()
        };
        assert_eq!((&a.input, ids.len()), (&b.input, target.len()));
        assert!(ids.iter().skip(1).zip(&target).all(|(&id, &class)| id as i32 == class));
        assert_eq!(target.last(), Some(&-1));
        assert!(next.train.in_epoch(1, 2).is_none());
    }

    #[test]
    fn bidirectional_models_are_asked_for_what_was_hidden() {
        let (plain, denoise) = task("listops", true);
        let epoch = |epoch| denoise.train.in_epoch(1, epoch).unwrap();
        let (mut hidden, mut all) = (0, 0);
        for i in 0..30 {
            let (a, b) = (plain.train.example(i).unwrap(), epoch(0).example(i).unwrap());
            assert_eq!(b, epoch(0).example(i).unwrap());
            assert_ne!(b, epoch(1).example(i).unwrap());
            let (Input::Tokens(a), Input::Tokens(seen)) = (a.input, b.input) else { panic!() };
            let Target::PositionClasses(target) = b.target else { panic!() };
            for ((id, seen), target) in a.into_iter().zip(seen).zip(target) {
                let expected = if seen == 0 { (0, id as i32) } else { (id, -1) };
                assert_eq!((seen, target), expected);
                hidden += u32::from(seen == 0);
                all += 1;
            }
        }
        let share = f64::from(hidden) / f64::from(all);
        assert!((share - 1.0 / BLANK_EVERY as f64).abs() < 0.05, "{share}");
    }

    #[test]
    fn numbers_are_predicted_too() {
        let (plain, next) = task("adding", false);
        assert_eq!(next.spec.target, TargetKind::PositionValues { outputs: 2 });
        let (a, b) = (plain.val.example(0).unwrap(), next.val.example(0).unwrap());
        let (Input::Values(values), Target::PositionValues(target)) = (a.input, b.target) else {
            panic!()
        };
        assert_eq!(values[2..], target[..target.len() - 2]);
        let (_, denoise) = task("adding", true);
        let Example { input: Input::Values(seen), target: Target::PositionValues(target), .. } =
            denoise.val.example(0).unwrap()
        else {
            panic!()
        };
        let pairs = values.iter().zip(seen.iter().zip(&target));
        assert!(pairs.clone().any(|(_, (_, target))| !target.is_nan()));
        for (value, (seen, target)) in pairs {
            let hidden = !target.is_nan();
            assert_eq!(
                (*seen, hidden.then_some(*target)),
                if hidden { (0.0, Some(*value)) } else { (*value, None) }
            );
        }
    }
}
