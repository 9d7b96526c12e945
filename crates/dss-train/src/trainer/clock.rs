//! Seconds of work of a run, those before a resume included.

use std::time::{Duration, Instant};

/// Runs while the process works on the run.
pub(super) struct Clock {
    before: f64,
    start: Instant,
    saved: Instant,
    logged: Instant,
    logged_examples: u64,
}

impl Clock {
    /// A clock that starts now.
    pub(super) fn start() -> Self {
        let now = Instant::now();
        Self { before: 0.0, start: now, saved: now, logged: now, logged_examples: 0 }
    }

    /// Continues from the seconds of earlier processes.
    pub(super) fn continue_from(&mut self, seconds: f64) {
        self.before = seconds;
        self.logged = Instant::now();
        self.saved = self.logged;
    }

    /// Seconds so far.
    pub(super) fn seconds(&self) -> f64 {
        self.before + self.start.elapsed().as_secs_f64()
    }

    /// Counts trained examples.
    pub(super) fn count(&mut self, examples: u64) {
        self.logged_examples += examples;
    }

    /// Examples per second since the last call (or since [`Clock::resume_rate`]).
    pub(super) fn rate(&mut self) -> f64 {
        let rate = self.logged_examples as f64 / self.logged.elapsed().as_secs_f64().max(1e-9);
        self.resume_rate();
        rate
    }

    /// Restarts the measurement of the rate: evaluations and saves do not count.
    pub(super) fn resume_rate(&mut self) {
        self.logged = Instant::now();
        self.logged_examples = 0;
    }

    /// Whether the last save was at least `seconds` ago; never for 0.
    pub(super) fn save_due(&self, seconds: u64) -> bool {
        seconds > 0 && self.saved.elapsed() >= Duration::from_secs(seconds)
    }

    /// A save was made.
    pub(super) fn saved(&mut self) {
        self.saved = Instant::now();
    }
}
