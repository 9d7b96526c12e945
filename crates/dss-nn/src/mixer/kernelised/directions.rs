//! The random directions of FAVOR+ (Choromanski et al. 2021, §2.4): Gaussian vectors, orthogonal within blocks.

use rand_chacha::ChaCha8Rng;

use crate::random::normal;

/// w `[m, d]`: blocks of d orthonormal rows, the last one cut, each row times the length of a Gaussian vector of its own.
pub(crate) fn orthogonal_directions(m: usize, d: usize, rng: &mut ChaCha8Rng) -> Vec<f64> {
    let mut w = Vec::with_capacity(m * d);
    while w.len() < m * d {
        w.extend(orthonormal_rows(d, rng));
    }
    w.truncate(m * d);
    for row in w.chunks_exact_mut(d) {
        let size = norm(&normal(d, rng));
        row.iter_mut().for_each(|x| *x *= size);
    }
    w
}

/// `[d, d]`: Gaussian rows made orthogonal one after the other (Gram–Schmidt), which leaves their law as it is.
fn orthonormal_rows(d: usize, rng: &mut ChaCha8Rng) -> Vec<f64> {
    let mut rows: Vec<f64> = Vec::with_capacity(d * d);
    while rows.len() < d * d {
        let mut row = normal(d, rng);
        let before = norm(&row);
        // The second time removes what rounding left.
        for _ in 0..2 {
            for other in rows.chunks_exact(d) {
                let along = row.iter().zip(other).map(|(a, b)| a * b).sum::<f64>();
                row.iter_mut().zip(other).for_each(|(x, other)| *x -= along * other);
            }
        }
        let size = norm(&row);
        // A row that lies almost within those before it is drawn again.
        if size > 1e-8 * before {
            rows.extend(row.iter().map(|x| x / size));
        }
    }
    rows
}

fn norm(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::stream;

    #[test]
    fn rows_of_a_block_are_orthogonal() {
        let d = 12;
        let w = orthogonal_directions(30, d, &mut stream(1, "w"));
        assert_eq!(w.len(), 30 * d);
        for block in w.chunks(d * d) {
            for (i, a) in block.chunks(d).enumerate() {
                for b in block.chunks(d).take(i) {
                    let product: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
                    assert!(product.abs() < 1e-12 * norm(a) * norm(b));
                }
            }
        }
    }

    /// E[φ(q)·φ(k)] is the softmax's weight: over many directions, e^{q·k/√d}.
    #[test]
    fn features_estimate_the_softmax() {
        let (m, d) = (20_000, 4);
        let w = orthogonal_directions(m, d, &mut stream(3, "w"));
        let scale = (d as f64).powf(-0.25);
        let q = [0.3, -0.5, 0.8, 0.1].map(|x| x * scale);
        let k = [0.7, 0.2, 0.4, -0.6].map(|x| x * scale);
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let phi = |w: &[f64], x: &[f64]| (dot(w, x) - dot(x, x) / 2.0).exp();
        let mean = w.chunks(d).map(|w| phi(w, &q) * phi(w, &k)).sum::<f64>() / m as f64;
        let want = dot(&q, &k).exp();
        assert!((mean / want - 1.0).abs() < 0.03, "{mean} {want}");
    }
}
