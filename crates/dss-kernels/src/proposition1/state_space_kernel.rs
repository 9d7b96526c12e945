//! The kernel of any state space by Eq. (4), with a dense matrix exponential.

use faer::{Mat, Scale};

use super::check;
use crate::complex::C64;
use crate::error::{Error, Result};

/// Eq. (4) literally: K_k = C Āᵏ B̄ with Ā = e^{AΔ}, B̄ = (Ā − I)A⁻¹B, by dense matrices in O(N³ + LN²).
///
/// With b = 2‖B‖₁, Ā and B̄/bΔ are blocks of exp([[AΔ, B/b], `[0, 0]`]): A may be singular or defective.
/// This is the reference for [`diagonal_form`](super::diagonal_form).
///
/// # Shapes
/// A: `[N, N]`, row by row; B: `[N]`; C: `[N]`. Returns K: `[L]`.
///
/// # Errors
/// [`Error::Shape`], [`Error::NonFinite`] or [`Error::Invalid`] on bad arguments (N = 0, L = 0,
/// Δ ≤ 0), and where K overflows.
pub fn state_space_kernel(
    a: &[C64],
    b: &[C64],
    c: &[C64],
    delta: f64,
    len: usize,
) -> Result<Vec<C64>> {
    let op = "state_space_kernel";
    check(op, a, b, c, delta, len)?;
    let n = b.len();
    let size = 2.0 * b.iter().map(|z| z.norm()).sum::<f64>();
    let augmented = Mat::from_fn(n + 1, n + 1, |i, j| match (i < n, j < n) {
        (true, true) => a[i * n + j] * delta,
        (true, false) if size > 0.0 => b[i] / size,
        _ => C64::ZERO,
    });
    let e = matrix_exp(&augmented);
    let a_bar = e.get(..n, ..n);
    let mut x = e.get(..n, n..) * scale(size * delta);
    let mut k = Vec::with_capacity(len);
    for position in 0..len {
        k.push((0..n).map(|i| c[i] * x[(i, 0)]).sum::<C64>());
        if !k[position].is_finite() {
            return Err(Error::Invalid { op, what: format!("K overflows at k = {position}") });
        }
        x = a_bar * x;
    }
    Ok(k)
}

/// e^X by scaling and squaring: the Taylor polynomial of degree 18 at X/2ˢ, ‖X/2ˢ‖₁ ≤ ½, squared s times.
fn matrix_exp(x: &Mat<C64>) -> Mat<C64> {
    let norm = x.col_iter().map(|col| col.norm_l1()).fold(0.0, f64::max);
    if !norm.is_finite() {
        return Mat::full(x.nrows(), x.ncols(), C64::from(f64::NAN));
    }
    let squarings = (norm.log2() + 1.0).ceil().max(0.0) as i32;
    let x = x * scale(0.5f64.powi(squarings));
    let identity = Mat::<C64>::identity(x.nrows(), x.ncols());
    let mut e = identity.clone();
    for degree in (1..=18).rev() {
        e = &identity + &x * e * scale(1.0 / f64::from(degree));
    }
    for _ in 0..squarings {
        e = &e * &e;
    }
    e
}

fn scale(by: f64) -> Scale<C64> {
    Scale(C64::from(by))
}

#[cfg(test)]
mod tests {
    use super::super::systems::real;
    use super::*;

    /// Eq. (4) where its limit is known: one state, and integrators (A singular and defective).
    #[test]
    fn reference_kernel_in_closed_form() {
        let (delta, len) = (0.3, 20);
        let lambda = C64::new(-0.7, 5.0);
        let k = state_space_kernel(&[lambda], &[C64::ONE], &[C64::I], delta, len).unwrap();
        for (k, position) in k.iter().zip(0..) {
            let exact = C64::I
                * (lambda * delta * f64::from(position)).exp()
                * ((lambda * delta).exp() - 1.0)
                / lambda;
            assert!((k - exact).norm() < 1e-14);
        }
        // x₀' = x₁, x₁' = u, y = x₀: K_k = ∫ t dt from kΔ to (k+1)Δ
        let [a, b, c] = [&[0.0, 1.0, 0.0, 0.0][..], &[0.0, 1.0], &[1.0, 0.0]].map(real);
        let k = state_space_kernel(&a, &b, &c, delta, len).unwrap();
        for (k, position) in k.iter().zip(0..) {
            let exact = delta * delta * (f64::from(position) + 0.5);
            assert!((k - exact).norm() < 1e-14 * exact.max(1.0), "{k} {exact}");
        }
    }
}
