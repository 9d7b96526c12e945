//! What an S4D kernel is made of: discretisation, sizes, and the parameters as plain slices.

use crate::error::{Error, Result, check_finite, check_len, check_memory, check_systems};
use crate::real::Real;

/// How the continuous system becomes steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Discretisation {
    /// ā = e^{Δλ}, B̄ = B·(e^{Δλ} − 1)/λ: the input is held constant over a step.
    ZeroOrderHold,
    /// ā = (1 + Δλ/2)/(1 − Δλ/2), B̄ = ΔB/(1 − Δλ/2): Tustin's rule, as in S4.
    Bilinear,
}

/// Discretisation and sizes of a set of kernels K: `[C, H, L]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KernelConfig {
    /// How the system is discretised.
    pub discretisation: Discretisation,
    /// C: kernels per feature (2 for the bidirectional form).
    pub channels: usize,
    /// H: features.
    pub h: usize,
    /// N: state size, even. N/2 modes are stored, each for itself and its conjugate.
    pub n: usize,
    /// L: taps to compute.
    pub len: usize,
    /// S: how many Λ and B there are, a divisor of H. Feature h uses number h mod S: 1 shares one among all features,
    /// H gives each its own.
    pub systems: usize,
}

impl KernelConfig {
    /// One kernel per feature, each feature with its own Λ.
    pub fn new(discretisation: Discretisation, h: usize, n: usize, len: usize) -> Self {
        Self { discretisation, channels: 1, h, n, len, systems: h }
    }

    /// The same with C kernels per feature.
    pub fn channels(self, channels: usize) -> Self {
        Self { channels, ..self }
    }

    /// The same with `systems` different Λ and B.
    pub fn systems(self, systems: usize) -> Self {
        Self { systems, ..self }
    }

    /// N/2: stored modes.
    pub fn pairs(&self) -> usize {
        self.n / 2
    }

    pub(crate) fn validate(&self, op: &'static str) -> Result<()> {
        let Self { channels, h, n, len, systems, .. } = *self;
        let invalid = |what: String| Err(Error::Invalid { op, what });
        if [channels, h, n, len].contains(&0) || !n.is_multiple_of(2) {
            return invalid(format!(
                "C, H and L must be at least 1 and N even, but are {channels}, {h}, {len} and {n}"
            ));
        }
        check_systems(op, h, systems)?;
        let sizes = format_args!("C = {channels}, H = {h}, N = {n}, L = {len}");
        check_memory(op, [channels, h, n.max(len), 64], sizes)
    }
}

/// Borrowed parameters of a layer's kernels.
#[derive(Debug, Clone, Copy)]
pub struct Params<'a, T> {
    /// Λ_re: `[S, N/2]`, Re λ = −exp(Λ_re).
    pub lambda_re: &'a [T],
    /// Λ_im: `[S, N/2]`.
    pub lambda_im: &'a [T],
    /// B: `[S, N/2, 2]`, real and imaginary parts; none means B = 1.
    pub b: Option<&'a [T]>,
    /// C: `[C, H, N/2, 2]`.
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
    /// Like B: `[S, N/2, 2]`; none if B is not trained.
    pub b: Option<&'a mut [T]>,
    /// Like C: `[C, H, N/2, 2]`.
    pub c: &'a mut [T],
    /// Like Δ_log: `[H]`.
    pub delta_log: &'a mut [T],
}

impl<T: Real> Params<'_, T> {
    /// Shapes fit `config`, every value is finite.
    pub(crate) fn validate(&self, op: &'static str, config: &KernelConfig) -> Result<()> {
        let Self { lambda_re, lambda_im, b, c, delta_log } = *self;
        let lengths = [lambda_re.len(), lambda_im.len(), c.len(), delta_log.len()];
        check_shapes(op, config, lengths, b.map(<[T]>::len))?;
        for (name, values) in [
            ("lambda_re", lambda_re),
            ("lambda_im", lambda_im),
            ("b", b.unwrap_or_default()),
            ("c", c),
            ("delta_log", delta_log),
        ] {
            check_finite(op, name, values)?;
        }
        Ok(())
    }
}

impl<T: Real> ParamGrads<'_, T> {
    pub(crate) fn validate(&self, op: &'static str, config: &KernelConfig) -> Result<()> {
        let Self { lambda_re, lambda_im, b, c, delta_log } = self;
        let lengths = [lambda_re.len(), lambda_im.len(), c.len(), delta_log.len()];
        check_shapes(op, config, lengths, b.as_ref().map(|b| b.len()))
    }
}

fn check_shapes(
    op: &'static str,
    config: &KernelConfig,
    [re, im, c, delta_log]: [usize; 4],
    b: Option<usize>,
) -> Result<()> {
    let KernelConfig { channels, h, n, systems, .. } = *config;
    check_len(op, "lambda_re", "[S, N/2]", systems * n / 2, re)?;
    check_len(op, "lambda_im", "[S, N/2]", systems * n / 2, im)?;
    check_len(op, "c", "[C, H, N/2, 2]", channels * h * n, c)?;
    check_len(op, "delta_log", "[H]", h, delta_log)?;
    b.map_or(Ok(()), |b| check_len(op, "b", "[S, N/2, 2]", systems * n, b))
}
