//! Softmax attention of queries [B, M, Q] to keys and values [B, L, Q] and its backward, without a matrix of M × L
//! weights.
//!
//! The Q = heads·d channels are cut into heads, each a contiguous slice of d channels. For one head of one sequence
//! (Vaswani et al. 2017, Eq. 1)
//!
//! $$ s_{ij} = q_i \cdot k_j / \sqrt d, \qquad p_{ij} = e^{s_{ij} - m_i} / z_i, \qquad y_i = \sum_j p_{ij} v_j $$
//!
//! ```text
//! s_ij = q_i·k_j/√d,   m_i = max_j s_ij,   z_i = Σ_j e^{s_ij − m_i},   p_ij = e^{s_ij − m_i}/z_i,   y_i = Σ_j p_ij v_j
//! ```
//!
//! over the keys j that the query i sees: j < ℓ, the sequence's number of keys, and j ≤ i if the attention is causal. A
//! hidden key has weight exactly 0; rows at and beyond the number of queries are 0. The backward pass recomputes the
//! weights from the saved m and z:
//!
//! ```text
//! δ_i = dy_i·y_i,   ds_ij = p_ij (dy_i·v_j − δ_i)
//! dv_j = Σ_i p_ij dy_i,   dk_j = Σ_i ds_ij q_i/√d,   dq_i = Σ_j ds_ij k_j/√d
//! ```
//!
//! # Blocks
//!
//! Logits are made for 64 queries and 120 keys at a time and stored as [keys, queries]: the queries fill SIMD lanes, so
//! that maxima and sums over the keys need no sums across lanes, and keys and values are read in place. The
//! maximum and the sum of a row grow from block to block (online softmax).
//!
//! # Memory
//!
//! Besides the arguments, a worker has 2·64·(120 + 2·d) elements, and 2·L·d in the backward. Where the heads
//! of the batch are fewer than 16, their queries are shared out too, and the backward has up to 16/(B·heads) further
//! copies of dk and dv.
//!
//! # Which sizes are fast
//!
//! Lengths that are multiples of 64 (a shorter block costs as much as a whole one), and, in the backward, heads that
//! are multiples of 16 channels in f32 and 8 in f64. Lengths beyond the second-level cache lose nothing.

mod backward;
mod forward;
pub mod gathered;
mod head;
mod reference;
mod step;

use crate::error::{Error, Result, check_len, check_memory};
use crate::lines::Lines;
use crate::par::{self, Disjoint, share};
use crate::real::Real;
use head::{Head, QUERIES};

pub use reference::{ReferenceGrads, attention_backward_reference, attention_reference};
pub use step::AttentionCache;

/// Sizes of an attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttentionConfig {
    /// Sequences B.
    pub batch: usize,
    /// Queries M.
    pub queries: usize,
    /// Keys L.
    pub keys: usize,
    /// Heads.
    pub heads: usize,
    /// Channels d of a head.
    pub head_dim: usize,
    /// Whether a query sees only the keys up to its own position; then M = L.
    pub causal: bool,
}

impl AttentionConfig {
    /// Q = heads·d.
    pub fn channels(&self) -> usize {
        self.heads * self.head_dim
    }

    /// Elements of the saved statistics, `[B, heads, M, 2]`: maximum m and sum z of every row.
    pub fn saved_len(&self) -> usize {
        self.batch * self.heads * self.queries * 2
    }

    fn check(&self, op: &'static str) -> Result<()> {
        let Self { batch, queries, keys, heads, head_dim, causal } = *self;
        let sizes = [batch, queries, keys, heads, head_dim];
        if sizes.contains(&0) {
            let what = format!("B, M, L, heads and d must be at least 1, but are {sizes:?}");
            return Err(Error::Invalid { op, what });
        }
        if causal && queries != keys {
            let what =
                format!("causal attention has as many queries as keys, not {queries} and {keys}");
            return Err(Error::Invalid { op, what });
        }
        // The backward's copies of dk and dv are the largest buffer.
        let bytes = [2, SHARES, size_of::<f64>(), batch, queries.max(keys), heads, head_dim];
        check_memory(op, bytes, format_args!("B, M, L, heads and d = {sizes:?}"))
    }
}

/// The inputs of an attention.
#[derive(Debug, Clone, Copy)]
pub struct AttentionInput<'a, T> {
    /// Queries `[B, M, Q]`.
    pub q: &'a [T],
    /// Keys `[B, L, Q]`.
    pub k: &'a [T],
    /// Values `[B, L, Q]`.
    pub v: &'a [T],
    /// True queries of every sequence, `[B]`, at most M; M where absent.
    pub query_lengths: Option<&'a [usize]>,
    /// True keys ℓ of every sequence, `[B]`, at most L; L where absent. A sequence without keys has no queries.
    pub key_lengths: Option<&'a [usize]>,
}

impl<T> AttentionInput<'_, T> {
    /// True queries and keys of every sequence.
    fn lengths(&self) -> [Option<&[usize]>; 2] {
        [self.query_lengths, self.key_lengths]
    }
}

/// The gradients, as outputs.
#[derive(Debug)]
pub struct AttentionGrads<'a, T> {
    /// ∂loss/∂q: `[B, M, Q]`.
    pub q: &'a mut [T],
    /// ∂loss/∂k: `[B, L, Q]`.
    pub k: &'a mut [T],
    /// ∂loss/∂v: `[B, L, Q]`.
    pub v: &'a mut [T],
}

/// The least number of pieces of work: a constant, so that sums do not depend on the number of threads.
const SHARES: usize = 16;

/// Plan and buffers of softmax attention (see the [module](self)).
///
/// After the first forward and the first backward nothing allocates. Results are equal bit for bit whatever the number
/// of threads. Logits of any size are safe: finite queries and keys have finite weights.
///
/// ```
/// use dss_kernels::attention::{Attention, AttentionConfig, AttentionInput};
/// let config = AttentionConfig { batch: 1, queries: 2, keys: 2, heads: 1, head_dim: 1, causal: true };
/// let mut attention = Attention::<f64>::new(config)?;
/// let (q, k, v) = (&[1.0, 1.0], &[0.0, 3f64.ln()], &[8.0, 4.0]);
/// let input = AttentionInput { q, k, v, query_lengths: None, key_lengths: None };
/// let (mut y, mut saved) = ([0.0; 2], vec![0.0; config.saved_len()]);
/// attention.forward(&input, &mut y, &mut saved)?;
/// // The first sees itself alone, the second both, with weights 1/4 and 3/4.
/// assert!((y[0] - 8.0).abs() < 1e-12 && (y[1] - 5.0).abs() < 1e-12);
/// # Ok::<(), dss_kernels::Error>(())
/// ```
pub struct Attention<T: Real> {
    config: AttentionConfig,
    /// Shares of the blocks of queries of one head.
    shares: usize,
    forward: Vec<forward::Scratch<T>>,
    backward: Vec<backward::Scratch<T>>,
    /// What all shares but the first add to dk and dv: [shares − 1, 2, B, L, Q]; made by the first backward.
    further: Option<Lines<T>>,
}

impl<T: Real> Attention<T> {
    /// A plan; its buffers are allocated by the first calls.
    pub fn new(config: AttentionConfig) -> Result<Self> {
        config.check("Attention::new")?;
        let blocks = config.queries.div_ceil(QUERIES);
        let shares = SHARES.div_ceil(config.batch * config.heads).min(blocks);
        Ok(Self { config, shares, forward: Vec::new(), backward: Vec::new(), further: None })
    }

    /// The sizes of this plan.
    pub fn config(&self) -> &AttentionConfig {
        &self.config
    }

    /// y = softmax(q·kᵀ/√d + mask)·v, head by head.
    ///
    /// # Shapes
    /// y: `[B, M, Q]`; saved: `[B, heads, M, 2]`, for the backward.
    pub fn forward(
        &mut self,
        input: &AttentionInput<'_, T>,
        y: &mut [T],
        saved: &mut [T],
    ) -> Result<()> {
        let op = "Attention::forward";
        self.check_input(op, input)?;
        self.check_rows(op, "y", y)?;
        check_len(op, "saved", "[B, heads, M, 2]", self.config.saved_len(), saved.len())?;
        let Self { config, shares, forward: scratches, .. } = self;
        let pieces = config.batch * config.heads * *shares;
        par::fill(scratches, pieces, || forward::Scratch::new(config.head_dim));
        let (y, saved) = (Disjoint::new(y), Disjoint::new(saved));
        par::for_each(scratches, pieces, |scratch, piece| {
            let head = Head::new(config, input.lengths(), piece / *shares);
            let out = forward::Output { y: &y, saved: &saved };
            forward::attend(&head, head.blocks(piece % *shares, *shares), input, scratch, &out);
        });
        Ok(())
    }

    /// Given dy = ∂loss/∂y, writes the gradients of q, k and v for the input, y and saved statistics of a forward call.
    ///
    /// # Shapes
    /// y, dy: `[B, M, Q]`; saved: `[B, heads, M, 2]`. dy counts as 0 at and beyond the lengths.
    pub fn backward(
        &mut self,
        input: &AttentionInput<'_, T>,
        y: &[T],
        saved: &[T],
        dy: &[T],
        grads: AttentionGrads<'_, T>,
    ) -> Result<()> {
        let op = "Attention::backward";
        self.check_input(op, input)?;
        check_len(op, "saved", "[B, heads, M, 2]", self.config.saved_len(), saved.len())?;
        for (name, x) in [("y", y), ("dy", dy), ("dq", &*grads.q)] {
            self.check_rows(op, name, x)?;
        }
        for (name, x) in [("dk", &*grads.k), ("dv", &*grads.v)] {
            self.check_keys(op, name, x)?;
        }
        let Self { config, shares, backward: scratches, further, .. } = self;
        let (shares, size) = (*shares, grads.k.len());
        let pieces = config.batch * config.heads * shares;
        par::fill(scratches, pieces, || backward::Scratch::new(config.keys, config.head_dim));
        let whole = ((shares - 1) * 2 * size).div_ceil(T::LINE);
        let further = further.get_or_insert_with(|| Lines::new(whole)).as_mut_slice();
        {
            let dq = Disjoint::new(&mut *grads.q);
            let first = [Disjoint::new(&mut *grads.k), Disjoint::new(&mut *grads.v)];
            let further = Disjoint::new(further);
            par::for_each(scratches, pieces, |scratch, piece| {
                let head = Head::new(config, input.lengths(), piece / shares);
                let share = piece % shares;
                let given = backward::BackwardInput { input, y, saved, dy };
                backward::queries(&head, head.blocks(share, shares), &given, scratch, &dq);
                let [dk, dv] = &first;
                match share {
                    0 => backward::write_sums(&head, scratch, [(dk, 0), (dv, 0)]),
                    _ => {
                        let start = (share - 1) * 2 * size;
                        let parts = [(&further, start), (&further, start + size)];
                        backward::write_sums(&head, scratch, parts);
                    }
                }
            });
        }
        for share in further.chunks_exact(2 * size).take(shares - 1) {
            let (dk, dv) = share.split_at(size);
            add_parallel(scratches, grads.k, dk);
            add_parallel(scratches, grads.v, dv);
        }
        Ok(())
    }

    fn check_input(&self, op: &'static str, input: &AttentionInput<'_, T>) -> Result<()> {
        self.check_rows(op, "q", input.q)?;
        self.check_keys(op, "k", input.k)?;
        self.check_keys(op, "v", input.v)?;
        let AttentionConfig { batch, queries, keys, .. } = self.config;
        check_lengths(op, input.query_lengths, [batch, queries])?;
        check_lengths(op, input.key_lengths, [batch, keys])?;
        let keyless = |b: usize| {
            let [true_queries, true_keys] = input.lengths().map(|lengths| lengths.map(|l| l[b]));
            true_keys == Some(0) && true_queries != Some(0)
        };
        match (0..batch).find(|&b| keyless(b)) {
            None => Ok(()),
            Some(b) => {
                Err(Error::Invalid { op, what: format!("sequence {b} has queries, but no keys") })
            }
        }
    }

    fn check_rows(&self, op: &'static str, name: &'static str, x: &[T]) -> Result<()> {
        let AttentionConfig { batch, queries, .. } = self.config;
        check_len(op, name, "[B, M, Q]", batch * queries * self.config.channels(), x.len())
    }

    fn check_keys(&self, op: &'static str, name: &'static str, x: &[T]) -> Result<()> {
        let AttentionConfig { batch, keys, .. } = self.config;
        check_len(op, name, "[B, L, Q]", batch * keys * self.config.channels(), x.len())
    }
}

/// There are as many lengths as sequences, each at most L.
pub(crate) fn check_lengths(
    op: &'static str,
    lengths: Option<&[usize]>,
    [batch, len]: [usize; 2],
) -> Result<()> {
    let Some(lengths) = lengths else { return Ok(()) };
    check_len(op, "lengths", "[B]", batch, lengths.len())?;
    match lengths.iter().find(|&&length| length > len) {
        None => Ok(()),
        Some(length) => {
            Err(Error::Invalid { op, what: format!("a length is {length}, but L is {len}") })
        }
    }
}

/// to += x
fn add_parallel<T: Real, S: Send>(scratches: &mut [S], to: &mut [T], x: &[T]) {
    let shared = Disjoint::new(to);
    par::for_each(scratches, SHARES, |_, i| {
        let own = share(x.len(), SHARES, i);
        // SAFETY: shares do not overlap.
        let to = unsafe { shared.part(own.start, own.len()) };
        to.iter_mut().zip(&x[own]).for_each(|(to, &x)| *to += x);
    });
}
