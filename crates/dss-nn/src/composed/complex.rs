//! Complex tensors as pairs of real ones.

use burn::tensor::Tensor;

/// re + i·im, element by element.
#[derive(Debug, Clone)]
pub(crate) struct Complex<const D: usize> {
    pub re: Tensor<D>,
    pub im: Tensor<D>,
}

impl<const D: usize> Complex<D> {
    pub fn new(re: Tensor<D>, im: Tensor<D>) -> Self {
        Self { re, im }
    }

    /// Of a tensor with a last axis of (re, im), which becomes 1.
    pub fn pairs(x: Tensor<D>) -> Self {
        Self { re: x.clone().narrow(D - 1, 0, 1), im: x.narrow(D - 1, 1, 1) }
    }

    pub fn sub(self, other: Self) -> Self {
        Self { re: self.re - other.re, im: self.im - other.im }
    }

    pub fn mul(self, other: Self) -> Self {
        let re = self.re.clone() * other.re.clone() - self.im.clone() * other.im.clone();
        let im = self.re * other.im + self.im * other.re;
        Self { re, im }
    }

    /// By real factors.
    pub fn scale(self, factor: Tensor<D>) -> Self {
        Self { re: self.re * factor.clone(), im: self.im * factor }
    }

    pub fn conj(self) -> Self {
        Self { re: self.re, im: -self.im }
    }

    /// |x|²
    pub fn norm_sqr(&self) -> Tensor<D> {
        self.re.clone().square() + self.im.clone().square()
    }

    pub fn exp(self) -> Self {
        let modulus = self.re.exp();
        Self { re: modulus.clone() * self.im.clone().cos(), im: modulus * self.im.sin() }
    }

    /// e^x − 1 without cancellation: expm1(a + ib) = expm1(a)·cos b − 2 sin²(b/2) + i·e^a·sin b,
    /// expm1(a) = tanh(a/2)·(e^a + 1).
    pub fn expm1(self) -> Self {
        let modulus = self.re.clone().exp();
        let expm1 = (self.re * 0.5).tanh() * (modulus.clone() + 1.0);
        let re = expm1 * self.im.clone().cos() - (self.im.clone() * 0.5).sin().square() * 2.0;
        Self { re, im: modulus * self.im.sin() }
    }

    pub fn reciprocal(self) -> Self {
        self.reciprocal_eps(0.0)
    }

    /// conj(x)/(|x|² + ε) (§A.2)
    pub fn reciprocal_eps(self, eps: f64) -> Self {
        let scale = (self.norm_sqr() + eps).recip();
        self.conj().scale(scale)
    }

    pub fn reshape<const D2: usize>(self, shape: [usize; D2]) -> Complex<D2> {
        Complex { re: self.re.reshape(shape), im: self.im.reshape(shape) }
    }

    pub fn map<const D2: usize>(self, f: impl Fn(Tensor<D>) -> Tensor<D2>) -> Complex<D2> {
        Complex { re: f(self.re), im: f(self.im) }
    }
}
