//! Q = exp(A − Aᵀ), an orthogonal matrix, of the strict upper triangle of A; and its backward.
//!
//! In f64 whatever the precision of the net: an error of 1e-5 in QᵀQ = I would grow or fade by a fifth over 16,000 steps.
//! Scaling and squaring with the Taylor series: exp(S) = exp(S/2ˢ)^(2ˢ), ‖S/2ˢ‖ ≤ ½, sixteen terms. The derivative in
//! the direction G goes along: of a product, (XY)' = X'Y + XY'.

use crate::product::{Layout, Product};

/// Terms of the series: ½¹⁷/17! is 2e-20.
const TERMS: usize = 16;

/// A square matrix whose rows are padded with zeros.
#[derive(Clone)]
struct Square {
    n: usize,
    /// Distance of the rows.
    width: usize,
    values: Vec<f64>,
}

impl Square {
    fn new(n: usize, value: impl Fn(usize, usize) -> f64) -> Self {
        let width = super::padded(n);
        let at = |at: usize| if at % width < n { value(at / width, at % width) } else { 0.0 };
        Self { n, width, values: (0..n * width).map(at).collect() }
    }

    fn at(&self, i: usize, j: usize) -> f64 {
        self.values[i * self.width + j]
    }

    fn times(&self, other: &Self) -> Self {
        let mut product = Self::new(self.n, |_, _| 0.0);
        product.add_product(self, other);
        product
    }

    /// self += a·b
    fn add_product(&mut self, a: &Self, b: &Self) {
        let (size, a_strides) = ([self.n, self.width, self.n], [self.width, 1]);
        let b_layout = Layout::Rows(self.width);
        let (a, b, c) = (&a.values, &b.values, &mut self.values);
        Product { size, a, a_strides, b, b_layout, c, add: true }.run();
    }

    fn scale(&mut self, factor: f64) {
        self.values.iter_mut().for_each(|x| *x *= factor);
    }

    fn add(&mut self, other: &Self) {
        self.values.iter_mut().zip(&other.values).for_each(|(x, y)| *x += y);
    }

    /// The largest sum of a row's moduli.
    fn norm(&self) -> f64 {
        let rows = self.values.chunks_exact(self.width);
        rows.map(|row| row.iter().map(|x| x.abs()).sum()).fold(0.0, f64::max)
    }

    fn dense(&self) -> Vec<f64> {
        self.values.chunks_exact(self.width).flat_map(|row| &row[..self.n]).copied().collect()
    }
}

/// exp(S), and its derivative in the direction G if there is one.
fn exponential(s: &Square, direction: Option<&Square>) -> (Square, Option<Square>) {
    let n = s.n;
    let squarings = (2.0 * s.norm()).log2().ceil().clamp(0.0, 60.0) as i32;
    let scale = 0.5f64.powi(squarings);
    let mut x = s.clone();
    x.scale(scale);
    let unit = Square::new(n, |i, j| f64::from(i == j));
    let (mut sum, mut term) = (unit.clone(), unit);
    let mut slope = direction.map(|g| {
        let mut g = g.clone();
        g.scale(scale);
        let zero = Square::new(n, |_, _| 0.0);
        (g, zero.clone(), zero)
    });
    for k in 1..=TERMS {
        if let Some((g, sum, d_term)) = &mut slope {
            let mut next = d_term.times(&x);
            next.add_product(&term, g);
            next.scale(1.0 / k as f64);
            sum.add(&next);
            *d_term = next;
        }
        term = term.times(&x);
        term.scale(1.0 / k as f64);
        sum.add(&term);
    }
    let mut slope = slope.map(|(_, slope, _)| slope);
    for _ in 0..squarings {
        if let Some(slope) = &mut slope {
            let mut next = sum.times(slope);
            next.add_product(slope, &sum);
            *slope = next;
        }
        sum = sum.times(&sum);
    }
    (sum, slope)
}

/// A − Aᵀ of the strict upper triangle of A `[n, n]`.
fn skew(a: &[f64], n: usize) -> Square {
    Square::new(n, |i, j| match i.cmp(&j) {
        std::cmp::Ordering::Less => a[i * n + j],
        std::cmp::Ordering::Equal => 0.0,
        std::cmp::Ordering::Greater => -a[j * n + i],
    })
}

/// Q `[n, n]` of A `[n, n]`.
///
/// # Panics
/// If A is not square.
pub fn orthogonal(a: &[f64], n: usize) -> Vec<f64> {
    assert_eq!(a.len(), n * n);
    exponential(&skew(a, n), None).0.dense()
}

/// dA, zero on and below the diagonal, given dQ: dS = L(Sᵀ, dQ), the derivative of exp at Sᵀ in the direction dQ.
///
/// # Panics
/// If A or dQ are not `[n, n]`.
pub fn orthogonal_backward(a: &[f64], n: usize, dq: &[f64]) -> Vec<f64> {
    assert_eq!((a.len(), dq.len()), (n * n, n * n));
    let mut transposed = skew(a, n);
    transposed.scale(-1.0);
    let direction = Square::new(n, |i, j| dq[i * n + j]);
    let (_, ds) = exponential(&transposed, Some(&direction));
    let ds = ds.expect("a direction was given");
    let at = |at: usize| (at / n, at % n);
    (0..n * n).map(at).map(|(i, j)| if i < j { ds.at(i, j) - ds.at(j, i) } else { 0.0 }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rotation_by_hand() {
        let q = orthogonal(&[0.0, 0.7, 9.0, 9.0], 2);
        let (sin, cos) = 0.7f64.sin_cos();
        for (found, known) in q.iter().zip([cos, sin, -sin, cos]) {
            assert!((found - known).abs() < 1e-15, "{q:?}");
        }
    }

    #[test]
    fn orthogonal_and_differentiable() {
        let n = 9;
        let a: Vec<f64> = (0..n * n).map(|i| 2.0 * (i as f64 * 1.3).sin()).collect();
        let q = orthogonal(&a, n);
        for i in 0..n {
            for j in 0..n {
                let product: f64 = (0..n).map(|k| q[k * n + i] * q[k * n + j]).sum();
                assert!((product - f64::from(i == j)).abs() < 1e-13);
            }
        }
        let dq: Vec<f64> = (0..n * n).map(|i| (i as f64 * 0.7).cos()).collect();
        let da = orthogonal_backward(&a, n, &dq);
        for at in 0..n * n {
            let value = |step: f64| -> f64 {
                let mut a = a.clone();
                a[at] += step;
                orthogonal(&a, n).iter().zip(&dq).map(|(q, d)| q * d).sum()
            };
            let difference = (value(1e-5) - value(-1e-5)) / 2e-5;
            assert!((difference - da[at]).abs() < 1e-8, "{at}: {difference} {}", da[at]);
        }
    }
}
