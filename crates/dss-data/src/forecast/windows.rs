//! All windows of a stretch of a series.

use std::ops::Range;
use std::sync::Arc;

use super::baselines::Baselines;
use crate::{Baseline, Dataset, Example, Input, Result, Target};

/// Every window of `input` known values and `horizon` targets inside `rows`.
pub(super) struct Windows {
    values: Arc<[f32]>,
    rows: Range<usize>,
    input: usize,
    horizon: usize,
    relative: bool,
    baselines: Vec<Baseline>,
}

impl Windows {
    /// `rows` has at least input + horizon rows.
    pub(super) fn new(
        values: Arc<[f32]>,
        rows: Range<usize>,
        [input, horizon]: [usize; 2],
        relative: bool,
    ) -> Self {
        Self { values, rows, input, horizon, relative, baselines: Vec::new() }
    }

    /// With what the simple methods reach.
    pub(super) fn scored_by(self, baselines: &Baselines) -> Self {
        Self { baselines: baselines.score(&self), ..self }
    }

    /// Known values and targets of window `i`.
    pub(super) fn window(&self, i: usize) -> (&[f32], &[f32]) {
        let start = self.rows.start + i;
        self.values[start..start + self.input + self.horizon].split_at(self.input)
    }

    /// All rows.
    pub(super) fn series(&self) -> &[f32] {
        &self.values[self.rows.clone()]
    }

    pub(super) fn shape(&self) -> [usize; 2] {
        [self.input, self.horizon]
    }
}

impl Dataset for Windows {
    fn len(&self) -> usize {
        self.rows.len() + 1 - self.input - self.horizon
    }

    fn example(&self, i: usize) -> Result<Example> {
        let (known, targets) = self.window(i);
        let last = origin(known, self.relative);
        let unasked = std::iter::repeat_n(f32::NAN, self.input);
        let target = unasked.chain(targets.iter().map(|x| x - last)).collect();
        Ok(Example {
            input: sequence(known, last, self.horizon),
            second: None,
            target: Target::PositionValues(target),
        })
    }

    fn baselines(&self) -> Vec<Baseline> {
        self.baselines.clone()
    }
}

/// The number that is subtracted from the values of a window.
pub(super) fn origin(known: &[f32], relative: bool) -> f32 {
    if relative { known.last().copied().unwrap_or(0.0) } else { 0.0 }
}

/// The known values, then zeros.
pub(super) fn sequence(known: &[f32], origin: f32, horizon: usize) -> Input {
    let zeros = std::iter::repeat_n(0.0, horizon);
    Input::Values(known.iter().map(|x| x - origin).chain(zeros).collect())
}
