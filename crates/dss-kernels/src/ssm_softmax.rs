//! softmax(0, c, 2c, …, (L−1)c) for complex c (§A.2): by one inverse FFT (Claim 1), and directly.
//!
//! With e = exp(±c), the sign chosen so that |e| ≤ 1, the softmax is a geometric series
//!
//! ```text
//! Re c ≤ 0:  S_k = e^k (1−e)/(1−e^L),         e = exp(c)
//! Re c > 0:  S_k = e^{L−1−k} (1−e)/(1−e^L),   e = exp(−c)
//! ```
//!
//! and Claim 1 gives its discrete Fourier transform in closed form; with ω = exp(−2πi/L),
//!
//! ```text
//! Re c ≤ 0:  Ŝ_k = (1−e)/(1 − eω^k)
//! Re c > 0:  Ŝ_k = (1−e)/(ω^k − e) = ω^{−k} (1−e)/(1 − eω^{−k}).
//! ```
//!
//! Every difference 1 − exp(z) is an expm1 with Re z ≤ 0: nothing overflows and nothing cancels.
//!
//! **Singularities.** The normaliser Σ e^{ck} vanishes where e^{cL} = 1 but e^c ≠ 1: the poles
//! c = −2πik/L (mod 2πi) with 0 < k < L. A c that is a pole to within 4ε|Im c|, that is, to within
//! the rounding of c itself, is an [`Error::Singular`]. At k = 0, which the paper lists too, the
//! singularity is removable: Ŝ_0 = 1 for every c, and at c = 0 the softmax is uniform.
//!
//! **Accuracy.** With d the distance from c to the nearest pole, one rounding of c alone moves S by
//! ε|Im c|/d, relatively. [`ssm_softmax_direct`] is right to a few ε in every element for the c it
//! is given. [`ssm_softmax`] is right to a few ε(1 + π/d) of the largest element: an element
//! far below it, such as the tail of a fast decay, has an absolute error only.

use std::f64::consts::{PI, TAU};

use rustfft::FftPlanner;

use crate::complex::{C64, exp, expm1};
use crate::error::{Error, Result};

/// softmax(0, c, …, (L−1)c) by Claim 1: one inverse FFT, O(L log L).
///
/// The module says where it is accurate. [`ssm_softmax_direct`] takes L exponentials instead, keeps
/// its relative accuracy in every element, and is usually as fast; this is the paper's alternative.
///
/// # Shapes
/// Returns S: `[L]`.
///
/// # Errors
/// [`Error::Singular`] at a pole; [`Error::NonFinite`] or [`Error::Invalid`] unless c is finite,
/// L ≥ 1 and |Im c|·L ≤ 10¹⁵ (beyond, the poles lie as close as neighbouring floats).
///
/// # Examples
/// ```
/// # fn main() -> dss_kernels::Result<()> {
/// use dss_kernels::{C64, ssm_softmax::ssm_softmax};
/// let s = ssm_softmax(C64::new(2f64.ln(), 0.0), 3)?; // 1 : 2 : 4
/// assert!((s[2].re - 4.0 / 7.0).abs() < 1e-15);
/// # Ok(())
/// # }
/// ```
pub fn ssm_softmax(c: C64, len: usize) -> Result<Vec<C64>> {
    check("ssm_softmax", c, len)?;
    let c = C64::new(c.re, principal(c.im));
    let positive = c.re > 0.0;
    let one_minus_e = -expm1(if positive { -c } else { c });

    let coefficient = |k: usize| {
        if k == 0 {
            return C64::ONE;
        }
        // ω^k = exp(−iφ), φ taken in (−π, π] like Im c
        let phi = C64::new(0.0, TAU * signed(k, len) / len as f64);
        if positive {
            exp(phi) * one_minus_e / -expm1(phi - c)
        } else {
            one_minus_e / -expm1(c - phi)
        }
    };
    let mut s: Vec<C64> = (0..len).map(coefficient).collect();
    FftPlanner::new().plan_fft_inverse(len).process(&mut s);
    for x in &mut s {
        *x = x.unscale(len as f64);
    }
    Ok(s)
}

/// softmax(0, c, …, (L−1)c) by its definition: L exponentials of non-positive real part over the
/// closed form of their sum.
///
/// The exponents k·c are formed without rounding, so that every element keeps its relative accuracy
/// even at phases of many turns and next to a pole.
///
/// # Shapes
/// Returns S: `[L]`.
///
/// # Errors
/// As [`ssm_softmax`].
pub fn ssm_softmax_direct(c: C64, len: usize) -> Result<Vec<C64>> {
    check("ssm_softmax_direct", c, len)?;
    let positive = c.re > 0.0;
    let z = if positive { -c } else { c };
    let scale = if z.norm() * (len as f64) < f64::EPSILON {
        C64::from(1.0 / len as f64)
    } else {
        expm1(z) / expm1_multiple(z, len)
    };
    let mut s: Vec<C64> = (0..len).map(|k| scale * exp_multiple(z, k)).collect();
    if positive {
        s.reverse();
    }
    Ok(s)
}

/// exp(kz), with the product kz exact.
pub(crate) fn exp_multiple(z: C64, k: usize) -> C64 {
    let (product, rest) = exact_multiple(z, k);
    let value = exp(product);
    if value == C64::ZERO { value } else { value + value * expm1(rest) }
}

/// exp(kz) − 1, with the product kz exact.
pub(crate) fn expm1_multiple(z: C64, k: usize) -> C64 {
    let (product, rest) = exact_multiple(z, k);
    let value = exp(product);
    if value == C64::ZERO { -C64::ONE } else { expm1(product) + value * expm1(rest) }
}

/// kz as the sum of its rounded value and the rest.
fn exact_multiple(z: C64, k: usize) -> (C64, C64) {
    let k = k as f64;
    let product = z.scale(k);
    let rest = C64::new(z.re.mul_add(k, -product.re), z.im.mul_add(k, -product.im));
    (product, rest)
}

/// An angle modulo 2π in [−π, π], without loss of relative accuracy.
fn principal(angle: f64) -> f64 {
    if angle.abs() <= PI { angle } else { angle.sin().atan2(angle.cos()) }
}

/// k modulo L in (−L/2, L/2].
fn signed(k: usize, len: usize) -> f64 {
    if 2 * k <= len { k as f64 } else { k as f64 - len as f64 }
}

/// Rejects values that are not finite, lengths of 0, bad phases, and poles.
fn check(op: &'static str, c: C64, len: usize) -> Result<()> {
    for (index, value) in [c.re, c.im].into_iter().enumerate() {
        if !value.is_finite() {
            return Err(Error::NonFinite { op, name: "c", index, value });
        }
    }
    if len == 0 {
        return Err(Error::Invalid { op, what: "L must be at least 1".into() });
    }
    if c.im.abs() * len as f64 > 1e15 {
        let what = format!("|Im c|·L must be at most 1e15, but Im c = {:e}, L = {len}", c.im);
        return Err(Error::Invalid { op, what });
    }
    let theta = principal(c.im);
    let turns = (theta * len as f64 / TAU).round();
    let distance = (theta - TAU * turns / len as f64).hypot(c.re);
    let k = (-turns).rem_euclid(len as f64);
    if k != 0.0 && distance <= 4.0 * f64::EPSILON * c.im.abs() {
        let what = format!("c = {c} is the pole −2πik/L (mod 2πi) with k = {k}, L = {len}");
        return Err(Error::Singular { op, what });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn max_norm(s: &[C64]) -> f64 {
        s.iter().map(|z| z.norm()).fold(0.0, f64::max)
    }

    fn max_difference(a: &[C64], b: &[C64]) -> f64 {
        assert_eq!(a.len(), b.len());
        a.iter().zip(b).map(|(x, y)| (x - y).norm()).fold(0.0, f64::max)
    }

    /// Distance to the nearest pole by trying all.
    fn pole_distance(c: C64, len: usize) -> f64 {
        (1..len)
            .map(|k| principal(c.im - TAU * k as f64 / len as f64).hypot(c.re))
            .fold(f64::INFINITY, f64::min)
    }

    /// How far the two ways may differ, as the module promises.
    fn tolerance(c: C64, len: usize) -> f64 {
        8.0 * f64::EPSILON * (1.0 + PI / pole_distance(c, len))
    }

    fn compare(c: C64, len: usize) {
        let (fft, direct) = (ssm_softmax(c, len).unwrap(), ssm_softmax_direct(c, len).unwrap());
        let largest = max_norm(&direct);
        let (error, bound) = (max_difference(&fft, &direct) / largest, tolerance(c, len));
        assert!(error <= bound, "c = {c:e}, L = {len}: {error:e} > {bound:e}");
        let (sum, weight) =
            (direct.iter().sum::<C64>(), direct.iter().map(|z| z.norm()).sum::<f64>());
        assert!((sum - 1.0).norm() <= 1e-15 * (len as f64).sqrt() * weight, "{c} {len}: {sum}");
    }

    /// Golden S: the definition in 60-digit mpmath, for twelve c (both signs of Re c, up to ±30).
    #[test]
    fn golden() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/ssm_softmax.safetensors");
        let bytes = std::fs::read(path).unwrap();
        let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        let read = |name: &str| -> Vec<C64> {
            let number = |b: &[u8]| f64::from_le_bytes(b.try_into().unwrap());
            let pairs = file.tensor(name).unwrap().data().chunks_exact(16);
            pairs.map(|b| C64::new(number(&b[..8]), number(&b[8..]))).collect()
        };
        let (c, s) = (read("c"), read("S"));
        let len = s.len() / c.len();
        for (&c, golden) in c.iter().zip(s.chunks_exact(len)) {
            let direct = ssm_softmax_direct(c, len).unwrap();
            for (x, y) in direct.iter().zip(golden) {
                assert!((x - y).norm() <= 1e-14 * y.norm() + f64::MIN_POSITIVE, "c = {c}: {x:e}");
            }
            let fft = ssm_softmax(c, len).unwrap();
            let error = max_difference(&fft, golden) / max_norm(golden);
            assert!(error <= tolerance(c, len), "c = {c}: {error:e}");
        }
    }

    #[test]
    fn both_ways_agree_on_a_grid() {
        for len in [1, 2, 3, 4, 5, 7, 16, 31, 48, 97, 100, 1021, 1024] {
            for re in [-800.0, -20.0, -1.0, -1e-2, -1e-5, -1e-9, 0.0, 1e-9, 1e-3, 0.5, 3.0, 1e5] {
                for im in [-40.0, -3.0, -0.7, -1e-3, -1e-12, 0.0, 1e-7, 0.3, 1.3, 2.9, 6.5, 1e4] {
                    compare(C64::new(re, im), len);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn both_ways_agree(
            magnitude in -8.0..2.0f64,
            positive: bool,
            im in -10.0..10.0f64,
            len in 1usize..300,
        ) {
            let re = 10f64.powf(magnitude);
            compare(C64::new(if positive { re } else { -re }, im), len);
        }

        /// Closer and closer to a pole, from any side.
        #[test]
        fn both_ways_agree_near_poles(
            len in 2usize..200,
            which in 0.0..1.0f64,
            log_distance in -10.0..-1.0f64,
            direction in 0.0..TAU,
        ) {
            let k = 1 + (which * (len - 1) as f64) as usize;
            let pole = C64::new(0.0, -TAU * k as f64 / len as f64);
            compare(pole + C64::from_polar(10f64.powf(log_distance), direction), len);
        }
    }

    /// Ratios of neighbours are e^c, whatever the normaliser.
    #[test]
    fn softmax_is_geometric() {
        let c = C64::new(-0.3, 2.0);
        let s = ssm_softmax_direct(c, 20).unwrap();
        for pair in s.windows(2) {
            assert!((pair[1] / pair[0] - c.exp()).norm() < 1e-15);
        }
    }

    #[test]
    fn removable_singularities() {
        let tiny = [0.0, 1e-320, -1e-200, 1e-30];
        for (re, im) in tiny.into_iter().flat_map(|x| [(x, 0.0), (0.0, x), (x, -x)]) {
            for s in [ssm_softmax(C64::new(re, im), 7), ssm_softmax_direct(C64::new(re, im), 7)] {
                for x in s.unwrap() {
                    assert!((x - 1.0 / 7.0).norm() < 1e-16, "{re} {im}: {x}");
                }
            }
        }
        compare(C64::new(0.0, TAU), 9);
        compare(C64::new(0.0, -6.0 * PI), 9);
    }

    #[test]
    fn poles_are_named() {
        for (len, k) in [(2, 1), (3, 1), (3, 2), (10, 7), (1000, 999), (16384, 5)] {
            for turns in [-1.0, 0.0, 1.0] {
                let c = C64::new(0.0, TAU * (turns - k as f64 / len as f64));
                for s in [ssm_softmax(c, len), ssm_softmax_direct(c, len)] {
                    let Err(Error::Singular { what, .. }) = s else { panic!("{c} {len}: {s:?}") };
                    assert!(what.contains(&format!("k = {k}, L = {len}")), "{what}");
                }
            }
        }
        // softmax(0, iπ), the paper's example, and its neighbour that is defined.
        assert!(ssm_softmax(C64::new(0.0, PI), 2).is_err());
        assert!(ssm_softmax(C64::new(-1e-9, PI), 2).is_ok());
    }

    #[test]
    fn bad_arguments() {
        for f in [ssm_softmax, ssm_softmax_direct] {
            for c in [C64::new(f64::NAN, 0.0), C64::new(0.0, f64::INFINITY)] {
                assert!(matches!(f(c, 4), Err(Error::NonFinite { .. })));
            }
            assert!(matches!(f(C64::new(-1.0, 1.0), 0), Err(Error::Invalid { .. })));
            assert!(matches!(f(C64::new(-1.0, 1e15), 2), Err(Error::Invalid { .. })));
            for re in [-f64::MAX, f64::MAX] {
                let s = f(C64::new(re, 1.0), 4).unwrap();
                assert!((s[if re < 0.0 { 0 } else { 3 }] - 1.0).norm() < 1e-15);
            }
        }
    }
}
