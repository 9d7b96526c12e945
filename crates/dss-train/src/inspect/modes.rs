//! Λ and Δ of one layer as plain numbers, and what they say: which modes grow, how fast the others fade.
//!
//! A mode fades as |e^{λΔ}| = e^{Re(λ)·Δ} per step: its half-life is ln 2 / (−Re(λ)·Δ) steps.

use std::collections::BTreeMap;
use std::f64::consts::LN_2;

use dss::ModelConfig;
use serde::Serialize;

use super::statistics::{Spread, far_out};

/// One λ: real and imaginary part.
pub type Eigenvalue = [f64; 2];

/// Λ and Δ of one layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Modes {
    /// Λ: `[N]`; of S4 and S4D one of each conjugate pair.
    pub lambda: Vec<Eigenvalue>,
    /// Δ_log of each channel for the real part of Λ: `[H]`.
    pub delta_log_re: Vec<f64>,
    /// The same for the imaginary part; equal to the other if they are tied.
    pub delta_log_im: Vec<f64>,
    /// Whether the two are the same parameter.
    pub tied: bool,
}

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

impl Modes {
    /// From the tensors of a layer's mixer, by their last name.
    ///
    /// # Errors
    /// What is missing.
    pub fn of(config: &ModelConfig, tensors: &BTreeMap<&str, Vec<f64>>) -> Result<Self, String> {
        let get = |name: &str| tensors.get(name).ok_or_else(|| format!("there is no {name}"));
        let lambda = get("lambda")?;
        let exp = config.variant != dss::Variant::Softmax;
        let re = |stored: f64| if exp { -stored.exp() } else { stored };
        let lambda = lambda.chunks_exact(2).map(|z| [re(z[0]), z[1]]).collect();
        let stored = get("delta_log")?;
        let tied = stored.len() == config.h;
        let per = if tied { 1 } else { 2 };
        let delta = |i: usize| stored.iter().skip(i).step_by(per).copied().collect();
        Ok(Self { lambda, delta_log_re: delta(0), delta_log_im: delta(per - 1), tied })
    }

    /// How many modes have Re λ > 0.
    pub fn growing(&self) -> usize {
        self.lambda.iter().filter(|z| z[0] > 0.0).count()
    }

    /// Half-lives in steps of all modes with Re λ ≤ 0 in all channels, `[H·modes]`; infinite for Re λ = 0.
    pub fn half_lives(&self) -> Vec<f64> {
        let fading = self.lambda.iter().filter(|z| z[0] <= 0.0);
        let of = |z: &Eigenvalue, delta_log: &f64| LN_2 / (-z[0] * delta_log.exp());
        fading.flat_map(|z| self.delta_log_re.iter().map(move |d| of(z, d))).collect()
    }

    /// Δ for the real part of Λ and, unless it is the same, for the imaginary part.
    pub fn deltas(&self) -> (Option<Deltas>, Option<Deltas>) {
        let im = (!self.tied).then(|| Deltas::of(&self.delta_log_im)).flatten();
        (Deltas::of(&self.delta_log_re), im)
    }
}

impl Deltas {
    /// Of the Δ_log of all channels; `None` without any.
    pub fn of(delta_log: &[f64]) -> Option<Self> {
        let delta: Vec<f64> = delta_log.iter().map(|x| x.exp()).collect();
        let outlier = |h: usize| Outlier { channel: h, delta_log: delta_log[h] };
        Some(Self {
            delta: Spread::of(&delta)?,
            delta_log: Spread::of(delta_log)?,
            outliers: far_out(delta_log).into_iter().map(outlier).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(variant: dss::Variant) -> ModelConfig {
        ModelConfig { h: 2, n: 3, variant, ..ModelConfig::default() }
    }

    #[test]
    fn numbers_by_hand() {
        let lambda = vec![-0.5, 3.0, 0.25, 0.0, 0.0, 1.0];
        let ln2 = 2f64.ln();
        let delta_log = vec![ln2, 7.0, 0.0, 8.0];
        let tensors = BTreeMap::from([("lambda", lambda), ("delta_log", delta_log)]);
        let modes = Modes::of(&config(dss::Variant::Softmax), &tensors).unwrap();
        assert_eq!(modes.lambda, [[-0.5, 3.0], [0.25, 0.0], [0.0, 1.0]]);
        assert_eq!((modes.growing(), modes.tied), (1, false));
        assert_eq!(
            (modes.delta_log_re.as_slice(), modes.delta_log_im.as_slice()),
            (&[ln2, 0.0][..], &[7.0, 8.0][..])
        );
        // λ = −½ at Δ = 2 halves in ln 2 steps, at Δ = 1 in twice as many; λ = i never; λ = ¼ is no fading mode.
        let found = modes.half_lives();
        let known = [ln2, 2.0 * ln2, f64::INFINITY, f64::INFINITY];
        assert!(
            found.iter().zip(known).all(|(a, b)| *a == b || (a - b).abs() < 1e-15),
            "{found:?}"
        );
        assert_eq!(found.len(), 4);
        let (re, im) = modes.deltas();
        let (re, im) = (re.unwrap(), im.unwrap());
        assert!((re.delta.greatest - 2.0).abs() < 1e-12 && re.delta.least == 1.0);
        assert_eq!((im.delta_log.least, im.delta_log.median), (7.0, 7.5));
    }

    #[test]
    fn exp_variants_store_a_logarithm() {
        let tensors = BTreeMap::from([("lambda", vec![0.0, 5.0]), ("delta_log", vec![0.0, 1.0])]);
        let modes = Modes::of(&config(dss::Variant::Exp), &tensors).unwrap();
        assert_eq!(modes.lambda, [[-1.0, 5.0]]);
        assert!(modes.tied && modes.deltas().1.is_none());
        assert!(Modes::of(&config(dss::Variant::Exp), &BTreeMap::new()).is_err());
    }

    #[test]
    fn the_outlier_of_the_paper_is_found() {
        let mut delta_log: Vec<f64> = (0..64).map(|i| -7.0 + 0.07 * f64::from(i)).collect();
        delta_log[17] = 22.0;
        let found = Deltas::of(&delta_log).unwrap();
        assert_eq!(found.outliers, [Outlier { channel: 17, delta_log: 22.0 }]);
    }
}
