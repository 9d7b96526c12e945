//! Attention of queries to chosen keys only: tiles of a few queries and a few keys each, under one softmax per query.
//!
//! For one head of one sequence, with T_i the keys of all tiles that query i is in (a key counts as often as it is named),
//!
//! ```text
//! s_ij = scale·q_i·k_j,   y_i = Σ_{j ∈ T_i} e^{s_ij} v_j / Σ_{j ∈ T_i} e^{s_ij}
//! ```
//!
//! BigBird's blocks are such tiles ([`BlockTiles`]). So are the chunks of all rounds of Reformer ([`ChunkTiles`]): rounds
//! joined with the weights softmax(logsumexp) are one softmax over the keys of all of them.
//!
//! Maximum and sum of a row grow from tile to tile, as in [`super`]; the backward pass recomputes the weights. Time and
//! memory are those of the tiles: there is no matrix of L × L weights.

mod backward;
mod blocks;
mod chunks;
mod forward;

use super::head::{Head, QUERIES, hidden};
use super::{AttentionConfig, AttentionGrads};
use crate::error::{Result, check_len};
use crate::par::{self, Disjoint};
use crate::real::Real;
use std::fmt::Debug;

pub use blocks::BlockTiles;
pub use chunks::{ChunkTiles, HashSizes, hash_buckets, sorted_positions};

/// Which keys the queries of a head see.
pub trait Tiles: Debug + Send + Sync {
    /// Calls `tile(queries, keys)` with positions below L: each of the queries sees each of the keys. A query may be in
    /// several tiles; one in none gives 0.
    fn visit(&self, sequence: usize, head: usize, tile: &mut dyn FnMut(&[u32], &[u32]));
}

/// Sizes and rules of a gathered attention.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GatheredConfig {
    /// Sequences B.
    pub batch: usize,
    /// Positions L.
    pub len: usize,
    /// Heads.
    pub heads: usize,
    /// Channels d of a head.
    pub head_dim: usize,
    /// What the logits q·k are multiplied by.
    pub scale: f64,
    /// Whether a query sees only the keys up to its own position.
    pub causal: bool,
    /// Whether a query's own key has the logit [`SELF_LOGIT`], so that it counts only where the query sees nothing else.
    pub self_last: bool,
}

/// The logit of a query's own key with [`GatheredConfig::self_last`].
pub const SELF_LOGIT: f64 = -1e5;

impl GatheredConfig {
    /// Elements of the saved statistics, `[B, heads, L, 2]`: maximum and sum of every row.
    pub fn saved_len(&self) -> usize {
        self.sizes().saved_len()
    }

    fn sizes(&self) -> AttentionConfig {
        let Self { batch, len, heads, head_dim, .. } = *self;
        AttentionConfig { batch, queries: len, keys: len, heads, head_dim, causal: false }
    }

    /// The logits s: [keys, QUERIES] of hidden keys, and of a query's own.
    fn apply_rules<T: Real>(&self, queries: &[u32], keys: &[u32], s: &mut [T]) {
        if !self.causal && !self.self_last {
            return;
        }
        let own = T::rounded(SELF_LOGIT);
        for (s, &key) in s.chunks_exact_mut(QUERIES).zip(keys) {
            for (s, &query) in s.iter_mut().zip(queries) {
                if self.causal && key > query {
                    *s = hidden();
                } else if self.self_last && key == query {
                    *s = own;
                }
            }
        }
    }
}

/// The inputs of an attention.
#[derive(Debug, Clone, Copy)]
pub struct GatheredInput<'a, T> {
    /// Queries `[B, L, Q]`.
    pub q: &'a [T],
    /// Keys `[B, L, Q]`.
    pub k: &'a [T],
    /// Values `[B, L, Q]`.
    pub v: &'a [T],
    /// Which keys each query sees.
    pub tiles: &'a dyn Tiles,
}

/// Plan and buffers of gathered attention (see the [module](self)).
///
/// Results are equal bit for bit whatever the number of threads: a head of a sequence is the work of one.
///
/// ```
/// use dss_kernels::attention::gathered::{BlockTiles, Gathered, GatheredConfig, GatheredInput};
/// let config = GatheredConfig {
///     batch: 1, len: 2, heads: 1, head_dim: 1, scale: 1.0, causal: false, self_last: false,
/// };
/// let tiles = BlockTiles::new(2, 1, 1, &[], None, 2);
/// let input = GatheredInput { q: &[1.0, 1.0], k: &[0.0, 3f64.ln()], v: &[8.0, 4.0], tiles: &tiles };
/// let (mut y, mut saved) = ([0.0; 2], vec![0.0; config.saved_len()]);
/// Gathered::<f64>::new(config)?.forward(&input, &mut y, &mut saved)?;
/// assert!((y[0] - 5.0).abs() < 1e-12); // weights 1/4 and 3/4
/// # Ok::<(), dss_kernels::Error>(())
/// ```
pub struct Gathered<T: Real> {
    config: GatheredConfig,
    forward: Vec<forward::Scratch<T>>,
    backward: Vec<backward::Scratch<T>>,
}

impl<T: Real> Gathered<T> {
    /// A plan; its buffers are allocated by the first calls.
    pub fn new(config: GatheredConfig) -> Result<Self> {
        config.sizes().check("Gathered::new")?;
        Ok(Self { config, forward: Vec::new(), backward: Vec::new() })
    }

    /// y, and what the backward needs of every row.
    ///
    /// # Shapes
    /// y: `[B, L, Q]`; saved: `[B, heads, L, 2]`.
    pub fn forward(
        &mut self,
        input: &GatheredInput<'_, T>,
        y: &mut [T],
        saved: &mut [T],
    ) -> Result<()> {
        let op = "Gathered::forward";
        self.check(op, &[("q", input.q), ("k", input.k), ("v", input.v), ("y", y)], saved)?;
        let Self { config, forward: scratches, .. } = self;
        let pieces = config.batch * config.heads;
        par::fill(scratches, pieces, || forward::Scratch::new(config.len, config.head_dim));
        let (y, saved) = (Disjoint::new(y), Disjoint::new(saved));
        par::for_each(scratches, pieces, |scratch, index| {
            let head = Head::new(&config.sizes(), [None; 2], index);
            forward::attend(config, &head, input, scratch, [&y, &saved]);
        });
        Ok(())
    }

    /// Given dy = ∂loss/∂y, writes the gradients of q, k and v for the input, y and saved statistics of a forward call.
    ///
    /// # Shapes
    /// y, dy: `[B, L, Q]`; saved: `[B, heads, L, 2]`.
    pub fn backward(
        &mut self,
        input: &GatheredInput<'_, T>,
        y: &[T],
        saved: &[T],
        dy: &[T],
        grads: AttentionGrads<'_, T>,
    ) -> Result<()> {
        let op = "Gathered::backward";
        let inputs = [("q", input.q), ("k", input.k), ("v", input.v), ("y", y), ("dy", dy)];
        self.check(op, &inputs, saved)?;
        let outputs = [("dq", &*grads.q), ("dk", grads.k), ("dv", grads.v)];
        self.check(op, &outputs, saved)?;
        let Self { config, backward: scratches, .. } = self;
        let pieces = config.batch * config.heads;
        par::fill(scratches, pieces, || backward::Scratch::new(config.len, config.head_dim));
        let out = [grads.q, grads.k, grads.v].map(Disjoint::new);
        par::for_each(scratches, pieces, |scratch, index| {
            let head = Head::new(&config.sizes(), [None; 2], index);
            let given = backward::BackwardInput { input, y, saved, dy };
            backward::gradients(config, &head, &given, scratch, &out);
        });
        Ok(())
    }

    fn check(&self, op: &'static str, all: &[(&'static str, &[T])], saved: &[T]) -> Result<()> {
        let sizes = self.config.sizes();
        for (name, x) in all {
            check_len(
                op,
                name,
                "[B, L, Q]",
                sizes.batch * sizes.queries * sizes.channels(),
                x.len(),
            )?;
        }
        check_len(op, "saved", "[B, heads, L, 2]", sizes.saved_len(), saved.len())
    }
}

/// out: [n, d] = the given rows of x.
fn gather<T: Real>(head: &Head, x: &[T], rows: &[u32], out: &mut [T]) {
    for (out, &t) in out.chunks_exact_mut(head.d).zip(rows) {
        out.copy_from_slice(head.row(x, t as usize));
    }
}
