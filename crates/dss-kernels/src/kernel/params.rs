//! The inputs of a DSS kernel: the variant, the sizes, and the parameters as plain slices.

use crate::error::{Error, Result, check_finite, check_len, check_memory, check_systems};
use crate::real::Real;

/// The three kernels of the paper (§3.1, §4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Variant {
    /// Prop. 1(b): rows normalised by their sum; Re λ may have any sign.
    Softmax,
    /// Prop. 1(a) with Λ = −exp(Λ_re) + i·Λ_im.
    Exp,
    /// As `Exp`, without the factor Λ⁻¹(e^{ΛΔ} − I).
    ExpNoScale,
}

/// One Δ per channel, or one for the real and one for the imaginary part of Λ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Delta {
    /// Δ_log: `[H]` (the paper's text).
    Tied,
    /// Δ_log: `[H, 2]`, (re, im) (the code that made the paper's numbers).
    Separate,
}

impl Delta {
    /// Values of Δ_log per channel.
    pub fn per_channel(self) -> usize {
        match self {
            Delta::Tied => 1,
            Delta::Separate => 2,
        }
    }
}

/// ε of reciprocal_ε, and the floor of |λ|² in the exp variant (§A.2).
pub const EPSILON: f64 = 1e-7;

/// |Δ_log| beyond this is treated as this, with zero gradient: Δ stays within e^{±100} and every product finite.
pub const DELTA_LOG_LIMIT: f64 = 100.0;

/// Variant and sizes of a set of kernels K: `[C, H, L]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KernelConfig {
    /// Which kernel.
    pub variant: Variant,
    /// How Δ_log is given.
    pub delta: Delta,
    /// C: kernels per feature (2 for the bidirectional form).
    pub channels: usize,
    /// H: features.
    pub h: usize,
    /// N: modes of each feature.
    pub n: usize,
    /// L: taps to compute.
    pub len: usize,
    /// The L of the softmax's normaliser: the length the model was trained at. Equal to `len` unless a shorter
    /// piece of a trained kernel is wanted, or a longer one (possible only while no Re λ > 0).
    pub norm_len: usize,
    /// S: how many Λ there are, a divisor of H. Feature h uses number h mod S: 1 shares one among all features, H gives
    /// each its own.
    pub systems: usize,
}

impl KernelConfig {
    /// One kernel per feature, one Λ for all of them, separate Δ, normalised over `len`.
    pub fn new(variant: Variant, h: usize, n: usize, len: usize) -> Self {
        let delta = Delta::Separate;
        Self { variant, delta, channels: 1, h, n, len, norm_len: len, systems: 1 }
    }

    /// The same with Δ_log given as `delta`.
    pub fn delta(self, delta: Delta) -> Self {
        Self { delta, ..self }
    }

    /// The same with C kernels per feature.
    pub fn channels(self, channels: usize) -> Self {
        Self { channels, ..self }
    }

    /// The same with the softmax normalised over `norm_len` positions.
    pub fn norm_len(self, norm_len: usize) -> Self {
        Self { norm_len, ..self }
    }

    /// The same with `systems` different Λ.
    pub fn systems(self, systems: usize) -> Self {
        Self { systems, ..self }
    }

    pub(crate) fn validate(&self, op: &'static str) -> Result<()> {
        let Self { channels, h, n, len, norm_len, systems, .. } = *self;
        check_systems(op, h, systems)?;
        if [channels, h, n, len, norm_len].contains(&0) {
            let what = format!(
                "C, H, N, L and the softmax length must be at least 1, but are {channels}, {h}, {n}, {len}, {norm_len}"
            );
            return Err(Error::Invalid { op, what });
        }
        let sizes = format_args!("C = {channels}, H = {h}, N = {n}, L = {len}");
        check_memory(op, [channels, h, n.max(len), 64], sizes)
    }
}

/// Borrowed parameters of a layer's kernels.
#[derive(Debug, Clone, Copy)]
pub struct Params<'a, T> {
    /// Λ_re: `[S, N]`. Softmax: the real parts of Λ. Exp variants: Re λ = −exp(Λ_re).
    pub lambda_re: &'a [T],
    /// Λ_im: `[S, N]`.
    pub lambda_im: &'a [T],
    /// Δ_log: `[H]` or `[H, 2]`.
    pub delta_log: &'a [T],
    /// W: `[C, H, N, 2]`, real and imaginary parts.
    pub w: &'a [T],
}

/// Where the gradients of [`Params`] go; every element is overwritten.
#[derive(Debug)]
pub struct ParamGrads<'a, T> {
    /// Like Λ_re: `[S, N]`.
    pub lambda_re: &'a mut [T],
    /// Like Λ_im: `[S, N]`.
    pub lambda_im: &'a mut [T],
    /// Like Δ_log: `[H]` or `[H, 2]`.
    pub delta_log: &'a mut [T],
    /// Like W: `[C, H, N, 2]`.
    pub w: &'a mut [T],
}

impl<T: Real> Params<'_, T> {
    /// Shapes fit `config`, every value is finite.
    pub(crate) fn validate(&self, op: &'static str, config: &KernelConfig) -> Result<()> {
        let lengths =
            [self.lambda_re.len(), self.lambda_im.len(), self.delta_log.len(), self.w.len()];
        check_shapes(op, config, lengths)?;
        for (name, values) in [
            ("lambda_re", self.lambda_re),
            ("lambda_im", self.lambda_im),
            ("delta_log", self.delta_log),
            ("w", self.w),
        ] {
            check_finite(op, name, values)?;
        }
        Ok(())
    }
}

impl<T: Real> ParamGrads<'_, T> {
    pub(crate) fn validate(&self, op: &'static str, config: &KernelConfig) -> Result<()> {
        let lengths =
            [self.lambda_re.len(), self.lambda_im.len(), self.delta_log.len(), self.w.len()];
        check_shapes(op, config, lengths)
    }
}

fn check_shapes(op: &'static str, config: &KernelConfig, lengths: [usize; 4]) -> Result<()> {
    let KernelConfig { channels, h, n, delta, systems, .. } = *config;
    check_len(op, "lambda_re", "[S, N]", systems * n, lengths[0])?;
    check_len(op, "lambda_im", "[S, N]", systems * n, lengths[1])?;
    let shape = if delta == Delta::Tied { "[H]" } else { "[H, 2]" };
    check_len(op, "delta_log", shape, h * delta.per_channel(), lengths[2])?;
    check_len(op, "w", "[C, H, N, 2]", channels * h * n * 2, lengths[3])
}
