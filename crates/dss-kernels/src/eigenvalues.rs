//! Eigenvalues of a real matrix: how a recurrent net's matrix changes its state over many steps.
//!
//! Householder reflections make the matrix upper Hessenberg; then QR steps with Wilkinson's shift in complex arithmetic
//! make one entry below the diagonal after the other vanish. O(n³), in f64.

use num_complex::Complex;

use crate::complex::C64;
use crate::error::{Error, Result, check_finite, check_len};

/// QR steps per eigenvalue, at most; three or so are usual.
const MOST_STEPS: usize = 300;

/// The eigenvalues of A `[n, n]`, in no particular order.
///
/// ```
/// // A rotation by a right angle: ±i.
/// let mut found = dss_kernels::eigenvalues(&[0.0, -1.0, 1.0, 0.0], 2)?;
/// found.sort_by(|a, b| a.im.total_cmp(&b.im));
/// assert!(found.iter().zip([-1.0, 1.0]).all(|(z, im)| z.re.abs() + (z.im - im).abs() < 1e-14));
/// # Ok::<(), dss_kernels::Error>(())
/// ```
///
/// # Errors
/// If A has another size or numbers that are not finite, or the iteration does not converge.
pub fn eigenvalues(a: &[f64], n: usize) -> Result<Vec<C64>> {
    let op = "eigenvalues";
    check_len(op, "a", "[n, n]", n * n, a.len())?;
    check_finite(op, "a", a)?;
    let mut matrix = Hessenberg::new(a, n);
    let (mut end, mut steps) = (n, 0);
    while end > 1 {
        let start = matrix.block_start(end);
        if start + 1 == end {
            (end, steps) = (end - 1, 0);
            continue;
        }
        steps += 1;
        if steps > MOST_STEPS {
            return Err(Error::Singular { op, what: "the iteration did not converge".into() });
        }
        let shift = match steps % 10 {
            // Now and then another one, should the usual shifts go round in circles.
            0 => C64::new(matrix.at(end - 1, end - 2).norm() + matrix.at(end - 1, end - 1).re, 0.0),
            _ => matrix.wilkinson_shift(end),
        };
        matrix.qr_step(start, end, shift);
    }
    Ok((0..n).map(|i| matrix.at(i, i)).collect())
}

/// An upper Hessenberg matrix, row by row.
struct Hessenberg {
    n: usize,
    values: Vec<C64>,
}

impl Hessenberg {
    /// QᵀAQ with a product Q of reflections.
    fn new(a: &[f64], n: usize) -> Self {
        let mut a = a.to_vec();
        for k in 0..n.saturating_sub(2) {
            // The reflection I − 2vvᵀ takes the column below the diagonal to a multiple of its first entry.
            let mut v: Vec<f64> = (k + 1..n).map(|i| a[i * n + k]).collect();
            let size = norm(&v);
            if size == 0.0 {
                continue;
            }
            v[0] += size.copysign(v[0]);
            let scale = norm(&v).recip();
            v.iter_mut().for_each(|x| *x *= scale);
            for j in k..n {
                let sum: f64 = v.iter().enumerate().map(|(i, v)| v * a[(k + 1 + i) * n + j]).sum();
                for (i, v) in v.iter().enumerate() {
                    a[(k + 1 + i) * n + j] -= 2.0 * sum * v;
                }
            }
            for row in a.chunks_exact_mut(n) {
                let row = &mut row[k + 1..];
                let sum: f64 = row.iter().zip(&v).map(|(a, v)| a * v).sum();
                row.iter_mut().zip(&v).for_each(|(a, v)| *a -= 2.0 * sum * v);
            }
        }
        Self { n, values: a.into_iter().map(|x| Complex::new(x, 0.0)).collect() }
    }

    fn at(&self, i: usize, j: usize) -> C64 {
        self.values[i * self.n + j]
    }

    /// Where the block that ends before `end` begins: above it the entry below the diagonal is as good as 0.
    fn block_start(&mut self, end: usize) -> usize {
        for i in (1..end).rev() {
            let around = self.at(i, i).norm() + self.at(i - 1, i - 1).norm();
            let around = if around == 0.0 { 1.0 } else { around };
            if self.at(i, i - 1).norm() <= f64::EPSILON * around {
                self.values[i * self.n + i - 1] = C64::ZERO;
                return i;
            }
        }
        0
    }

    /// The eigenvalue of the last 2 × 2 entries before `end` that is nearer to the last one.
    fn wilkinson_shift(&self, end: usize) -> C64 {
        let [a, b] = [end - 2, end - 1].map(|j| self.at(end - 2, j));
        let [c, d] = [end - 2, end - 1].map(|j| self.at(end - 1, j));
        let half = (a + d) * 0.5;
        let root = ((a - d) * (a - d) * 0.25 + b * c).sqrt();
        let [first, second] = [half + root, half - root];
        if (first - d).norm() < (second - d).norm() { first } else { second }
    }

    /// H − s = QR, H ← RQ + s, of the block from `start` to before `end`.
    fn qr_step(&mut self, start: usize, end: usize, shift: C64) {
        let n = self.n;
        for i in start..end {
            self.values[i * n + i] -= shift;
        }
        let mut rotations = Vec::with_capacity(end - start);
        for k in start..end - 1 {
            let (x, y) = (self.at(k, k), self.at(k + 1, k));
            let size = x.norm().hypot(y.norm());
            let (c, s) = match size {
                0.0 => (C64::ONE, C64::ZERO),
                _ => (x / size, y / size),
            };
            for j in k..end {
                let (x, y) = (self.at(k, j), self.at(k + 1, j));
                self.values[k * n + j] = c.conj() * x + s.conj() * y;
                self.values[(k + 1) * n + j] = c * y - s * x;
            }
            rotations.push((c, s));
        }
        for (k, (c, s)) in (start..).zip(rotations) {
            for i in start..(k + 2).min(end) {
                let (x, y) = (self.at(i, k), self.at(i, k + 1));
                self.values[i * n + k] = x * c + y * s;
                self.values[i * n + k + 1] = y * c.conj() - x * s.conj();
            }
        }
        for i in start..end {
            self.values[i * n + i] += shift;
        }
    }
}

fn norm(x: &[f64]) -> f64 {
    let largest = x.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    if largest == 0.0 {
        return 0.0;
    }
    largest * x.iter().map(|x| (x / largest).powi(2)).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every known eigenvalue has one of its own near it.
    fn assert_spectrum(a: &[f64], known: &[C64], tolerance: f64) {
        let mut found = eigenvalues(a, known.len()).unwrap();
        for z in known {
            let near = (0..found.len())
                .min_by(|&i, &j| (found[i] - z).norm().total_cmp(&(found[j] - z).norm()));
            let nearest = found.swap_remove(near.unwrap());
            assert!((nearest - z).norm() <= tolerance, "{z}: {nearest}");
        }
    }

    #[test]
    fn known_spectra() {
        let real = |x: f64| C64::new(x, 0.0);
        assert_spectrum(&[], &[], 0.0);
        assert_spectrum(&[3.0], &[real(3.0)], 0.0);
        assert_spectrum(&[0.0; 9], &[C64::ZERO; 3], 0.0);
        assert_spectrum(
            &[2.0, 7.0, -1.0, 0.0, -3.0, 4.0, 0.0, 0.0, 5.0],
            &[2.0, -3.0, 5.0].map(real),
            1e-13,
        );
        // A cyclic permutation has the roots of unity; the usual shifts alone would leave it as it is.
        let n = 7;
        let cycle: Vec<f64> =
            (0..n * n).map(|i| f64::from(u8::from((i / n + 1) % n == i % n))).collect();
        let roots: Vec<C64> = (0..n)
            .map(|k| C64::from_polar(1.0, std::f64::consts::TAU * k as f64 / n as f64))
            .collect();
        assert_spectrum(&cycle, &roots, 1e-13);
        // The companion matrix of (x − 1)(x − 2)(x − 3)(x² + 4).
        let companion = [
            6.0, -15.0, 30.0, -44.0, 24.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0,
            0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0,
        ];
        let roots = [real(1.0), real(2.0), real(3.0), C64::new(0.0, 2.0), C64::new(0.0, -2.0)];
        assert_spectrum(&companion, &roots, 1e-11);
    }

    /// Σλ = tr A and Σλ² = tr A² for a matrix without structure, and eigenvalues come in conjugate pairs.
    #[test]
    fn traces_of_a_dense_matrix() {
        let n = 40;
        let mut seed = 1u64;
        let a: Vec<f64> = (0..n * n)
            .map(|_| {
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (seed >> 11) as f64 / (1u64 << 53) as f64 - 0.5
            })
            .collect();
        let found = eigenvalues(&a, n).unwrap();
        let trace: f64 = (0..n).map(|i| a[i * n + i]).sum();
        let square: f64 = (0..n * n).map(|i| a[i] * a[i % n * n + i / n]).sum();
        assert!((found.iter().sum::<C64>() - trace).norm() < 1e-11);
        assert!((found.iter().map(|z| z * z).sum::<C64>() - square).norm() < 1e-11);
        for z in &found {
            assert!(found.iter().any(|w| (w.conj() - z).norm() < 1e-10), "{z}");
        }
    }

    #[test]
    fn bad_matrices_are_errors() {
        assert!(eigenvalues(&[1.0; 3], 2).is_err());
        assert!(eigenvalues(&[f64::NAN], 1).is_err());
    }
}
