//! Λ and Δ of one layer as plain numbers, and what they say: which modes grow, how fast the others fade.
//!
//! A mode fades as |e^{λΔ}| = e^{Re(λ)·Δ} per step: its half-life is ln 2 / (−Re(λ)·Δ) steps. With the bilinear rule it
//! is |(1 + λΔ/2)/(1 − λΔ/2)| per step. The modes of S4 are the eigenvalues of Λ − PP*, which no one can compute well
//! (those of HiPPO are −1, −2, …, −N, with eigenvectors that are all but parallel): it has Λ, but no half-lives here.

use std::collections::BTreeMap;
use std::f64::consts::LN_2;

use dss_nn::{Discretisation, MixerKind, ModelConfig, Variant};
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
    /// What a step does to a mode.
    pub step: Step,
}

/// What a step does to a mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Times e^{λΔ}.
    Exponential,
    /// Times (1 + λΔ/2)/(1 − λΔ/2).
    Bilinear,
    /// Λ is not all of the system: S4.
    LowRank,
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
        let stored: Vec<Eigenvalue> = if config.mixer == MixerKind::Dss {
            get("lambda")?.chunks_exact(2).map(|z| [z[0], z[1]]).collect()
        } else {
            get("lambda_re")?.iter().zip(get("lambda_im")?).map(|(re, im)| [*re, *im]).collect()
        };
        let plain = config.mixer == MixerKind::Dss && config.variant == Variant::Softmax;
        let re = |stored: f64| if plain { stored } else { -stored.exp() };
        let lambda = stored.into_iter().map(|z| [re(z[0]), z[1]]).collect();
        let step = match (config.mixer, config.discretisation) {
            (MixerKind::S4, _) => Step::LowRank,
            (MixerKind::S4d, Discretisation::Bilinear) => Step::Bilinear,
            _ => Step::Exponential,
        };
        let stored = get("delta_log")?;
        let tied = stored.len() == config.h;
        let per = if tied { 1 } else { 2 };
        let delta = |i: usize| stored.iter().skip(i).step_by(per).copied().collect();
        Ok(Self { lambda, delta_log_re: delta(0), delta_log_im: delta(per - 1), tied, step })
    }

    /// How many modes have Re λ > 0.
    pub fn growing(&self) -> usize {
        self.lambda.iter().filter(|z| z[0] > 0.0).count()
    }

    /// Half-lives in steps of all modes with Re λ ≤ 0 in all channels, `[modes·H]`; infinite for Re λ = 0. None of S4.
    pub fn half_lives(&self) -> Vec<f64> {
        if self.step == Step::LowRank {
            return Vec::new();
        }
        let fading = self.lambda.iter().filter(|z| z[0] <= 0.0);
        let deltas = || self.delta_log_re.iter().zip(&self.delta_log_im);
        fading
            .flat_map(|z| deltas().map(|d| LN_2 / self.decay(*z, [d.0.exp(), d.1.exp()])))
            .collect()
    }

    /// −ln of what is left after one step of a mode with Re λ ≤ 0.
    fn decay(&self, [re, im]: Eigenvalue, delta: [f64; 2]) -> f64 {
        let (x, y) = (re * delta[0], im * delta[1]);
        match self.step {
            // |1 − z/2|²/|1 + z/2|² = 1 − 2x/|1 + z/2|².
            Step::Bilinear => {
                let (a, b) = (1.0 + 0.5 * x, 0.5 * y);
                0.5 * (2.0 * x.abs() / (a * a + b * b)).ln_1p()
            }
            Step::Exponential | Step::LowRank => x.abs(),
        }
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

    fn config(variant: dss_nn::Variant) -> ModelConfig {
        ModelConfig { h: 2, n: 3, variant, ..ModelConfig::default() }
    }

    #[test]
    fn numbers_by_hand() {
        let lambda = vec![-0.5, 3.0, 0.25, 0.0, 0.0, 1.0];
        let ln2 = 2f64.ln();
        let delta_log = vec![ln2, 7.0, 0.0, 8.0];
        let tensors = BTreeMap::from([("lambda", lambda), ("delta_log", delta_log)]);
        let modes = Modes::of(&config(dss_nn::Variant::Softmax), &tensors).unwrap();
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
        let modes = Modes::of(&config(dss_nn::Variant::Exp), &tensors).unwrap();
        assert_eq!(modes.lambda, [[-1.0, 5.0]]);
        assert!(modes.tied && modes.deltas().1.is_none());
        assert!(Modes::of(&config(dss_nn::Variant::Exp), &BTreeMap::new()).is_err());
    }

    #[test]
    fn pairs_of_s4_and_s4d() {
        let tensors = BTreeMap::from([
            ("lambda_re", vec![0.0]),
            ("lambda_im", vec![3.0]),
            ("delta_log", vec![0.0, 2f64.ln()]),
        ]);
        let of = |mixer, discretisation| {
            let config = ModelConfig { mixer, discretisation, ..config(dss_nn::Variant::Softmax) };
            Modes::of(&config, &tensors).unwrap()
        };
        let modes = of(MixerKind::S4d, Discretisation::Zoh);
        assert_eq!((modes.lambda.as_slice(), modes.tied), (&[[-1.0, 3.0]][..], true));
        assert!((modes.half_lives()[1] - 0.5 * LN_2).abs() < 1e-15);
        // λ = −1 + 3i: |1 + λ/2|² = 0.25 + 2.25, |1 − λ/2|² = 2.25 + 2.25 at Δ = 1.
        let found = of(MixerKind::S4d, Discretisation::Bilinear).half_lives();
        let known = LN_2 / (0.5 * (4.5f64 / 2.5).ln());
        assert!((found[0] / known - 1.0).abs() < 1e-14, "{found:?} {known}");
        assert!(of(MixerKind::S4, Discretisation::Zoh).half_lives().is_empty());
    }

    #[test]
    fn the_outlier_of_the_paper_is_found() {
        let mut delta_log: Vec<f64> = (0..64).map(|i| -7.0 + 0.07 * f64::from(i)).collect();
        delta_log[17] = 22.0;
        let found = Deltas::of(&delta_log).unwrap();
        assert_eq!(found.outliers, [Outlier { channel: 17, delta_log: 22.0 }]);
    }
}
