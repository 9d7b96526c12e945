//! The kernels of one layer as plain numbers, and what the paper asks of them (§4.2): where they peak, how far they reach.

use burn::tensor::Tensor;
use dss_train::bridge;
use serde::Serialize;

use super::statistics::percentile;

/// A kernel whose largest value is at or beyond this position is called long (the paper's truncated kernels have
/// this length).
pub const LOCAL: usize = 128;

/// K: `[C, H, L]`.
#[derive(Clone, Debug)]
pub struct KernelBank {
    /// C: kernels per channel; the second one, if there is one, looks ahead.
    pub c: usize,
    /// H: channels.
    pub h: usize,
    /// L: taps.
    pub l: usize,
    /// `[C, H, L]`.
    pub values: Vec<f64>,
}

/// Where the kernels of a layer, or of a model, peak and how far they reach.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Peaks {
    /// How many kernels there are.
    pub kernels: usize,
    /// argmax |K| of half of them is not above this.
    pub median_argmax: f64,
    /// The 95th percentile of argmax |K| (Table 3 of the paper).
    pub argmax_95: f64,
    /// Share of kernels with argmax |K| ≥ [`LOCAL`].
    pub long: f64,
    /// Median over the kernels of the first taps that hold 95 % of Σ|K|.
    pub median_reach: f64,
    /// Kernels that are zero everywhere; they count as peaking at 0.
    pub silent: usize,
}

impl KernelBank {
    /// The numbers of a layer's kernel tensor.
    pub fn from_tensor(k: &Tensor<3>) -> Self {
        let [c, h, l] = k.dims();
        Self { c, h, l, values: bridge::host(k) }
    }

    /// All kernels, channel by channel.
    pub fn rows(&self) -> impl Iterator<Item = &[f64]> {
        self.values.chunks_exact(self.l.max(1))
    }

    /// The kernels of one direction.
    pub fn direction(&self, c: usize) -> impl Iterator<Item = &[f64]> {
        self.rows().skip(c * self.h).take(self.h)
    }
}

/// The first position of the largest absolute value.
pub fn argmax(row: &[f64]) -> usize {
    let mut best = 0;
    for (i, x) in row.iter().enumerate() {
        if x.abs() > row[best].abs() {
            best = i;
        }
    }
    best
}

/// How many first taps hold 95 % of Σ|K|; 0 for a kernel of zeros.
pub fn reach(row: &[f64]) -> usize {
    let total: f64 = row.iter().map(|x| x.abs()).sum();
    let mut sum = 0.0;
    for (i, x) in row.iter().enumerate() {
        if sum >= 0.95 * total {
            return i;
        }
        sum += x.abs();
    }
    row.len()
}

/// Of kernels of any number of layers; all numbers are 0 without kernels.
pub fn peaks<'a>(rows: impl Iterator<Item = &'a [f64]>) -> Peaks {
    let (mut argmaxima, mut reaches, mut silent) = (Vec::new(), Vec::new(), 0);
    for row in rows {
        argmaxima.push(argmax(row) as f64);
        reaches.push(reach(row) as f64);
        silent += usize::from(row.iter().all(|x| *x == 0.0));
    }
    let kernels = argmaxima.len();
    let long = argmaxima.iter().filter(|&&at| at >= LOCAL as f64).count();
    Peaks {
        kernels,
        median_argmax: percentile(&argmaxima, 0.5).unwrap_or(0.0),
        argmax_95: percentile(&argmaxima, 0.95).unwrap_or(0.0),
        long: long as f64 / kernels.max(1) as f64,
        median_reach: percentile(&reaches, 0.5).unwrap_or(0.0),
        silent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spike(at: usize, l: usize) -> Vec<f64> {
        let mut row = vec![0.01; l];
        row[at] = -1.0;
        row
    }

    #[test]
    fn peaks_of_kernels_made_by_hand() {
        let l = 300;
        let places = [0, 0, 10, 127, 128, 299];
        let mut rows: Vec<Vec<f64>> = places.iter().map(|&at| spike(at, l)).collect();
        rows.push(vec![0.0; l]);
        let found = peaks(rows.iter().map(Vec::as_slice));
        assert_eq!((found.kernels, found.silent, found.median_argmax), (7, 1, 10.0));
        assert!((found.long - 2.0 / 7.0).abs() < 1e-15);
        // numpy.percentile([0, 0, 0, 10, 127, 128, 299], 95)
        assert!((found.argmax_95 - 247.7).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn reach_counts_taps() {
        assert_eq!(reach(&[1.0, 0.0, 0.0]), 1);
        assert_eq!(reach(&[0.5, 0.0, -0.5, 0.0]), 3);
        assert_eq!(reach(&[0.0; 4]), 0);
        // 0.5^k: 1 − 0.5^n ≥ 0.95 from n = 5 on.
        let half: Vec<f64> = (0..60).map(|k| 0.5f64.powi(k)).collect();
        assert_eq!(reach(&half), 5);
    }

    #[test]
    fn the_first_of_equal_peaks_counts() {
        assert_eq!(argmax(&[0.0, -2.0, 2.0]), 1);
        assert_eq!(argmax(&[]), 0);
        assert_eq!(peaks(std::iter::empty()).kernels, 0);
    }
}
