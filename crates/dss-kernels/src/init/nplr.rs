//! HiPPO-LegS in normal plus low-rank form: the initialisation of S4 (Gu, Goel, Ré 2022, Theorem 1).
//!
//! The N×N matrix A_mj = −√(2m+1)·√(2j+1) for m > j, −(m+1) for m = j, 0 above, and B_m = √(2m+1), is
//!
//! ```text
//! A = (S − I/2) − P Pᵀ,   P_m = √(m + ½),   B = √2·P,
//! ```
//!
//! with the skew S of `skew_hippo.rs`. Its unit eigenvectors v diagonalise the normal part: Λ = −½ ± iσ, and P becomes
//! V*P. That needs no eigensolver either. With w_m = √(2m+1)·v_m and T = Σ_m w_m, the recurrence of `skew_hippo.rs`
//! keeps |w_m|²·(1 + τ²/(2m+1)²) = |T|², τ = 2σ, so that |v| = 1 reads
//!
//! ```text
//! 1 = Σ_m |w_m|²/(2m+1) = |T|²·Σ_m (2m+1)/((2m+1)² + τ²),   |P_n|² = |T|²/2.
//! ```
//!
//! The phase of an eigenvector is free; the one chosen makes P, and with it B = √2·P, real and positive.

use super::skew_hippo::{MAX_N, skew_hippo};
use crate::complex::C64;
use crate::error::{Error, Result};

/// Λ, P and B of [`nplr_legs`], one of each conjugate pair: `[N/2]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Nplr {
    /// Eigenvalues of the normal part A + PP*, by decreasing imaginary part; Re λ = −½.
    pub lambda: Vec<C64>,
    /// The low-rank part in the basis of the eigenvectors.
    pub p: Vec<C64>,
    /// The input vector in that basis.
    pub b: Vec<C64>,
}

/// HiPPO-LegS of state size N as A = Λ − PP* and B, in the basis that makes Λ diagonal. Right to a few units in the
/// last place.
///
/// # Errors
/// [`Error::Invalid`] unless `n` is even and from 2 to 2·[`MAX_N`].
///
/// # Examples
/// ```
/// # fn main() -> dss_kernels::Result<()> {
/// let legs = dss_kernels::init::nplr_legs(64)?;
/// let trace: f64 = legs.p.iter().map(|p| 2.0 * p.norm_sqr()).sum();
/// assert!((trace / (64.0 * 64.0 / 2.0) - 1.0).abs() < 1e-13); // Σ (m + ½)
/// # Ok(())
/// # }
/// ```
pub fn nplr_legs(n: usize) -> Result<Nplr> {
    if !n.is_multiple_of(2) || !(2..=2 * MAX_N).contains(&n) {
        let what = format!("N must be even and from 2 to {}, but is {n}", 2 * MAX_N);
        return Err(Error::Invalid { op: "nplr_legs", what });
    }
    let lambda = skew_hippo(n / 2)?;
    let norm = |z: &C64| {
        let tau = 2.0 * z.im;
        // The smallest terms first.
        let terms = (0..n).map(|m| (2 * m + 1) as f64).map(|odd| odd / (odd * odd + tau * tau));
        let sum: f64 = terms.rev().sum();
        (0.5 / sum).sqrt()
    };
    let p: Vec<C64> = lambda.iter().map(|z| C64::from(norm(z))).collect();
    let b = p.iter().map(|p| p * std::f64::consts::SQRT_2).collect();
    Ok(Nplr { lambda, p, b })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The eigenvector of λ with P_n > 0, by the recurrence of `skew_hippo.rs`.
    fn eigenvector(n: usize, lambda: C64, p: C64) -> Vec<C64> {
        let tau = 2.0 * lambda.im;
        let factor = |m: usize, sign: f64| C64::new(1.0, sign * tau / (2 * m + 1) as f64);
        let mut w = p * std::f64::consts::SQRT_2 / factor(0, 1.0);
        let mut v = Vec::new();
        for m in 0..n {
            v.push(w / ((2 * m + 1) as f64).sqrt());
            w = -w * factor(m, -1.0) / factor(m + 1, 1.0);
        }
        v
    }

    /// V(Λ − PP*)V* and VB are the matrices of HiPPO-LegS.
    #[test]
    fn rebuilds_the_matrix() {
        for n in [2, 4, 10, 64, 256] {
            let legs = nplr_legs(n).unwrap();
            let v: Vec<Vec<C64>> =
                (0..n / 2).map(|i| eigenvector(n, legs.lambda[i], legs.p[i])).collect();
            let p =
                |m: usize| -> f64 { v.iter().zip(&legs.p).map(|(v, p)| 2.0 * (v[m] * p).re).sum() };
            for m in 0..n {
                let b: f64 = v.iter().zip(&legs.b).map(|(v, b)| 2.0 * (v[m] * b).re).sum();
                assert!((b - ((2 * m + 1) as f64).sqrt()).abs() < 1e-12 * n as f64, "N = {n}");
                for j in 0..n {
                    let normal: f64 = v
                        .iter()
                        .zip(&legs.lambda)
                        .map(|(v, l)| 2.0 * (v[m] * l * v[j].conj()).re)
                        .sum();
                    let a = normal - p(m) * p(j);
                    let expected = match m.cmp(&j) {
                        std::cmp::Ordering::Less => 0.0,
                        std::cmp::Ordering::Equal => -((m + 1) as f64),
                        _ => -(((2 * m + 1) * (2 * j + 1)) as f64).sqrt(),
                    };
                    let error = (a - expected).abs();
                    assert!(error < 1e-13 * (n * n) as f64, "N = {n} [{m}, {j}]: {error:e}");
                }
            }
        }
    }

    /// Golden Λ, P, B of the authors' dense eigensolver, up to their order and the phase of each
    /// eigenvector. They store ln(½ + 10⁻³) for ln(−Re λ).
    #[test]
    fn golden() {
        for (file, n) in [("s4_small", 8), ("s4_medium", 64)] {
            let path = format!("{}/tests/golden/{file}.safetensors", env!("CARGO_MANIFEST_DIR"));
            let bytes = std::fs::read(path).unwrap();
            let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
            let read = |name: &str| -> Vec<f64> {
                let data = file.tensor(name).unwrap();
                data.data()
                    .chunks_exact(8)
                    .map(|b| f64::from_le_bytes(b.try_into().unwrap()))
                    .collect()
            };
            let complex = |name: &str| -> Vec<C64> {
                read(name).chunks_exact(2).map(|z| C64::new(z[0], z[1])).collect()
            };
            let legs = nplr_legs(n).unwrap();
            let (im, p, b) = (read("w_imag"), complex("P"), complex("B"));
            let mut order: Vec<usize> = (0..n / 2).collect();
            order.sort_by(|&i, &j| im[j].total_cmp(&im[i]));
            for (i, &j) in order.iter().enumerate() {
                assert!((legs.lambda[i].im - im[j]).abs() < 1e-12 * legs.lambda[0].im);
                assert!((legs.p[i].norm() - p[j].norm()).abs() < 1e-12 * legs.p[0].norm());
                let product = legs.p[i].conj() * legs.b[i];
                assert!((product - p[j].conj() * b[j]).norm() < 1e-12 * legs.p[0].norm_sqr());
            }
        }
    }

    #[test]
    fn refuses_odd_sizes() {
        for n in [0, 1, 7, 2 * MAX_N + 2] {
            assert!(matches!(nplr_legs(n), Err(Error::Invalid { .. })), "{n}");
        }
    }
}
