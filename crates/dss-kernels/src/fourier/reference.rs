//! The double sum in f64: the oracle of the fast form.

use std::f64::consts::TAU;

/// y `[L, H]` of one sequence u `[L, H]`, whose transform has length n; sums over channels first.
///
/// # Panics
/// If u is not whole rows.
pub fn fourier_reference(u: &[f64], n: usize, h: usize) -> Vec<f64> {
    assert!(u.len().is_multiple_of(h), "u must be [L, H]");
    let turn = |a: usize, b: usize, n: usize| (-TAU * (a * b % n) as f64 / n as f64).sin_cos();
    let mut spectra = vec![(0.0, 0.0); u.len()];
    for (u, spectrum) in u.chunks(h).zip(spectra.chunks_mut(h)) {
        for (k, (re, im)) in spectrum.iter_mut().enumerate() {
            for (c, u) in u.iter().enumerate() {
                let (sin, cos) = turn(c, k, h);
                *re += u * cos;
                *im += u * sin;
            }
        }
    }
    let mut y = vec![0.0; u.len()];
    for (l, y) in y.chunks_mut(h).enumerate() {
        for (t, spectrum) in spectra.chunks(h).enumerate() {
            let (sin, cos) = turn(t, l, n);
            y.iter_mut().zip(spectrum).for_each(|(y, (re, im))| *y += re * cos - im * sin);
        }
    }
    y
}
