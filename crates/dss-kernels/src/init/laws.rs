//! The random initial laws (§3.3, §4.1).

use rand::{Rng, RngExt};
use rand_distr::StandardNormal;

use crate::complex::C64;
use crate::error::{Error, Result};

/// The least Δ at initialisation (§3.3).
pub const DT_MIN: f64 = 0.001;

/// The greatest Δ at initialisation (§3.3).
pub const DT_MAX: f64 = 0.1;

/// Δ_log ~ U(log Δmin, log Δmax), so that Δ = exp(Δ_log) is log-uniform (§3.3).
///
/// The text of §3.3 sets Δ_log to e^r where r is this number; since Δ = exp(Δ_log), it means r.
///
/// # Shapes
/// Returns Δ_log: `[H]`.
///
/// # Errors
/// [`Error::Invalid`] unless 0 < `dt_min` ≤ `dt_max` < ∞.
pub fn delta_log(h: usize, dt_min: f64, dt_max: f64, rng: &mut impl Rng) -> Result<Vec<f64>> {
    if !(0.0 < dt_min && dt_min <= dt_max && dt_max.is_finite()) {
        let what = format!("0 < Δmin ≤ Δmax < ∞ must hold, but Δmin = {dt_min}, Δmax = {dt_max}");
        return Err(Error::Invalid { op: "delta_log", what });
    }
    let (low, high) = (dt_min.ln(), dt_max.ln());
    let draw = |_| (low + (high - low) * rng.random::<f64>()).min(high);
    Ok((0..h).map(draw).collect())
}

/// W with real and imaginary parts ~ N(0, 1) (§3.3).
///
/// # Shapes
/// Returns W: `[C, H, N, 2]`; the last axis is (Re, Im).
pub fn w(c: usize, h: usize, n: usize, rng: &mut impl Rng) -> Vec<f64> {
    (0..c * h * n * 2).map(|_| normal(rng)).collect()
}

/// Λ with real and imaginary parts ~ N(0, 1): the "random init" ablation of §4.1.
///
/// Half of the modes grow in time: only the softmax variant can take them.
///
/// # Shapes
/// Returns Λ: `[N]`.
pub fn random_lambda(n: usize, rng: &mut impl Rng) -> Vec<C64> {
    (0..n).map(|_| C64::new(normal(rng), normal(rng))).collect()
}

/// [`random_lambda`] folded into the left half-plane, Re λ = −|x| < 0, for the exp variants.
///
/// # Shapes
/// Returns Λ: `[N]`.
pub fn random_lambda_left(n: usize, rng: &mut impl Rng) -> Vec<C64> {
    let mut folded = random_lambda(n, rng);
    for z in &mut folded {
        z.re = -z.re.abs().max(f64::MIN_POSITIVE);
    }
    folded
}

fn normal(rng: &mut impl Rng) -> f64 {
    rng.sample(StandardNormal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    fn rng(seed: u64) -> ChaCha8Rng {
        ChaCha8Rng::seed_from_u64(seed)
    }

    fn mean_and_variance(x: &[f64]) -> (f64, f64) {
        let mean = x.iter().sum::<f64>() / x.len() as f64;
        let squares: f64 = x.iter().map(|v| (v - mean).powi(2)).sum();
        (mean, squares / x.len() as f64)
    }

    #[test]
    fn one_seed_gives_one_model() {
        let draw = |seed| {
            let rng = &mut rng(seed);
            let delta_log = delta_log(5, DT_MIN, DT_MAX, rng).unwrap();
            (delta_log, w(2, 3, 4, rng), random_lambda(4, rng))
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert_eq!(draw(1).1.len(), 2 * 3 * 4 * 2);
    }

    #[test]
    fn delta_is_log_uniform() {
        let x = delta_log(100_000, DT_MIN, DT_MAX, &mut rng(3)).unwrap();
        let (low, high) = (DT_MIN.ln(), DT_MAX.ln());
        assert!(x.iter().all(|v| (low..=high).contains(v)));
        let (mean, variance) = mean_and_variance(&x);
        assert!((mean - 0.5 * (low + high)).abs() < 0.02, "{mean}");
        assert!((variance / ((high - low).powi(2) / 12.0) - 1.0).abs() < 0.02, "{variance}");
        let fixed = delta_log(2, 0.01, 0.01, &mut rng(3)).unwrap();
        assert_eq!(fixed, [0.01f64.ln(); 2]);
    }

    #[test]
    fn normal_laws() {
        let n = 100_000;
        let lambda = random_lambda(n, &mut rng(5));
        let samples = [
            w(1, n / 2, 1, &mut rng(4)),
            lambda.iter().map(|z| z.re).collect(),
            lambda.iter().map(|z| z.im).collect(),
        ];
        for x in samples {
            let (mean, variance) = mean_and_variance(&x);
            assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.02, "{mean} {variance}");
        }
        let covariance = lambda.iter().map(|z| z.re * z.im).sum::<f64>() / n as f64;
        assert!(covariance.abs() < 0.02, "{covariance}");
    }

    #[test]
    fn left_half_plane() {
        let (any, left) = (random_lambda(1000, &mut rng(6)), random_lambda_left(1000, &mut rng(6)));
        for (z, f) in any.iter().zip(&left) {
            assert!(f.re < 0.0);
            assert_eq!((f.re, f.im), (-z.re.abs(), z.im));
        }
    }

    #[test]
    fn refuses_bad_ranges() {
        for (low, high) in
            [(0.0, 0.1), (-1.0, 0.1), (0.2, 0.1), (0.1, f64::INFINITY), (f64::NAN, 1.0)]
        {
            let got = delta_log(1, low, high, &mut rng(0));
            assert!(matches!(got, Err(Error::Invalid { .. })), "{low} {high}");
        }
    }
}
