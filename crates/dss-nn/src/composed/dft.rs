//! The discrete Fourier transform as matrix products, exact to the dtype.
//!
//! With M = m₁·m₂, t = t₁·m₂ + t₂ and k = k₁ + m₁·k₂,
//!
//! X\[k₁, k₂\] = Σ_{t₂} e^{−2πi t₂k₂/m₂} · e^{−2πi t₂k₁/M} · Σ_{t₁} e^{−2πi t₁k₁/m₁} x\[t₁, t₂\]:
//!
//! two products with small matrices and a twist between them, O(M√M). The order of the frequencies does not matter to a
//! convolution.

use std::f64::consts::TAU;

use burn::tensor::{DType, Device, Tensor};

use super::complex::Complex;
use super::constant;

/// Tables of a transform of length M = m₁·m₂.
pub(crate) struct Dft {
    sizes: [usize; 2],
    /// `[1, m₁, m₁]`, `[1, m₁, m₂]`, `[1, m₂, m₂]`.
    first: Complex<3>,
    twist: Complex<3>,
    second: Complex<3>,
}

impl Dft {
    /// A transform of length at least `len`.
    pub fn new(len: usize, device: &Device, dtype: DType) -> Self {
        let m1 = (len as f64).sqrt().ceil() as usize;
        Self::with_factors([m1, len.div_ceil(m1)], device, dtype)
    }

    /// A transform of length `len`. O(M²) for a prime, O(M√M) for lengths with a divisor near √M.
    pub fn exact(len: usize, device: &Device, dtype: DType) -> Self {
        let root = len.isqrt();
        let m1 = (1..=root).rev().find(|m| len.is_multiple_of(*m)).unwrap_or(1);
        Self::with_factors([m1, len / m1], device, dtype)
    }

    fn with_factors([m1, m2]: [usize; 2], device: &Device, dtype: DType) -> Self {
        let table = |rows: usize, columns: usize, period: usize| {
            let part = |f: fn(f64) -> f64| {
                let at = |i: usize| (i / columns) * (i % columns) % period;
                let angle = |i: usize| -TAU * at(i) as f64 / period as f64;
                let values = (0..rows * columns).map(|i| f(angle(i))).collect();
                constant(values, [1, rows, columns], device, dtype)
            };
            Complex::new(part(f64::cos), part(f64::sin))
        };
        Self {
            sizes: [m1, m2],
            first: table(m1, m1, m1),
            twist: table(m1, m2, m1 * m2),
            second: table(m2, m2, m2),
        }
    }

    /// M.
    pub fn len(&self) -> usize {
        self.sizes[0] * self.sizes[1]
    }

    /// m₁ and m₂.
    pub fn sizes(&self) -> [usize; 2] {
        self.sizes
    }

    /// Real rows x: `[R, M]` -> `[R, m₁, m₂]`.
    pub fn forward(&self, x: Tensor<2>) -> Complex<3> {
        let [m1, m2] = self.sizes;
        let x = x.reshape([-1, m1 as i64, m2 as i64]);
        let y = self.first.clone().map(|f| f.matmul(x.clone()));
        product(y.mul(self.twist.clone()), self.second.clone())
    }

    /// Frequencies in their natural order, `[R, M]`, in the order of [`Self::inverse`].
    pub fn ordered(&self, x: Complex<2>) -> Complex<3> {
        let [m1, m2] = self.sizes;
        x.map(|x| x.reshape([-1, m2 as i64, m1 as i64]).swap_dims(1, 2))
    }

    /// The real part of the inverse: `[R, m₁, m₂]` -> `[R, M]`.
    pub fn inverse(&self, x: Complex<3>) -> Tensor<2> {
        let y = product(x, self.second.clone().conj()).mul(self.twist.clone().conj());
        let first = self.first.clone();
        let x = first.re.matmul(y.re) + first.im.matmul(y.im);
        x.reshape([-1, self.len() as i64]) * (1.0 / self.len() as f64)
    }
}

/// The complex matrix product.
fn product(a: Complex<3>, b: Complex<3>) -> Complex<3> {
    let re = a.re.clone().matmul(b.re.clone()) - a.im.clone().matmul(b.im.clone());
    let im = a.re.matmul(b.im) + a.im.matmul(b.re);
    Complex::new(re, im)
}
