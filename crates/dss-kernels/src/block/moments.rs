//! Mean and variance of each channel over many rows, gathered piece by piece.

use super::norm::NormStats;
use super::rows;
use crate::lines::Lines;
use crate::real::Real;

/// Mean and unbiased variance of a batch, per channel.
#[derive(Debug, Clone)]
pub struct BatchMoments {
    /// `[H]`
    pub mean: Vec<f64>,
    /// `[H]`, divided by the count less one.
    pub var: Vec<f64>,
}

/// Mean and deviation, `[H]` each, of a few rows; on cache lines that no other worker writes to.
#[derive(Clone)]
pub(super) struct MomentsScratch<T: Real> {
    mean: Lines<T>,
    deviation: Lines<T>,
}

impl<T: Real> MomentsScratch<T> {
    pub(super) fn new(h: usize) -> Self {
        let channels = Lines::new(h.div_ceil(T::LINE));
        Self { mean: channels.clone(), deviation: channels }
    }
}

/// Running mean and sum of squared deviations of one slot's rows.
#[derive(Clone, Default)]
pub(super) struct Moments {
    count: f64,
    mean: Vec<f64>,
    deviation: Vec<f64>,
}

impl Moments {
    pub(super) fn new(h: usize) -> Self {
        Self { count: 0.0, mean: vec![0.0; h], deviation: vec![0.0; h] }
    }

    /// The union of two sets of rows (Chan's update).
    fn merge(&mut self, count: f64, mean: impl Iterator<Item = (f64, f64)>) {
        if count == 0.0 {
            return;
        }
        let total = self.count + count;
        let ours = self.mean.iter_mut().zip(&mut self.deviation);
        for ((mean, deviation), (other_mean, other_deviation)) in ours.zip(mean) {
            let gap = other_mean - *mean;
            *mean += gap * count / total;
            *deviation += other_deviation + gap * gap * self.count * count / total;
        }
        self.count = total;
    }

    /// Adds the rows of x, `[rows, H]`.
    pub(super) fn add<T: Real>(&mut self, x: &[T], scratch: &mut MomentsScratch<T>) {
        if x.is_empty() {
            return;
        }
        let h = self.mean.len();
        let (mean, deviation) = (&mut scratch.mean[..h], &mut scratch.deviation[..h]);
        rows::moments(x, mean, deviation);
        let both = mean.iter().zip(deviation.iter()).map(|(m, d)| (m.to_f64(), d.to_f64()));
        self.merge((x.len() / h) as f64, both);
    }

    /// Of all slots, in their order.
    pub(super) fn finish<T: Real>(slots: &[Self], eps: f64) -> (NormStats<T>, BatchMoments) {
        let h = slots[0].mean.len();
        let mut all = Self::new(h);
        for slot in slots {
            all.merge(slot.count, slot.mean.iter().copied().zip(slot.deviation.iter().copied()));
        }
        let count = all.count.max(1.0);
        let rstd = |d: &f64| T::rounded(1.0 / (d / count + eps).sqrt());
        let stats = NormStats {
            mean: all.mean.iter().map(|&m| T::rounded(m)).collect(),
            rstd: all.deviation.iter().map(rstd).collect(),
            count: all.count as usize,
        };
        let var = all.deviation.iter().map(|d| d / (count - 1.0).max(1.0)).collect();
        (stats, BatchMoments { mean: all.mean, var })
    }
}
