//! State spaces for the tests of this module, and the errors of their diagonal forms.

use std::cmp::Ordering;

use faer::Mat;
use faer::linalg::solvers::Solve;
use rand_chacha::ChaCha8Rng;

use super::{DiagonalForm, diagonal_form, max, state_space_kernel};
use crate::complex::C64;
use crate::error::{Error, Result};
use crate::init::random_lambda;

/// (A, B, C)
pub(super) type StateSpace = [Vec<C64>; 3];

pub(super) fn real(x: &[f64]) -> Vec<C64> {
    x.iter().copied().map(C64::from).collect()
}

/// A = V diag(λ) V⁻¹ with normal V; normal B and C.
pub(super) fn with_eigenvalues(lambda: &[C64], rng: &mut ChaCha8Rng) -> StateSpace {
    let n = lambda.len();
    let v = random_lambda(n * n, rng);
    let v = Mat::from_fn(n, n, |i, j| v[i * n + j]);
    let scaled = Mat::from_fn(n, n, |i, j| v[(i, j)] * lambda[j]);
    let a = v.partial_piv_lu().rsolve(scaled);
    let a = (0..n * n).map(|k| a[(k / n, k % n)]).collect();
    [a, random_lambda(n, rng), random_lambda(n, rng)]
}

/// HiPPO-LegS: A_nk = −√(2n+1)√(2k+1) below the diagonal, −(n+1) on it; B_n = √(2n+1).
pub(super) fn hippo(n: usize, rng: &mut ChaCha8Rng) -> StateSpace {
    let root = |i: usize| ((2 * i + 1) as f64).sqrt();
    let entry = |i: usize, k: usize| match i.cmp(&k) {
        Ordering::Greater => -root(i) * root(k),
        Ordering::Equal => -(i as f64 + 1.0),
        Ordering::Less => 0.0,
    };
    let a: Vec<f64> = (0..n * n).map(|t| entry(t / n, t % n)).collect();
    let b: Vec<f64> = (0..n).map(root).collect();
    let c: Vec<f64> = random_lambda(n, rng).iter().map(|z| z.re).collect();
    [real(&a), real(&b), real(&c)]
}

/// diag(−1, −2, …) with `above` on the first superdiagonal: far from normal.
pub(super) fn bidiagonal(n: usize, above: f64, rng: &mut ChaCha8Rng) -> StateSpace {
    let a = (0..n * n).map(|t| match (t / n, t % n) {
        (i, j) if i == j => C64::from(-1.0 - i as f64),
        (i, j) if i + 1 == j => C64::from(above),
        _ => C64::ZERO,
    });
    [a.collect(), random_lambda(n, rng), random_lambda(n, rng)]
}

pub(super) fn relative_error(k: &[C64], reference: &[C64]) -> f64 {
    assert_eq!(k.len(), reference.len());
    let error = max(k.iter().zip(reference).map(|(x, y)| (x - y).norm()));
    error / max(reference.iter().map(|z| z.norm()))
}

/// The errors of parts (a) and (b) against Eq. (4), and the form.
pub(super) fn errors([a, b, c]: &StateSpace, delta: f64, len: usize) -> (f64, f64, DiagonalForm) {
    let reference = state_space_kernel(a, b, c, delta, len).unwrap();
    let form = diagonal_form(a, b, c, delta, len).unwrap();
    let part_a = relative_error(&form.kernel_a(), &reference);
    let part_b = relative_error(&form.kernel_b().unwrap(), &reference);
    (part_a, part_b, form)
}

pub(super) fn is_singular<T>(result: &Result<T>, about: &str) -> bool {
    matches!(result, Err(Error::Singular { what, .. }) if what.contains(about))
}
