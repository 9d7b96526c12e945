//! Skew-Hippo initialisation of Λ (§3.3), by its secular equation.
//!
//! Λ are the N eigenvalues with positive imaginary part of the 2N×2N matrix S − I/2, where
//! S_mj = ½ √(2m+1) √(2j+1) · sign(j − m) is real and skew: its eigenvalues are ±iσ.
//! No eigensolver is needed. In S v = iσ v put w_m = √(2m+1) v_m and τ = 2σ; row m reads
//!
//! ```text
//! Σ_{j>m} w_j − Σ_{j<m} w_j = iτ w_m / (2m+1).
//! ```
//!
//! Row m minus row m+1 is a two-term recurrence, and with T = Σ_j w_j the first and the last row
//! close it:
//!
//! ```text
//! w_{m+1} (1 + iτ/(2m+3)) = −w_m (1 − iτ/(2m+1)),
//! w_0 (1 + iτ) = T = w_{2N−1} (1 − iτ/(4N−1)).
//! ```
//!
//! Multiplied together: Π (1 + iτ/(2m+1)) = −Π (1 − iτ/(2m+1)) over m < 2N. Both sides have the same
//! modulus, so this is an equation between phases alone,
//!
//! ```text
//! Θ(τ) = Σ_{m<2N} atan(τ/(2m+1)) = (k + ½) π,   k = 0, …, N−1.
//! ```
//!
//! Θ rises from 0 to Nπ, so each k has exactly one root. As atan x = π/2 − atan 1/x, the same
//! equation is Σ atan((2m+1)/τ) = (N−1−k + ½) π; taking whichever right-hand side is smaller keeps
//! the full relative precision at both ends of the spectrum.

use std::f64::consts::PI;

use crate::complex::C64;
use crate::error::{Error, Result};

/// The largest N that [`skew_hippo`] takes.
pub const MAX_N: usize = 512;

/// The Skew-Hippo Λ (§3.3), in order of decreasing imaginary part; Re λ = −½ exactly.
///
/// The imaginary parts are right to a few units in the last place. It takes 2N² arctangents a Newton
/// step.
///
/// # Shapes
/// Returns Λ: `[N]`.
///
/// # Errors
/// [`Error::Invalid`] unless 1 ≤ n ≤ [`MAX_N`].
///
/// # Examples
/// ```
/// # fn main() -> dss_kernels::Result<()> {
/// let lambda = dss_kernels::init::skew_hippo(1)?; // of [[-1, √3], [-√3, -1]] / 2
/// assert!((lambda[0].im - 0.75f64.sqrt()).abs() < 1e-15);
/// # Ok(())
/// # }
/// ```
pub fn skew_hippo(n: usize) -> Result<Vec<C64>> {
    if !(1..=MAX_N).contains(&n) {
        let what = format!("N must be from 1 to {MAX_N}, but is {n}");
        return Err(Error::Invalid { op: "skew_hippo", what });
    }
    // atan x ≤ x on the right-hand sides (½)π of both ends: τ ≥ π/4N and τ ≤ 8N²/π.
    let (lowest, mut above) = (PI / (4 * n) as f64, (8 * n * n) as f64 / PI);
    let mut lambda = Vec::with_capacity(n);
    for k in (0..n).rev() {
        let tau = root(n, k, lowest, above);
        above = tau;
        lambda.push(C64::new(-0.5, 0.5 * tau));
    }
    Ok(lambda)
}

/// The τ of Θ(τ) = (k + ½)π between `lo` and `hi`: Newton on ln τ from `hi`, with bisection wherever
/// a step leaves the bracket.
fn root(n: usize, k: usize, mut lo: f64, mut hi: f64) -> f64 {
    let mut tau = hi;
    for _ in 0..100 {
        let (excess, slope) = theta_minus_target(n, k, tau);
        if excess > 0.0 {
            hi = tau;
        } else {
            lo = tau;
        }
        let step = -excess / slope;
        let next = tau * step.exp();
        if step.abs() < 1e-9 {
            return next; // convergence is quadratic: what is left is of the order of step²
        }
        tau = if lo < next && next < hi { next } else { (lo * hi).sqrt() };
    }
    tau
}

/// Θ(τ) − (k + ½)π and its derivative by ln τ, Σ x/(1+x²) with x = τ/(2m+1).
fn theta_minus_target(n: usize, k: usize, tau: f64) -> (f64, f64) {
    let low_half = 2 * k < n;
    let target = PI * (0.5 + if low_half { k } else { n - 1 - k } as f64);
    let mut sum = Compensated::new(-target);
    let mut slope = 0.0;
    for m in 0..2 * n {
        let odd = (2 * m + 1) as f64;
        let x = if low_half { tau / odd } else { odd / tau };
        sum.add(x.atan());
        slope += x / (1.0 + x * x);
    }
    (if low_half { sum.value() } else { -sum.value() }, slope)
}

/// Neumaier's sum: its error does not grow with the number of terms.
struct Compensated {
    sum: f64,
    lost: f64,
}

impl Compensated {
    fn new(first: f64) -> Self {
        Self { sum: first, lost: 0.0 }
    }

    fn add(&mut self, x: f64) {
        let total = self.sum + x;
        self.lost +=
            if self.sum.abs() >= x.abs() { (self.sum - total) + x } else { (x - total) + self.sum };
        self.sum = total;
    }

    fn value(&self) -> f64 {
        self.sum + self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sigma(n: usize) -> Vec<f64> {
        skew_hippo(n).unwrap().iter().map(|z| z.im).collect()
    }

    #[test]
    fn orders_and_bounds() {
        for n in [1, 2, 3, 64, 511, MAX_N] {
            let lambda = skew_hippo(n).unwrap();
            assert_eq!(lambda.len(), n);
            assert!(lambda.iter().all(|z| z.re == -0.5 && z.im > 0.0));
            assert!(lambda.is_sorted_by(|a, b| a.im > b.im));
        }
        for n in [0, MAX_N + 1] {
            assert!(matches!(skew_hippo(n), Err(Error::Invalid { .. })));
        }
    }

    /// The 4×4 matrix by hand: τ⁴ − 86τ² + 105 = 0, from Re Π (1 + iτ/(2m+1)) = 0.
    #[test]
    fn two_states_in_closed_form() {
        let root = (43.0f64 * 43.0 - 105.0).sqrt();
        let large = 0.5 * (43.0 + root).sqrt();
        let small = 0.5 * (105.0 / (43.0 + root)).sqrt();
        let got = sigma(2);
        assert!((got[0] / large - 1.0).abs() < 1e-15, "{} {large}", got[0]);
        assert!((got[1] / small - 1.0).abs() < 1e-15, "{} {small}", got[1]);
    }

    /// Symmetric functions of all roots, exact in the entries of S: tr S², tr S⁻² and det S.
    #[test]
    fn trace_identities() {
        for n in [1, 2, 7, 64, 300, MAX_N] {
            let sigma = sigma(n);
            let m = (2 * n) as f64;
            let odd = || (0..2 * n).map(|i| (2 * i + 1) as f64);

            let squares: f64 = sigma.iter().map(|s| s * s).sum();
            let half_frobenius = (m.powi(4) - m * (4.0 * m * m - 1.0) / 3.0) / 8.0;
            assert!((squares / half_frobenius - 1.0).abs() < 1e-13, "N = {n}: {squares}");

            let inverse_squares: f64 = sigma.iter().rev().map(|s| (0.5 / s).powi(2)).sum();
            let (p1, p2) = odd().fold((0.0, 0.0), |(a, b), x| (a + 1.0 / x, b + 1.0 / (x * x)));
            let e2 = 0.5 * (p1 * p1 - p2);
            assert!((inverse_squares / e2 - 1.0).abs() < 1e-13, "N = {n}: {inverse_squares}");

            // Π τ² = Π (2m+1), as a sum of logarithms of matched factors.
            let determinant: f64 = sigma
                .iter()
                .zip((0..n).rev())
                .map(|(s, i)| ((2.0 * s).powi(2) / ((4 * i + 1) * (4 * i + 3)) as f64).ln())
                .sum();
            assert!(determinant.abs() < 1e-12, "N = {n}: {determinant}");
        }
    }

    /// Golden Λ: a dense eigensolver in f64 on the matrix of §3.3, right to 1e-12 of the largest.
    #[test]
    fn golden() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/skew_hippo.safetensors");
        let bytes = std::fs::read(path).unwrap();
        let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        for n in [1, 2, 4, 8, 16, 32, 64, 128] {
            let tensor = file.tensor(&format!("lambda_N{n}")).unwrap();
            let golden: Vec<f64> = tensor
                .data()
                .chunks_exact(8)
                .map(|b| f64::from_le_bytes(b.try_into().unwrap()))
                .collect();
            let lambda = skew_hippo(n).unwrap();
            assert_eq!(golden.len(), 2 * n);
            for (z, g) in lambda.iter().zip(golden.chunks_exact(2)) {
                let error = (z - C64::new(g[0], g[1])).norm();
                assert!(error < 1e-12 * lambda[0].norm(), "N = {n}: {z} {g:?}");
            }
        }
    }

    /// −iS is Hermitian with eigenvalues ±σ; a dense solver finds them to about ε‖S‖.
    #[cfg(feature = "dense")]
    #[test]
    fn dense_eigensolver() {
        for n in (1..=32).chain([MAX_N]) {
            let hermitian = faer::Mat::from_fn(2 * n, 2 * n, |i, j| {
                let entry = 0.5 * ((2 * i + 1) as f64 * (2 * j + 1) as f64).sqrt();
                let sign = (j as f64 - i as f64).signum() * f64::from(u8::from(i != j));
                C64::new(0.0, -entry * sign)
            });
            let dense = hermitian.self_adjoint_eigenvalues(faer::Side::Lower).unwrap();
            let sigma = sigma(n);
            for (s, d) in sigma.iter().zip(dense.iter().rev()) {
                assert!((s - d).abs() < 1e-13 * sigma[0], "N = {n}: {s} {d}");
            }
        }
    }
}
