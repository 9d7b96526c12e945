//! The operations of a model with one signature each, in two forms: [`crate::composed`] and [`crate::fused`].
//!
//! | operation | what it gives |
//! |-----------|---------------|
//! | `kernel`  | K `[C, H, taps]` of the parameters of DSS (§3.1) |
//! | `s4_kernel`, `s4d_kernel` | the same of S4 and S4D |
//! | `embed`   | the first layer of tokens, `[B, L]` to `[B, L, H]` |
//! | `encode`  | the first layer of numbers, `[B, L, C]` to `[B, L, H]` |
//! | `block`   | a whole layer with its norm and residual, `[B, L, H]` to `[B, L, H]` (§3.2) |
//! | `linear`  | W·x + b of rows, `[R, in]` to `[R, out]` |
//! | `feed_forward` | the feed-forward part of a block, `[B, L, H]` to `[B, L, H]` |
//! | `norm`    | a norm alone: the last one of a pre-norm stack |
//! | `pool`    | one vector per sequence, `[B, L, H]` to `[B, H]` |
//!
//! Both forms give the same values and gradients up to rounding.

use std::sync::Arc;

use burn::tensor::Tensor;
use dss_format::Gelu;
use dss_format::mixer::{Delta, Discretisation, Variant};

/// The parameters of a DSS layer's kernels.
#[derive(Debug, Clone)]
pub struct KernelParams {
    /// Λ: `[S·N, 2]`, (re, im), system by system. Exp variants: Re λ = −exp(the first column).
    pub lambda: Tensor<2>,
    /// Δ_log: `[H, 1]` (tied) or `[H, 2]` (for Re Λ, for Im Λ).
    pub delta_log: Tensor<2>,
    /// W: `[C, H, N, 2]`, (re, im).
    pub w: Tensor<4>,
}

/// The feed-forward part of a block.
#[derive(Debug, Clone)]
pub struct FeedForwardParams {
    /// Weight and bias of the map to the hidden numbers, `[F, H]` and `[F]`, and of that back, `[H, F]` and `[H]`.
    pub maps: [(Tensor<2>, Tensor<1>); 2],
    /// The function between them.
    pub gelu: Gelu,
    /// `[B, F]`: a factor of each hidden number of a sequence.
    pub mask: Option<Tensor<2>>,
}

/// Which kernels to make of [`KernelParams`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelSpec {
    /// Softmax, exp or exp-no-scale.
    pub variant: Variant,
    /// One Δ per channel or two.
    pub delta: Delta,
    /// How many taps K\[0\], K\[1\], … are wanted.
    pub taps: usize,
    /// The L of the softmax's normaliser. At least `taps` if any Re λ > 0.
    pub norm_len: usize,
}

/// The parameters of an S4 layer's kernels, one of each conjugate pair.
#[derive(Debug, Clone)]
pub struct S4Params {
    /// Λ_re: `[S·N/2]`, system by system; Re λ = −exp(Λ_re).
    pub lambda_re: Tensor<1>,
    /// Λ_im: `[S·N/2]`.
    pub lambda_im: Tensor<1>,
    /// P of A = Λ − PP*: `[S·N/2, 2]`, (re, im).
    pub p: Tensor<2>,
    /// B: `[S·N/2, 2]`.
    pub b: Tensor<2>,
    /// C̃ = C·(I − Ā^L): `[C, H, N/2, 2]`.
    pub c: Tensor<4>,
    /// Δ_log: `[H]`.
    pub delta_log: Tensor<1>,
}

/// Which kernels to make of [`S4Params`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct S4Spec {
    /// How many taps are wanted, at most `norm_len`.
    pub taps: usize,
    /// The L of C̃.
    pub norm_len: usize,
}

/// The parameters of an S4D layer's kernels, one of each conjugate pair; B = 1.
#[derive(Debug, Clone)]
pub struct S4dParams {
    /// Λ_re: `[S·N/2]`, system by system; Re λ = −exp(Λ_re).
    pub lambda_re: Tensor<1>,
    /// Λ_im: `[S·N/2]`.
    pub lambda_im: Tensor<1>,
    /// C: `[C, H, N/2, 2]`.
    pub c: Tensor<4>,
    /// Δ_log: `[H]`.
    pub delta_log: Tensor<1>,
}

/// Which kernels to make of [`S4dParams`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct S4dSpec {
    /// How the system becomes steps.
    pub discretisation: Discretisation,
    /// How many taps are wanted.
    pub taps: usize,
}

/// The parameters of a block.
#[derive(Debug, Clone)]
pub struct BlockParams {
    /// K: `[C, H, taps]`; C = 2 when bidirectional, else 1.
    pub k: Tensor<3>,
    /// D: `[H]`.
    pub d: Tensor<1>,
    /// `[H, H]`, with GLU `[2H, H]`: output first, as in PyTorch.
    pub out_weight: Tensor<2>,
    /// `[H]`, with GLU `[2H]`.
    pub out_bias: Tensor<1>,
    /// The norm's gain: `[H]` (`[1]` for [`NormMode::LayerScalar`]).
    pub gamma: Tensor<1>,
    /// The norm's offset: `[H]` (`[1]` for [`NormMode::LayerScalar`]).
    pub beta: Tensor<1>,
    /// `[B, L, H]`, added to K * u + D·u: what came before the sequence (see [`crate::carry`]).
    pub past: Option<Tensor<3>>,
}

/// How a norm works in this pass.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant, reason = "there is one per layer and pass")]
pub enum NormMode {
    /// Each position by itself: γ·(x − mean)/√(var + ε) + β over the channels.
    Layer {
        /// ε.
        eps: f64,
    },
    /// The authors' form with scalar gain and offset: γ/std·(x − mean + β), no ε. Composed form only.
    LayerScalar,
    /// Each channel by its mean and variance over this batch.
    BatchTrain {
        /// ε.
        eps: f64,
        /// Per sequence, how many positions count in the statistics; `None`: all of them.
        lengths: Option<Arc<[usize]>>,
    },
    /// Each channel by given statistics.
    BatchEval {
        /// ε.
        eps: f64,
        /// `[H]`.
        mean: Tensor<1>,
        /// `[H]`.
        var: Tensor<1>,
    },
}

/// The settings of a block with [`BlockParams`].
#[derive(Debug, Clone)]
pub struct BlockSpec {
    /// true: x + f(norm(x)); false: norm(x + f(x)).
    pub prenorm: bool,
    /// The norm.
    pub norm: NormMode,
    /// The projection gives (a, b), each `[.., H]`, and the block a·sigmoid(b).
    pub glu: bool,
    /// The function before the projection.
    pub gelu: Gelu,
    /// y_t = Σ_j K\[0\]_j u_{t−j} + Σ_j K\[1\]_j u_{t+1+j} instead of the first sum alone.
    pub bidirectional: bool,
    /// Per sequence, how many positions are true; `None`: all of them. The layer's input u (after a pre-norm) counts as
    /// 0 beyond, in K * u and in D·u, so that the kernel that looks ahead sees no padding. Needed only when
    /// bidirectional: a causal layer cannot see what follows.
    pub lengths: Option<Arc<[usize]>>,
    /// Dropout masks `[B, H]`, of 0 and 1/(1 − p): after GELU, before the residual.
    pub masks: Option<[Tensor<2>; 2]>,
}

/// Statistics of a batch that passed through a BatchNorm.
#[derive(Debug, Clone)]
pub struct BatchStats {
    /// `[H]`.
    pub mean: Tensor<1>,
    /// `[H]`, unbiased: divided by the count less one.
    pub var: Tensor<1>,
}
