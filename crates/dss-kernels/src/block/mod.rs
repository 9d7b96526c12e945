//! One whole block of the stack (§3.2) over `[B, L, H]`, forward and backward.
//!
//! f(u) = drop₂(Out(drop₁(GELU(K * u + D·u)))), then x + f(norm(x)) (pre-norm) or norm(x + f(x)) (post-norm). Out is
//! H×H, or 2H×H with a gate a·σ(b).
//!
//! A few samples at a time go through all steps, so that their activations stay in the cache. Between forward and
//! backward only v = K * u + D·u is kept, and the sum s = x + f(x) of a post-norm block; the rest is recomputed. D is
//! part of the first tap of K, whose gradient is therefore its own.

mod backward;
mod buffers;
mod embed;
mod encode;
mod feed_forward;
mod forward;
pub mod frozen;
mod linear;
mod moments;
mod norm;
mod norm_alone;
mod pool;
mod rows;
mod share;
mod weight;

use crate::conv::Conv;
use crate::error::{Error, Result, check_len};
use crate::lines::Lines;
use crate::par;
use crate::real::Real;
use moments::MomentsScratch;
use share::{CHUNK, SLOTS};
use std::sync::Arc;
use weight::{WeightGrad, apart};

pub use backward::BlockGrads;
pub use buffers::{Buffer, Buffers};
pub use embed::{embed_backward, embed_forward};
pub use encode::{encode_backward, encode_forward};
pub use feed_forward::{
    FeedForwardGrads, FeedForwardParams, Gelu, feed_forward, feed_forward_backward,
};
pub use linear::{LinearParams, linear_backward, linear_forward};
pub use moments::BatchMoments;
pub use norm::{Norm, NormParams, NormStats};
pub use norm_alone::{norm_backward, norm_forward};
pub use pool::{Pool, pool_backward, pool_forward};

/// Elements of activations that go through a block together: about what two cores hold in their caches.
const GROUP: usize = 1 << 19;

/// But at least this many rows: those of each slot go through the whole weight and its gradient.
const GROUP_ROWS: usize = SLOTS * CHUNK;

/// And two samples of at most this many elements: each can stay with a worker.
const TWO: usize = 1 << 21;

/// The settings of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BlockConfig {
    /// L
    pub l: usize,
    /// H
    pub h: usize,
    /// x + f(norm(x)) instead of norm(x + f(x)).
    pub prenorm: bool,
    /// The projection has 2H outputs (a, b) and gives a·σ(b).
    pub glu: bool,
    /// The kernel has an anti-causal half.
    pub bidirectional: bool,
    /// The function between the convolution and the projection.
    pub gelu: Gelu,
}

impl BlockConfig {
    /// Outputs of the projection: H or 2H.
    pub fn outputs(&self) -> usize {
        if self.glu { 2 * self.h } else { self.h }
    }
}

/// The parameters of a block.
#[derive(Debug, Clone, Copy)]
pub struct BlockParams<'a, T> {
    /// K: `[H, taps]`, bidirectional `[2, H, taps]`; 1 ≤ taps ≤ L.
    pub k: &'a [T],
    /// D: `[H]`
    pub d: &'a [T],
    /// `[O, H]`, O = H or 2H.
    pub out_weight: &'a [T],
    /// `[O]`
    pub out_bias: &'a [T],
    /// The norm.
    pub norm: NormParams<'a, T>,
    /// Dropout masks of 0 and 1/(1 − p), `[B, H]` each: after GELU, and before the residual.
    pub masks: Option<[&'a [T]; 2]>,
    /// Per sample, where its padding begins: the layer's input is zero from there on.
    pub lengths: Option<&'a [usize]>,
    /// `[B, L, H]`, added to K * u + D·u: the response to what came before the sequence.
    pub past: Option<&'a [T]>,
}

/// What the backward needs of a forward call.
pub struct Saved<T: Real> {
    /// K * u + D·u, and the past: `[B, L, H]`
    v: Buffer<T>,
    /// x + f(x) of a post-norm block: `[B, L, H]`
    s: Option<Buffer<T>>,
    stats: NormStats<T>,
}

/// [`Saved`] in memory of the caller: see [`Block::forward_into`].
#[derive(Debug)]
pub struct SavedSlices<'a, T> {
    /// K * u + D·u, and the past: `[B, L, H]`
    pub v: &'a [T],
    /// x + f(x) of a post-norm block: `[B, L, H]`
    pub s: Option<&'a [T]>,
    /// Of the norm.
    pub stats: NormStats<T>,
}

/// When s must be there.
const S_SHAPE: &str = "that of x for a post-norm block, else empty";

impl<T: Real> std::fmt::Debug for Saved<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Saved").finish_non_exhaustive()
    }
}

/// Buffers of one worker.
struct Scratch<T: Real> {
    /// `[CHUNK, H]` and `[CHUNK, O]`, rows [`apart`]: g, and the gradient of z.
    g: Lines<T>,
    dz: Lines<T>,
    /// `[CHUNK, H]` and `[CHUNK, O]`, rows widened to whole cache lines: the gradient of g, and z.
    dg: Lines<T>,
    z: Lines<T>,
    /// `[CHUNK, H]`
    slope: Lines<T>,
    /// `[CHUNK, H]`
    s: Lines<T>,
    moments: MomentsScratch<T>,
}

/// Plan and buffers of a block.
///
/// ```
/// use dss_kernels::block::{Block, BlockConfig, BlockParams, Gelu, Norm, NormParams};
/// let gelu = Gelu::Erf;
/// let config = BlockConfig { l: 4, h: 1, prenorm: true, glu: false, bidirectional: false, gelu };
/// let mut block = Block::<f64>::new(config)?;
/// let norm = NormParams { gamma: &[1.0], beta: &[0.0], eps: 1e-5, norm: Norm::Layer };
/// let params = BlockParams {
///     k: &[1.0, 0.5, 0.25, 0.125],
///     d: &[0.0],
///     out_weight: &[1.0],
///     out_bias: &[3.0],
///     norm,
///     masks: None,
///     lengths: None,
///     past: None,
/// };
/// let (x, mut y) = ([1.0, 2.0, 3.0, 4.0], [0.0; 4]);
/// block.forward(&x, &params, &mut y, false)?;
/// // One channel is its own mean: the norm gives zeros, and the block x + bias.
/// assert_eq!(y, [4.0, 5.0, 6.0, 7.0]);
/// # Ok::<(), dss_kernels::Error>(())
/// ```
pub struct Block<T: Real> {
    config: BlockConfig,
    /// Samples that are processed together: a function of the sizes, not of the threads.
    group: usize,
    conv: Conv<T>,
    /// `[group, L, H]`, for a LayerNorm before the block; made when first needed.
    u: Option<Lines<T>>,
    /// `[group, L, H]`
    v: Lines<T>,
    scratch: Vec<Scratch<T>>,
    /// Out's weight, transposed `[H, O]` and as it is `[O, H]`, with rows of whole cache lines, in panels.
    weight_t: Lines<T>,
    weight: Lines<T>,
    weight_grad: WeightGrad<T>,
    /// For what is kept between forward and backward.
    buffers: Arc<Buffers<T>>,
}

impl<T: Real> Block<T> {
    /// A plan for a block over any number of samples.
    pub fn new(config: BlockConfig) -> Result<Self> {
        Self::with_buffers(config, Arc::default())
    }

    /// As [`Block::new`], with buffers that other plans use as well.
    pub fn with_buffers(config: BlockConfig, buffers: Arc<Buffers<T>>) -> Result<Self> {
        let BlockConfig { l, h, .. } = config;
        let sample = l.saturating_mul(h).max(1);
        let least = if sample <= TWO { 2 } else { 1 };
        let group = (GROUP / sample).max(GROUP_ROWS / l.max(1)).max(least);
        let conv = Conv::new(group, l, h)?;
        let o = config.outputs();
        let (width, out_width) = (wide::<T>(h), wide::<T>(o));
        let matrix = |rows: usize, width: usize| Lines::new(rows * width / T::LINE);
        let scratch = (0..par::workers()).map(|_| Scratch {
            g: matrix(CHUNK, apart::<T>(h)),
            dz: matrix(CHUNK, apart::<T>(o)),
            dg: matrix(CHUNK, width),
            z: matrix(CHUNK, out_width),
            slope: matrix(CHUNK, width),
            s: matrix(CHUNK, width),
            moments: MomentsScratch::new(h),
        });
        let lines = (group * l * h).div_ceil(T::LINE);
        Ok(Self {
            config,
            group,
            conv,
            u: None,
            v: Lines::new(lines),
            scratch: scratch.collect(),
            weight_t: matrix(h, out_width),
            weight: matrix(o, width),
            weight_grad: WeightGrad::new(o, h),
            buffers,
        })
    }

    /// Its settings.
    pub fn config(&self) -> BlockConfig {
        self.config
    }

    /// Checks the sizes of a call and takes its weights. Gives B.
    fn load(&mut self, op: &'static str, x: &[T], p: &BlockParams<'_, T>) -> Result<usize> {
        let BlockConfig { l, h, bidirectional, .. } = self.config;
        let o = self.config.outputs();
        let b = (x.len() / (l * h)).max(1);
        check_len(op, "x", "[B, L, H]", b * l * h, x.len())?;
        check_len(op, "d", "[H]", h, p.d.len())?;
        check_len(op, "out_weight", "[O, H]", o * h, p.out_weight.len())?;
        check_len(op, "out_bias", "[O]", o, p.out_bias.len())?;
        check_len(op, "gamma", "[H]", h, p.norm.gamma.len())?;
        check_len(op, "beta", "[H]", h, p.norm.beta.len())?;
        if let Norm::BatchEval { mean, var } = p.norm.norm {
            check_len(op, "mean", "[H]", h, mean.len())?;
            check_len(op, "var", "[H]", h, var.len())?;
        }
        if let Some(past) = p.past {
            check_len(op, "past", "that of x", x.len(), past.len())?;
        }
        for mask in p.masks.iter().flatten() {
            check_len(op, "mask", "[B, H]", b * h, mask.len())?;
        }
        for lengths in [p.lengths, p.norm.counted()].into_iter().flatten() {
            check_len(op, "lengths", "[B]", b, lengths.len())?;
            if let Some(&length) = lengths.iter().find(|&&length| length > l) {
                let what = format!("a length is {length}, more than L = {l}");
                return Err(Error::Invalid { op, what });
            }
        }
        self.conv.load_kernel(op, p.k, Some(p.d), bidirectional)?;
        Ok(b)
    }
}

/// n rounded up to whole cache lines.
fn wide<T: Real>(n: usize) -> usize {
    n.next_multiple_of(T::LINE)
}
