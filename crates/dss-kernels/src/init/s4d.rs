//! The initial Λ of S4D (Gu, Gupta, Goel, Ré 2022), one of each conjugate pair, and the law of C that S4 and S4D share.

use super::laws::w;
use super::skew_hippo::{MAX_N, skew_hippo};
use crate::complex::C64;
use crate::error::{Error, Result};
use rand::Rng;
use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// Which Λ S4D starts from; n = 0, …, N/2 − 1, and Re λ = −½ in all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum S4dInit {
    /// The normal part of HiPPO-LegS: Λ of S4 without its low-rank term.
    Legs,
    /// Im λ_n = (N/π)·(N/(2n+1) − 1): how `Legs` behaves for large N.
    Inv,
    /// Im λ_n = πn: Fourier frequencies.
    Lin,
}

/// Λ of S4D for state size N.
///
/// # Shapes
/// Returns Λ: `[N/2]`.
///
/// # Errors
/// [`Error::Invalid`] unless `n` is even and from 2 to 2·[`MAX_N`].
pub fn s4d_lambda(init: S4dInit, n: usize) -> Result<Vec<C64>> {
    if !n.is_multiple_of(2) || !(2..=2 * MAX_N).contains(&n) {
        let what = format!("N must be even and from 2 to {}, but is {n}", 2 * MAX_N);
        return Err(Error::Invalid { op: "s4d_lambda", what });
    }
    let size = n as f64;
    let each = |im: fn(f64, f64) -> f64| {
        Ok((0..n / 2).map(|i| C64::new(-0.5, im(size, i as f64))).collect())
    };
    match init {
        S4dInit::Legs => skew_hippo(n / 2),
        S4dInit::Inv => each(|size, i| size / PI * (size / (2.0 * i + 1.0) - 1.0)),
        S4dInit::Lin => each(|_, i| PI * i),
    }
}

/// C of S4 and S4D: complex standard normal, so that both parts ~ N(0, ½).
///
/// # Shapes
/// Returns C: `[C, H, N/2, 2]` for `pairs` = N/2; the last axis is (Re, Im).
pub fn s4_c(channels: usize, h: usize, pairs: usize, rng: &mut impl Rng) -> Vec<f64> {
    let mut c = w(channels, h, pairs, rng);
    c.iter_mut().for_each(|x| *x *= FRAC_1_SQRT_2);
    c
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas() {
        let im = |init, n| -> Vec<f64> {
            let lambda = s4d_lambda(init, n).unwrap();
            assert!(lambda.iter().all(|z| z.re == -0.5));
            lambda.iter().map(|z| z.im).collect()
        };
        assert_eq!(im(S4dInit::Lin, 6), [0.0, PI, 2.0 * PI]);
        assert_eq!(im(S4dInit::Inv, 4), [12.0 / PI, 4.0 / PI * (4.0 / 3.0 - 1.0)]);
        // Inv is the asymptotic law of LegS.
        let (inv, legs) = (im(S4dInit::Inv, 256), im(S4dInit::Legs, 256));
        assert!((inv[0] / legs[0] - 1.0).abs() < 0.01, "{} {}", inv[0], legs[0]);
        assert!(matches!(s4d_lambda(S4dInit::Lin, 3), Err(Error::Invalid { .. })));
    }
}
