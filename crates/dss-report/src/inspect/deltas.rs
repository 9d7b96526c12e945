//! How Δ of one layer is spread over its channels, and which channels stick out.

use dss_nn::Modes;
use serde::Serialize;

use super::statistics::{Spread, far_out};

/// How one Δ of a layer is spread over the channels.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Deltas {
    /// Δ = exp(Δ_log).
    pub delta: Spread,
    /// Δ_log.
    pub delta_log: Spread,
    /// Channels whose Δ_log is far out.
    pub outliers: Vec<Outlier>,
}

/// A Δ_log that is far from those of the other channels.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outlier {
    /// The channel h.
    pub channel: usize,
    /// Its Δ_log.
    pub delta_log: f64,
}

/// Δ for the real part of Λ and, unless it is the same, for the imaginary part.
pub fn deltas(modes: &Modes) -> (Option<Deltas>, Option<Deltas>) {
    let im = (!modes.tied).then(|| Deltas::new(&modes.delta_log_im)).flatten();
    (Deltas::new(&modes.delta_log_re), im)
}

impl Deltas {
    /// Of the Δ_log of all channels; `None` without any.
    pub fn new(delta_log: &[f64]) -> Option<Self> {
        let delta: Vec<f64> = delta_log.iter().map(|x| x.exp()).collect();
        let outlier = |h: usize| Outlier { channel: h, delta_log: delta_log[h] };
        Some(Self {
            delta: Spread::new(&delta)?,
            delta_log: Spread::new(delta_log)?,
            outliers: far_out(delta_log).into_iter().map(outlier).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outlier_of_the_paper_is_found() {
        let mut delta_log: Vec<f64> = (0..64).map(|i| -7.0 + 0.07 * f64::from(i)).collect();
        delta_log[17] = 22.0;
        let found = Deltas::new(&delta_log).unwrap();
        assert_eq!(found.outliers, [Outlier { channel: 17, delta_log: 22.0 }]);
    }
}
