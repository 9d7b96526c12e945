//! One head of one sequence: where its queries and keys are, its blocks of queries, and the logits of a block.

use super::{AttentionConfig, AttentionInput};
use crate::product::{Layout, Product};
use crate::real::Real;
use std::ops::Range;

/// Queries of a block: the columns of the widest register tile in f32.
pub(super) const QUERIES: usize = 64;

/// Keys of a block: its logits fit the first-level cache.
pub(super) const KEYS: usize = 120;

/// One value for each query of a block.
pub(super) type Lanes<T> = [T; QUERIES];

/// The value of a hidden key's logit.
#[inline(always)]
pub(super) fn hidden<T: Real>() -> T {
    T::rounded(f64::NEG_INFINITY)
}

pub(super) struct Head {
    /// Position among [B, heads].
    pub index: usize,
    /// First channel of query 0 in [B, M, Q].
    start: usize,
    /// First channel of key 0 in [B, L, Q].
    key_start: usize,
    /// Q.
    pub stride: usize,
    /// Channels of the head.
    pub d: usize,
    /// Queries, of which the first `visible` are true.
    pub len: usize,
    pub visible: usize,
    /// Keys, of which the first `visible_keys` are true.
    pub keys: usize,
    pub visible_keys: usize,
    causal: bool,
}

impl Head {
    /// With the true numbers of queries and keys of all sequences, if they are not all true.
    pub(super) fn new(
        config: &AttentionConfig,
        [queries, keys]: [Option<&[usize]>; 2],
        index: usize,
    ) -> Self {
        let (sequence, head) = (index / config.heads, index % config.heads);
        let stride = config.channels();
        let start = |len: usize| sequence * len * stride + head * config.head_dim;
        Self {
            index,
            start: start(config.queries),
            key_start: start(config.keys),
            stride,
            d: config.head_dim,
            len: config.queries,
            visible: queries.map_or(config.queries, |lengths| lengths[sequence]),
            keys: config.keys,
            visible_keys: keys.map_or(config.keys, |lengths| lengths[sequence]),
            causal: config.causal,
        }
    }

    /// Where the row of query t begins.
    pub(super) fn at(&self, t: usize) -> usize {
        self.start + t * self.stride
    }

    /// The row of query t in x: [B, M, Q].
    pub(super) fn row<'a, T>(&self, x: &'a [T], t: usize) -> &'a [T] {
        &x[self.at(t)..][..self.d]
    }

    /// Where the row of key j begins.
    pub(super) fn key_at(&self, j: usize) -> usize {
        self.key_start + j * self.stride
    }

    /// The row of key j in x: [B, L, Q].
    pub(super) fn key_row<'a, T>(&self, x: &'a [T], j: usize) -> &'a [T] {
        &x[self.key_at(j)..][..self.d]
    }

    /// Every `shares`-th block of queries from `share` on: late blocks cost more than early ones if causal.
    pub(super) fn blocks(
        &self,
        share: usize,
        shares: usize,
    ) -> impl Iterator<Item = Range<usize>> + use<> {
        let len = self.len;
        let starts = (share * QUERIES..len).step_by(shares * QUERIES);
        starts.map(move |start| start..len.min(start + QUERIES))
    }

    /// The blocks of keys that some of the queries see.
    pub(super) fn key_blocks(
        &self,
        queries: &Range<usize>,
    ) -> impl Iterator<Item = Range<usize>> + use<> {
        let visible = self.visible_keys;
        let end = if self.causal { visible.min(queries.end) } else { visible };
        (0..end).step_by(KEYS).map(move |start| start..end.min(start + KEYS))
    }

    /// 1/√d
    pub(super) fn scale<T: Real>(&self) -> T {
        T::rounded(1.0 / (self.d as f64).sqrt())
    }

    /// The largest |q| of the given queries.
    pub(super) fn largest_query<T: Real>(&self, q: &[T], queries: Range<usize>) -> f64 {
        queries.map(|t| largest(self.row(q, t))).fold(0.0, f64::max)
    }

    /// The largest |k| of the true keys.
    pub(super) fn largest_key<T: Real>(&self, k: &[T]) -> f64 {
        (0..self.visible_keys).map(|j| largest(self.key_row(k, j))).fold(0.0, f64::max)
    }

    /// out: [d, QUERIES] = the given queries' rows of x as columns, times `scale`; other columns are 0.
    pub(super) fn columns<T: Real>(&self, x: &[T], rows: Range<usize>, scale: T, out: &mut [T]) {
        out.fill(T::ZERO);
        for (lane, t) in rows.enumerate() {
            for (out, &x) in out.chunks_exact_mut(QUERIES).zip(self.row(x, t)) {
                out[lane] = x * scale;
            }
        }
    }

    /// s: [keys, QUERIES] = k·q with q: [d, QUERIES] as [`Head::columns`] gives it.
    pub(super) fn logits<T: Real>(
        &self,
        input: &AttentionInput<'_, T>,
        q: &[T],
        [queries, keys]: [&Range<usize>; 2],
        overflows: bool,
        s: &mut [T],
    ) {
        self.row_products(input.k, keys, q, s);
        if overflows {
            for (s, j) in s.chunks_exact_mut(QUERIES).zip(keys.clone()) {
                for (lane, s) in s.iter_mut().enumerate() {
                    let q = q[lane..].iter().copied().step_by(QUERIES);
                    *s = saturated_product(self.key_row(input.k, j), q);
                }
            }
        }
        if self.causal {
            for (s, j) in s.chunks_exact_mut(QUERIES).zip(keys.clone()) {
                s[..j.saturating_sub(queries.start)].fill(hidden());
            }
        }
    }

    /// out: [keys, QUERIES] = the given keys' rows of x times columns: [d, QUERIES].
    pub(super) fn row_products<T: Real>(
        &self,
        x: &[T],
        keys: &Range<usize>,
        columns: &[T],
        out: &mut [T],
    ) {
        Product {
            size: [keys.len(), QUERIES, self.d],
            a: &x[self.key_at(keys.start)..],
            a_strides: [self.stride, 1],
            b: columns,
            b_layout: Layout::Rows(QUERIES),
            c: out,
            add: false,
        }
        .run();
    }

    /// out: [d, QUERIES] += Σ over the given keys' rows of x, as columns, times weights: [keys, QUERIES].
    pub(super) fn add_weighted_rows<T: Real>(
        &self,
        x: &[T],
        keys: &Range<usize>,
        weights: &[T],
        out: &mut [T],
    ) {
        Product {
            size: [self.d, QUERIES, keys.len()],
            a: &x[self.key_at(keys.start)..],
            a_strides: [1, self.stride],
            b: weights,
            b_layout: Layout::Rows(QUERIES),
            c: out,
            add: true,
        }
        .run();
    }
}

/// The largest |x|; NaN is ignored.
pub(super) fn largest<T: Real>(x: &[T]) -> f64 {
    let larger = |most: T, &x: &T| {
        let size = if x < T::ZERO { -x } else { x };
        if size > most { size } else { most }
    };
    x.iter().fold(T::ZERO, larger).to_f64()
}

/// Whether sums of d products of numbers of these sizes can leave the range.
pub(super) fn may_overflow<T: Real>(d: usize, q: f64, k: f64) -> bool {
    q * k * d as f64 >= T::MAX
}

/// Σ k·q, at most the largest finite number in size: never NaN for finite k and q, whatever the terms are.
pub(super) fn saturated_product<T: Real>(k: &[T], q: impl Iterator<Item = T> + Clone) -> T {
    let k_size = largest(k);
    let q_size = q.clone().map(|q| q.to_f64().abs()).fold(0.0, f64::max);
    if k_size == 0.0 || q_size == 0.0 {
        return T::ZERO;
    }
    let sum: f64 = k.iter().zip(q).map(|(k, q)| k.to_f64() / k_size * (q.to_f64() / q_size)).sum();
    T::from_f64(sum * k_size * q_size)
}
