//! LayerNorm and BatchNorm over `[rows, H]`, rows = B·L, and their backward.
//!
//! Both are y = γ·x̂ + β with x̂ = (x − mean)·rstd: LayerNorm has a mean and an rstd per row, BatchNorm per channel.

use super::moments::{BatchMoments, Moments, MomentsScratch};
use super::rows::{self, OutputGradient};
use super::share::{SLOTS, SlotSums, row_chunks};
use crate::par::{self, Disjoint, share};
use crate::real::Real;

/// How a norm works in one call.
#[derive(Debug, Clone, Copy)]
pub enum Norm<'a, T> {
    /// Each row by its own mean and variance.
    Layer,
    /// Each channel by its mean and variance over the batch.
    BatchTrain {
        /// Per sample, how many positions count in the statistics; `None`: all of them.
        counted: Option<&'a [usize]>,
    },
    /// Each channel by given statistics.
    BatchEval {
        /// `[H]`
        mean: &'a [T],
        /// `[H]`
        var: &'a [T],
    },
}

/// Gain, offset and ε of a norm, and how it works in this call.
#[derive(Debug, Clone, Copy)]
pub struct NormParams<'a, T> {
    /// γ: `[H]`
    pub gamma: &'a [T],
    /// β: `[H]`
    pub beta: &'a [T],
    /// ε
    pub eps: f64,
    /// Which statistics.
    pub norm: Norm<'a, T>,
}

/// The statistics that x̂ was computed with: per row (LayerNorm) or per channel (BatchNorm).
#[derive(Debug, Clone, Default)]
pub struct NormStats<T> {
    /// Means.
    pub mean: Vec<T>,
    /// 1/√(var + ε).
    pub rstd: Vec<T>,
    /// Rows behind the statistics; 0 if they were given.
    pub count: usize,
}

/// How many of the rows `range` of a sample of length l count.
pub(super) fn counted_rows(
    counted: Option<&[usize]>,
    range: &std::ops::Range<usize>,
    l: usize,
) -> usize {
    let Some(counted) = counted else { return range.len() };
    let (sample, t) = (range.start / l, range.start % l);
    counted[sample].saturating_sub(t).min(range.len())
}

impl<T: Real> NormParams<'_, T> {
    /// Whether the statistics are those of the batch.
    pub(super) fn of_batch(&self) -> bool {
        matches!(self.norm, Norm::BatchTrain { .. })
    }

    /// Per sample, how many positions count in the statistics; `None`: all.
    pub(super) fn counted(&self) -> Option<&[usize]> {
        match self.norm {
            Norm::BatchTrain { counted } => counted,
            _ => None,
        }
    }

    /// Statistics of the channels: of the batch x, or the given ones; none for LayerNorm.
    pub(super) fn channel_stats(&self, x: &[T], l: usize) -> (NormStats<T>, Option<BatchMoments>) {
        match self.norm {
            Norm::Layer => (NormStats::default(), None),
            Norm::BatchEval { mean, var } => {
                let rstd = |v: &T| T::rounded(1.0 / (v.to_f64() + self.eps).sqrt());
                let rstd = var.iter().map(rstd).collect();
                (NormStats { mean: mean.to_vec(), rstd, count: 0 }, None)
            }
            Norm::BatchTrain { counted } => {
                let h = self.gamma.len();
                let mut slots = vec![Moments::new(h); SLOTS];
                let shared = Disjoint::new(&mut slots);
                let mut workers = vec![MomentsScratch::new(h); par::workers()];
                par::for_each(&mut workers, SLOTS, |scratch, slot| {
                    // SAFETY: one item per slot.
                    let moments = &mut unsafe { shared.part(slot, 1) }[0];
                    for range in row_chunks(share(x.len() / h, SLOTS, slot), l) {
                        let rows = counted_rows(counted, &range, l);
                        moments.add(&x[range.start * h..][..rows * h], scratch);
                    }
                });
                let (stats, moments) = Moments::finish(&slots, self.eps);
                (stats, Some(moments))
            }
        }
    }

    /// γ·rstd per channel.
    pub(super) fn scale(&self, stats: &NormStats<T>) -> Vec<T> {
        self.gamma.iter().zip(&stats.rstd).map(|(&gamma, &rstd)| gamma * rstd).collect()
    }

    /// Per channel, a, b and c of dx = a·dy + b·(x − mean) + c, for rows that count and for those that do not.
    pub(super) fn backward_coefficients(
        &self,
        stats: &NormStats<T>,
        sum: &[f64],
        product: &[f64],
    ) -> BackwardCoefficients<T> {
        let h = self.gamma.len();
        let mut out = BackwardCoefficients {
            a: vec![T::ZERO; h],
            b: vec![T::ZERO; h],
            c: vec![T::ZERO; h],
            zero: vec![T::ZERO; h],
            mean: stats.mean.clone(),
        };
        for i in 0..h {
            let rstd = stats.rstd[i].to_f64();
            let a = self.gamma[i].to_f64() * rstd;
            out.a[i] = T::rounded(a);
            if stats.count > 0 {
                // dx = a·(dy − Σdy/n − x̂·Σdy·x̂/n)
                let n = stats.count as f64;
                out.b[i] = T::rounded(-a * rstd * product[i] / n);
                out.c[i] = T::rounded(-a * sum[i] / n);
            }
        }
        out
    }
}

/// See [`NormParams::backward_coefficients`].
pub(super) struct BackwardCoefficients<T> {
    a: Vec<T>,
    b: Vec<T>,
    c: Vec<T>,
    zero: Vec<T>,
    mean: Vec<T>,
}

impl<T: Real> BackwardCoefficients<T> {
    /// dx of dy in some rows of one sample, of which the first `counted` count.
    pub(super) fn apply(&self, dy: OutputGradient<'_, T>, x: &[T], dx: &mut [T], counted: usize) {
        let Self { a, b, c, zero, mean } = self;
        let at = counted * a.len();
        let ([dy, dy_rest], (x, x_rest), (dx, dx_rest)) =
            (dy.split_at(at), x.split_at(at), dx.split_at_mut(at));
        rows::batch_norm_backward(dy, x, mean, a, b, c, dx);
        rows::batch_norm_backward(dy_rest, x_rest, mean, a, zero, zero, dx_rest);
    }
}

/// Σ dy and Σ dy·x̂ per channel, gathered by slots.
pub(super) struct ChannelSums<T: Real> {
    pub(super) sum: SlotSums<T>,
    pub(super) product: SlotSums<T>,
}

impl<T: Real> ChannelSums<T> {
    pub(super) fn new(h: usize) -> Self {
        Self { sum: SlotSums::new(h), product: SlotSums::new(h) }
    }

    /// Adds those of all rows, for BatchNorm's statistics.
    pub(super) fn gather(&mut self, dy: &[T], x: &[T], stats: &NormStats<T>, l: usize) {
        let h = stats.mean.len();
        let (sum, product) = (self.sum.shared(), self.product.shared());
        par::for_each(&mut vec![(); par::workers()], SLOTS, |(), slot| {
            // SAFETY: there is one item per slot.
            let (sum, product) = unsafe { (sum.slot(slot), product.slot(slot)) };
            for range in row_chunks(share(dy.len() / h, SLOTS, slot), l) {
                let at = range.start * h..range.end * h;
                rows::norm_sums(&dy[at.clone()], &x[at], &stats.mean, &stats.rstd, sum, product);
            }
        });
    }

    /// The sums over all slots.
    pub(super) fn total(&self) -> (Vec<f64>, Vec<f64>) {
        (self.sum.total(), self.product.total())
    }
}

/// The forward pass of a norm, row by row.
pub(super) struct Apply<'a, T: Real> {
    params: &'a NormParams<'a, T>,
    /// BatchNorm's mean and γ·rstd of each channel.
    channels: Option<(&'a [T], Vec<T>)>,
    /// Where LayerNorm keeps the mean and rstd of each row.
    kept: Option<(Disjoint<'a, T>, Disjoint<'a, T>)>,
}

impl<'a, T: Real> Apply<'a, T> {
    /// `stats` hold the channels' statistics, or get those of LayerNorm's rows.
    pub(super) fn new(
        params: &'a NormParams<'a, T>,
        stats: &'a mut NormStats<T>,
        rows: usize,
    ) -> Self {
        if let Norm::Layer = params.norm {
            stats.mean.resize(rows, T::ZERO);
            stats.rstd.resize(rows, T::ZERO);
            let kept = (Disjoint::new(&mut stats.mean), Disjoint::new(&mut stats.rstd));
            return Self { params, channels: None, kept: Some(kept) };
        }
        let scale = params.scale(stats);
        Self { params, channels: Some((&stats.mean, scale)), kept: None }
    }

    /// H
    pub(super) fn channels(&self) -> usize {
        self.params.gamma.len()
    }

    /// BatchNorm as (x − mean)·scale + β: these three.
    pub(super) fn affine(&self) -> Option<[&[T]; 3]> {
        self.channels.as_ref().map(|(mean, scale)| [*mean, scale, self.params.beta])
    }

    /// Rows from `first` on. A row may be given to one worker at a time.
    pub(super) fn rows(&self, x: &[T], first: usize, y: &mut [T]) {
        let NormParams { gamma, beta, eps, .. } = *self.params;
        if let Some((mean, scale)) = &self.channels {
            rows::batch_norm(x, mean, scale, beta, y);
        }
        if let Some((mean, rstd)) = &self.kept {
            let count = x.len() / gamma.len();
            // SAFETY: the caller gives each row to one worker.
            let (mean, rstd) = unsafe { (mean.part(first, count), rstd.part(first, count)) };
            rows::layer_norm(x, gamma, beta, eps, y, mean, rstd);
        }
    }
}

/// y = norm(x) of the rows from `first` on.
pub(super) fn normalise<T: Real>(x: &[T], first: usize, apply: &Apply<'_, T>, y: &mut [T]) {
    let h = apply.channels();
    let y = Disjoint::new(y);
    par::for_each(&mut vec![(); par::workers()], SLOTS, |(), slot| {
        for range in row_chunks(share(x.len() / h, SLOTS, slot), usize::MAX) {
            // SAFETY: the shares do not overlap.
            let y = unsafe { y.part(range.start * h, range.len() * h) };
            apply.rows(&x[range.start * h..range.end * h], first + range.start, y);
        }
    });
}
