//! What an S4 kernel is made of: the sizes, and the parameters as plain slices.

use crate::complex::C64;
use crate::error::{Error, Result, check_finite, check_len, check_memory, check_systems};
use crate::real::Real;

/// |Δ_log| and |Λ_re| beyond this are treated as this, with zero gradient.
pub const LOG_LIMIT: f64 = 40.0;

/// Largest |Im λ| and largest part of P, B and C that are kept, far beyond use: every product stays finite.
const LIMIT: f64 = 1e15;

/// Sizes of a set of kernels K: `[C, H, L]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KernelConfig {
    /// C: kernels per feature (2 for the bidirectional form).
    pub channels: usize,
    /// H: features.
    pub h: usize,
    /// N: state size, even. N/2 modes are stored, each for itself and its conjugate.
    pub n: usize,
    /// L: taps to compute, at most `norm_len`.
    pub len: usize,
    /// The length that C̃ is corrected for: the one the model is trained at.
    pub norm_len: usize,
    /// S: how many Λ, P and B there are, a divisor of H. Feature h uses number h mod S: 1 shares one among all features.
    pub systems: usize,
}

impl KernelConfig {
    /// One kernel per feature, C̃ corrected for `len`, one Λ, P and B for all features.
    pub fn new(h: usize, n: usize, len: usize) -> Self {
        Self { channels: 1, h, n, len, norm_len: len, systems: 1 }
    }

    /// The same with C kernels per feature.
    pub fn channels(self, channels: usize) -> Self {
        Self { channels, ..self }
    }

    /// The first `len` taps of kernels whose C̃ is corrected for `norm_len`.
    pub fn norm_len(self, norm_len: usize) -> Self {
        Self { norm_len, ..self }
    }

    /// The same with `systems` different Λ, P and B.
    pub fn systems(self, systems: usize) -> Self {
        Self { systems, ..self }
    }

    /// N/2: stored modes.
    pub fn pairs(&self) -> usize {
        self.n / 2
    }

    pub(crate) fn validate(&self, op: &'static str) -> Result<()> {
        let Self { channels, h, n, len, norm_len, systems } = *self;
        let invalid = |what: String| Err(Error::Invalid { op, what });
        if [channels, h, n, len, norm_len].contains(&0) || !n.is_multiple_of(2) {
            return invalid(format!(
                "C, H, L and the length of C̃ must be at least 1 and N even, but are {channels}, {h}, {len}, \
                 {norm_len} and {n}"
            ));
        }
        check_systems(op, h, systems)?;
        if len > norm_len {
            return invalid(format!(
                "L = {len} is more than the length {norm_len} that C̃ is corrected for (see `change_length`)"
            ));
        }
        let sizes = format_args!("C = {channels}, H = {h}, N = {n}, L = {norm_len}");
        check_memory(op, [channels, h, n.max(norm_len), 256], sizes)
    }
}

/// Borrowed parameters of a layer's kernels. Features with the same h mod S share Λ, P and B.
#[derive(Debug, Clone, Copy)]
pub struct Params<'a, T> {
    /// Λ_re: `[S, N/2]`, Re λ = −exp(Λ_re).
    pub lambda_re: &'a [T],
    /// Λ_im: `[S, N/2]`.
    pub lambda_im: &'a [T],
    /// P of A = Λ − PP*: `[S, N/2, 2]`, real and imaginary parts.
    pub p: &'a [T],
    /// B: `[S, N/2, 2]`.
    pub b: &'a [T],
    /// C̃ = C·(I − Ā^L): `[C, H, N/2, 2]`; [`correct_length`](super::correct_length) makes it from C.
    pub c: &'a [T],
    /// Δ_log: `[H]`.
    pub delta_log: &'a [T],
}

/// Where the gradients of [`Params`] go; every element is overwritten.
#[derive(Debug)]
pub struct ParamGrads<'a, T> {
    /// Like Λ_re: `[S, N/2]`.
    pub lambda_re: &'a mut [T],
    /// Like Λ_im: `[S, N/2]`.
    pub lambda_im: &'a mut [T],
    /// Like P: `[S, N/2, 2]`.
    pub p: &'a mut [T],
    /// Like B: `[S, N/2, 2]`.
    pub b: &'a mut [T],
    /// Like C̃: `[C, H, N/2, 2]`.
    pub c: &'a mut [T],
    /// Like Δ_log: `[H]`.
    pub delta_log: &'a mut [T],
}

impl<T: Real> Params<'_, T> {
    /// Shapes fit `config`, every value is finite.
    pub(crate) fn validate(&self, op: &'static str, config: &KernelConfig) -> Result<()> {
        let tensors = [self.lambda_re, self.lambda_im, self.p, self.b, self.c, self.delta_log];
        check_shapes(op, config, tensors.map(<[T]>::len))?;
        for ((name, _), values) in NAMES.into_iter().zip(tensors) {
            check_finite(op, name, values)?;
        }
        Ok(())
    }
}

impl<T: Real> ParamGrads<'_, T> {
    pub(crate) fn validate(&self, op: &'static str, config: &KernelConfig) -> Result<()> {
        let Self { lambda_re, lambda_im, p, b, c, delta_log } = self;
        let lengths =
            [lambda_re.len(), lambda_im.len(), p.len(), b.len(), c.len(), delta_log.len()];
        check_shapes(op, config, lengths)
    }
}

const NAMES: [(&str, &str); 6] = [
    ("lambda_re", "[S, N/2]"),
    ("lambda_im", "[S, N/2]"),
    ("p", "[S, N/2, 2]"),
    ("b", "[S, N/2, 2]"),
    ("c", "[C, H, N/2, 2]"),
    ("delta_log", "[H]"),
];

fn check_shapes(op: &'static str, config: &KernelConfig, lengths: [usize; 6]) -> Result<()> {
    let KernelConfig { channels, h, n, systems, .. } = *config;
    let shared = systems * n / 2;
    let expected = [shared, shared, 2 * shared, 2 * shared, channels * h * n, h];
    for (((name, shape), expected), got) in NAMES.into_iter().zip(expected).zip(lengths) {
        check_len(op, name, shape, expected, got)?;
    }
    Ok(())
}

/// Δ of one feature.
pub(crate) fn delta<T: Real>(stored: T) -> f64 {
    stored.to_f64().clamp(-LOG_LIMIT, LOG_LIMIT).exp()
}

/// λ from its stored parts.
pub(crate) fn lambda<T: Real>(re: T, im: T) -> C64 {
    C64::new(-delta(re), im.to_f64().clamp(-LIMIT, LIMIT))
}

/// 1 inside the limit of the logarithms, 0 beyond.
pub(crate) fn log_slope<T: Real>(stored: T) -> f64 {
    if stored.to_f64().abs() > LOG_LIMIT { 0.0 } else { 1.0 }
}

/// Element i of a complex tensor stored with a trailing axis of 2.
pub(crate) fn complex_at<T: Real>(x: &[T], i: usize) -> C64 {
    let part = |at: usize| x[at].to_f64().clamp(-LIMIT, LIMIT);
    C64::new(part(2 * i), part(2 * i + 1))
}

/// Writes a gradient to element i of such a tensor.
pub(crate) fn put_complex<T: Real>(x: &mut [T], i: usize, value: C64) {
    x[2 * i] = T::from_f64(value.re);
    x[2 * i + 1] = T::from_f64(value.im);
}
