//! What a budget means for a task: which preset, how many steps, how many examples.
//!
//! Under a budget of time a task has its preset `laptop` (or `causal` or `hard`, if it has that), and each of its runs the same
//! number of optimiser steps, whatever the model: as many as DSS-softmax makes in that time on this machine, less the
//! evaluations. The schedule is half a cosine over these steps. Where evaluations would take too large a share, the
//! validation and test sets are cut; where more examples can be generated than the preset has, up to the paper's number,
//! they are.

use dss_train::config::{Config, DEFAULT_PRESET, Overlay, Setting, presets_of};
use serde::{Deserialize, Serialize};

use super::budget::Budget;
use super::speed::Speed;

/// The preset of the paper's settings.
pub(super) const PAPER: &str = "paper";
/// Evaluations of a run.
const EVALUATIONS: u64 = 8;
/// Shares of a budget that all validations and the test may take.
const VAL_SHARE: f64 = 1.0 / 8.0;
const TEST_SHARE: f64 = 1.0 / 6.0;
/// Examples that a validation or test set keeps, if it has them.
const LEAST_EXAMPLES: u64 = 200;
/// Steps that a run has at least.
const LEAST_STEPS: u64 = 10;
/// Positions of all training examples that are generated at most.
const MOST_POSITIONS: u64 = 1 << 28;

/// The settings of a task in a grid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The preset they start from.
    pub preset: String,
    /// Settings that override the preset.
    pub settings: Overlay,
    /// Measured speed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<Speed>,
}

/// The preset that a task has under a budget. If there is one that reads forwards only, as in the paper, it is that:
/// recurrent nets cannot look ahead, and are compared with models that do not. Pathfinder's is the one without a
/// curriculum, which a budget may cut short.
pub(super) fn preset(task: &str, budget: Budget) -> &'static str {
    match budget {
        Budget::Full => PAPER,
        Budget::Seconds(_) | Budget::Steps(_) => presets_of(task)
            .map(|p| p.name)
            .find(|name| ["causal", "hard"].contains(name))
            .unwrap_or(DEFAULT_PRESET),
    }
}

impl Plan {
    /// The plan for a number of steps, on all examples of the preset.
    pub(super) fn of_steps(config: &Config, steps: u64) -> Self {
        Self {
            preset: preset(config.task.name(), Budget::Steps(steps)).to_owned(),
            settings: run_length(config, steps, steps),
            speed: None,
        }
    }

    /// The paper's settings.
    pub(super) fn full() -> Self {
        Self { preset: PAPER.to_owned(), settings: Overlay::default(), speed: None }
    }

    /// The plan for a time. `config`: that of DSS-softmax; `paper`: its preset of the paper, if there is one and more
    /// training examples than `config` has may be made.
    pub(super) fn of_time(
        config: &Config,
        paper: Option<&Config>,
        seconds: f64,
        speed: Speed,
    ) -> Self {
        let [train, val, test] = speed.examples.map(|n| n as u64);
        let affordable = |share: f64, times: u64| {
            (seconds * share / (speed.seconds_per_example.max(1e-9) * times as f64)) as u64
        };
        let (kept_val, cut_val) = cut(config, val, affordable(VAL_SHARE, EVALUATIONS));
        let (kept_test, cut_test) = cut(config, test, affordable(TEST_SHARE, 1));
        let scored = (EVALUATIONS * kept_val + kept_test) as f64 * speed.seconds_per_example;
        let steps = ((seconds - scored).max(0.0) / speed.seconds_per_step.max(1e-9)) as u64;
        let steps = two_digits(steps).max(LEAST_STEPS);
        let per_step = (config.train.batch * config.train.accumulate).max(1) as u64;
        let wanted =
            steps.saturating_mul(per_step).min(MOST_POSITIONS / speed.length.max(1) as u64);
        let (here, there) = (training_examples(config), paper.map_or(0, training_examples));
        // 0 means all there are.
        let grown = two_digits(wanted).min(there);
        let grown = (here > 0 && grown > here).then_some(grown);
        let epochs = steps.div_ceil((grown.unwrap_or(train) / per_step).max(1));
        let mut settings = run_length(config, steps, epochs);
        for (key, count) in [("task.train", grown), ("task.val", cut_val), ("task.test", cut_test)]
        {
            settings.extend(count.map(|n| Setting::new(key, n as i64)));
        }
        let preset = preset(config.task.name(), Budget::Seconds(seconds as u64)).to_owned();
        Self { preset, settings, speed: Some(speed) }
    }
}

fn run_length(config: &Config, steps: u64, epochs: u64) -> Overlay {
    let warmup = config.train.warmup_steps.min(steps / 10);
    Overlay::default()
        .with("train.max_steps", steps as i64)
        .with("train.epochs", epochs as i64)
        .with("train.eval_every", steps.div_ceil(EVALUATIONS) as i64)
        .with("train.warmup_steps", warmup as i64)
        .with("train.schedule", "cosine")
        .with("train.early_stop", 0)
}

/// How many examples of a split are used, and the setting if that is fewer than there are.
fn cut(config: &Config, there: u64, affordable: u64) -> (u64, Option<u64>) {
    let kept = two_digits(affordable).max(LEAST_EXAMPLES);
    match kept < there && config.task.counts().is_some() {
        true => (kept, Some(kept)),
        false => (there, None),
    }
}

/// Training examples that are asked for; 0 if the task does not count them, or for all there are.
pub(super) fn training_examples(config: &Config) -> u64 {
    config.task.counts().map_or(0, |[train, ..]| train as u64)
}

/// The number rounded down to two digits: small differences of speed do not show.
fn two_digits(n: u64) -> u64 {
    let unit = 10u64.pow(n.checked_ilog10().unwrap_or(0).saturating_sub(1));
    n / unit * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speed(seconds_per_step: f64, seconds_per_example: f64, examples: [usize; 3]) -> Speed {
        Speed { seconds_per_step, seconds_per_example, examples, length: 200 }
    }

    fn listops(preset: &str) -> Config {
        Config::resolve("listops", Some(preset), &[], &[]).unwrap()
    }

    fn has(plan: &Plan, setting: &str) -> bool {
        plan.settings.iter().any(|s| s.to_string() == setting)
    }

    fn sets(plan: &Plan, key: &str) -> bool {
        plan.settings.iter().any(|s| s.key() == key)
    }

    #[test]
    fn steps_fill_what_evaluations_leave() {
        let (here, paper) = (listops("causal"), listops("paper"));
        // 8 · 1000 + 1000 evaluations take 9 s, the steps 591 s.
        let plan =
            Plan::of_time(&here, Some(&paper), 600.0, speed(0.1, 0.001, [20_000, 1000, 1000]));
        for setting in ["train.max_steps=5900", "train.eval_every=738", "task.train=96000"] {
            assert!(has(&plan, setting), "no {setting} in {plan:?}");
        }
        assert!(has(&plan, "train.epochs=4") && has(&plan, "train.schedule=cosine"), "{plan:?}");
        assert!(!sets(&plan, "task.val"), "{plan:?}");
    }

    #[test]
    fn long_evaluations_are_cut() {
        let here = listops("causal");
        let plan = Plan::of_time(&here, None, 60.0, speed(0.1, 0.01, [20_000, 1000, 1000]));
        // 60/8 s for 8 validations, 60/6 s for the test: 93, raised to 200, and 1000 examples.
        assert!(has(&plan, "task.val=200"), "{plan:?}");
        assert!(!sets(&plan, "task.test"), "{plan:?}");
        assert!(has(&plan, "train.max_steps=340"), "{plan:?}");
    }

    #[test]
    fn nothing_is_too_short() {
        let plan = Plan::of_time(&listops("causal"), None, 1.0, speed(10.0, 1.0, [100, 10, 10]));
        assert!(has(&plan, "train.max_steps=10") && has(&plan, "train.epochs=5"), "{plan:?}");
    }

    #[test]
    fn plans_survive_their_file() {
        let plan = Plan::of_time(&listops("causal"), None, 60.0, speed(0.1, 0.01, [9, 9, 9]));
        let text = toml::to_string(&plan).unwrap();
        assert_eq!(toml::from_str::<Plan>(&text).unwrap(), plan);
        assert_eq!([0, 7, 42, 199, 5871].map(two_digits), [0, 7, 42, 190, 5800]);
    }
}
