//! Learning rates over time: a linear warm-up, then constant, half a cosine, a straight line, an inverse square root, or
//! decay on a plateau.
//!
//! A schedule is a factor that scales the learning rates of all parameter groups alike. Its state is plain data
//! ([`ScheduleState`]), so that a resumed run continues with the same rates.

use serde::{Deserialize, Serialize};

use crate::config::{Schedule, TrainConfig};

/// A validation score must exceed the best one by this share of it to count as better.
const THRESHOLD: f64 = 1e-4;

/// The learning rates of a run.
#[derive(Clone, Debug)]
pub struct LearningRate {
    kind: Schedule,
    plateau_factor: f64,
    patience: usize,
    warmup_steps: u64,
    min_lr: f64,
    total_steps: u64,
    state: ScheduleState,
}

/// What a schedule remembers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleState {
    /// Product of all plateau decays so far.
    pub factor: f64,
    /// The best validation score so far.
    pub best: Option<f64>,
    /// Evaluations since that did not count as better.
    pub bad: usize,
}

impl Default for ScheduleState {
    fn default() -> Self {
        Self { factor: 1.0, best: None, bad: 0 }
    }
}

impl LearningRate {
    /// The schedule of a run of `total_steps` optimiser steps.
    pub fn new(config: &TrainConfig, total_steps: u64) -> Self {
        Self {
            kind: config.schedule,
            plateau_factor: config.plateau_factor,
            patience: config.patience,
            warmup_steps: config.warmup_steps,
            min_lr: config.min_lr,
            total_steps,
            state: ScheduleState::default(),
        }
    }

    /// The same schedule, continued from a saved state.
    pub fn with_state(mut self, state: ScheduleState) -> Self {
        self.state = state;
        self
    }

    /// What must be saved.
    pub fn state(&self) -> &ScheduleState {
        &self.state
    }

    /// The rate of step `step` (counted from 0) for a group whose own rate is `base`.
    ///
    /// Warm-up: `base · (step + 1) / warmup_steps`. Afterwards no schedule goes below `min_lr`, unless `base` is
    /// below it already.
    pub fn rate(&self, base: f64, step: u64) -> f64 {
        if step < self.warmup_steps {
            return base * (step + 1) as f64 / self.warmup_steps as f64;
        }
        let floor = self.min_lr.min(base);
        match self.kind {
            Schedule::Constant => base,
            Schedule::Plateau => (base * self.state.factor).max(floor),
            Schedule::Cosine => {
                let done = self.done(step);
                floor + (base - floor) * 0.5 * (1.0 + (std::f64::consts::PI * done).cos())
            }
            Schedule::Linear => floor + (base - floor) * (1.0 - self.done(step)),
            Schedule::Rsqrt => {
                let peak = self.warmup_steps.max(1);
                (base * (peak as f64 / (step + 1) as f64).sqrt()).max(floor)
            }
        }
    }

    /// The share of the steps after the warm-up that lie before `step`.
    fn done(&self, step: u64) -> f64 {
        let length = self.total_steps.saturating_sub(self.warmup_steps).max(1);
        ((step - self.warmup_steps) as f64 / length as f64).min(1.0)
    }

    /// Tells the schedule a validation score (larger is better). Returns whether the rates fell.
    ///
    /// The rule is PyTorch's `ReduceLROnPlateau` with a relative threshold of 1e-4: a score is better if it exceeds
    /// the best one by more than 1e-4 of its magnitude; after more than `patience` evaluations in a row that are not,
    /// the factor is multiplied by `plateau_factor` and the count starts again. (For positive scores this is its
    /// `mode="max"`; for negated errors, its `mode="min"` on the error.)
    pub fn observe(&mut self, score: f64) -> bool {
        let state = &mut self.state;
        if state.best.is_none_or(|best| score > best + THRESHOLD * best.abs()) {
            state.best = Some(score);
            state.bad = 0;
        } else {
            state.bad += 1;
        }
        if state.bad <= self.patience {
            return false;
        }
        state.bad = 0;
        state.factor *= self.plateau_factor;
        self.kind == Schedule::Plateau
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(kind: Schedule, warmup_steps: u64, min_lr: f64) -> LearningRate {
        let config = TrainConfig {
            schedule: kind,
            warmup_steps,
            min_lr,
            patience: 2,
            plateau_factor: 0.2,
            ..TrainConfig::default()
        };
        LearningRate::new(&config, 100)
    }

    #[test]
    fn warm_up_rises_linearly_to_the_full_rate() {
        let s = schedule(Schedule::Constant, 4, 0.0);
        let rates: Vec<f64> = (0..6).map(|step| s.rate(8.0, step)).collect();
        assert_eq!(rates, [2.0, 4.0, 6.0, 8.0, 8.0, 8.0]);
    }

    #[test]
    fn cosine_falls_from_base_to_the_floor_over_the_run() {
        let s = schedule(Schedule::Cosine, 20, 0.1);
        assert_eq!(s.rate(1.0, 20), 1.0);
        assert!((s.rate(1.0, 60) - 0.55).abs() < 1e-12);
        assert!((s.rate(1.0, 100) - 0.1).abs() < 1e-12);
        assert!((s.rate(0.05, 100) - 0.05).abs() < 1e-12, "a base below the floor stays");
    }

    #[test]
    fn linear_falls_to_the_floor_over_the_run() {
        let s = schedule(Schedule::Linear, 20, 0.1);
        let rates = [0, 20, 60, 100, 200].map(|step| s.rate(1.0, step));
        for (rate, expected) in rates.into_iter().zip([0.05, 1.0, 0.55, 0.1, 0.1]) {
            assert!((rate - expected).abs() < 1e-12, "{rates:?}");
        }
    }

    /// The Long Range Arena's 0.05·min(1, s/w)/√max(s, w) in step s = 1, 2, …: 0.05/√w is the rate at its peak.
    #[test]
    fn rsqrt_is_that_of_the_long_range_arena() {
        let w = 16.0f64;
        let schedule = schedule(Schedule::Rsqrt, w as u64, 0.0);
        for s in 1..100u64 {
            let expected = 0.05 * (s as f64 / w).min(1.0) / (s as f64).max(w).sqrt();
            let rate = schedule.rate(0.05 / w.sqrt(), s - 1);
            assert!((rate - expected).abs() < 1e-15, "step {s}: {rate}, not {expected}");
        }
    }

    /// Scores and rates of torch.optim.lr_scheduler.ReduceLROnPlateau(mode="max", factor=0.2, patience=2,
    /// min_lr=0.05) from lr 1, worked out from its rule: decays after the third bad score in a row.
    #[test]
    fn plateau_decays_after_patience_is_exceeded() {
        let mut s = schedule(Schedule::Plateau, 0, 0.05);
        let scores = [0.5, 0.6, 0.60001, 0.6, 0.55, 0.7, 0.7, 0.7, 0.7, 0.1, 0.1, 0.1];
        let rates: Vec<f64> = scores
            .iter()
            .map(|&score| {
                s.observe(score);
                s.rate(1.0, 10)
            })
            .collect();
        let expected = [1.0, 1.0, 1.0, 1.0, 0.2, 0.2, 0.2, 0.2, 0.05, 0.05, 0.05, 0.05];
        for (rate, expected) in rates.iter().zip(expected) {
            assert!((rate - expected).abs() < 1e-12, "{rates:?}");
        }
    }

    #[test]
    fn negated_errors_are_better_when_the_error_falls() {
        let mut s = schedule(Schedule::Plateau, 0, 0.0);
        s.observe(-1.0);
        s.observe(-1.00005);
        assert_eq!(s.state().bad, 1);
        s.observe(-0.9);
        assert_eq!(s.state().bad, 0);
    }

    #[test]
    fn a_restored_schedule_continues_identically() {
        let mut whole = schedule(Schedule::Plateau, 0, 0.0);
        let scores = [0.3, 0.3, 0.3, 0.3, 0.4, 0.1, 0.1, 0.1];
        for score in &scores[..5] {
            whole.observe(*score);
        }
        let text = serde_json::to_string(whole.state()).unwrap();
        let mut resumed =
            schedule(Schedule::Plateau, 0, 0.0).with_state(serde_json::from_str(&text).unwrap());
        for score in &scores[5..] {
            whole.observe(*score);
            resumed.observe(*score);
        }
        assert_eq!(whole.state(), resumed.state());
        assert!(whole.rate(1.0, 0) < 0.05);
    }
}
