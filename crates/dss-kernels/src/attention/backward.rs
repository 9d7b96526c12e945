//! The gradients: the weights of a block are recomputed from the saved maxima and sums.

use super::AttentionInput;
use super::head::{Head, KEYS, Lanes, QUERIES, may_overflow};
use crate::lines::Lines;
use crate::par::Disjoint;
use crate::product::{Layout, Product};
use crate::real::{Real, dispatch, fuses};
use pulp::{Simd, WithSimd};
use std::ops::Range;

/// Buffers of one worker. D is the head's d, rounded up to whole cache lines.
pub(super) struct Scratch<T: Real> {
    /// q/√d and dy as columns, and Σ ds·k: [d, QUERIES].
    q: Lines<T>,
    dy: Lines<T>,
    dq: Lines<T>,
    /// q/√d and dy as rows: [QUERIES, D].
    q_rows: Lines<T>,
    dy_rows: Lines<T>,
    /// Logits, then weights; dy·v, then ds: [KEYS, QUERIES].
    p: Lines<T>,
    ds: Lines<T>,
    /// Sums over the queries: [L, D].
    dk: Lines<T>,
    dv: Lines<T>,
}

impl<T: Real> Scratch<T> {
    pub(super) fn new(keys: usize, d: usize) -> Self {
        let block = |rows: usize| Lines::new(rows * QUERIES / T::LINE);
        let rows = |rows: usize| Lines::new(rows * d.div_ceil(T::LINE));
        Self {
            q: block(d),
            dy: block(d),
            dq: block(d),
            q_rows: rows(QUERIES),
            dy_rows: rows(QUERIES),
            p: block(KEYS),
            ds: block(KEYS),
            dk: rows(keys),
            dv: rows(keys),
        }
    }
}

/// The inputs and outputs of the forward pass, and the gradient of its output.
pub(super) struct BackwardInput<'a, T> {
    pub input: &'a AttentionInput<'a, T>,
    pub y: &'a [T],
    pub saved: &'a [T],
    pub dy: &'a [T],
}

/// dq of the given blocks of queries of one head; their shares of dk and dv are left in the scratch.
pub(super) fn queries<T: Real>(
    head: &Head,
    blocks: impl Iterator<Item = Range<usize>>,
    given: &BackwardInput<'_, T>,
    scratch: &mut Scratch<T>,
    dq_out: &Disjoint<'_, T>,
) {
    let BackwardInput { input, y, saved, dy } = *given;
    let k_size = head.largest_key(input.k);
    let scale = head.scale::<T>();
    scratch.dk.fill(T::ZERO);
    scratch.dv.fill(T::ZERO);
    let Scratch { q, dy: dy_columns, dq, q_rows, dy_rows, p, ds, dk, dv } = scratch;
    for rows in blocks {
        let queries = rows.start..rows.end.min(head.visible);
        dq.fill(T::ZERO);
        if !queries.is_empty() {
            head.columns(input.q, queries.clone(), scale, q);
            head.columns(dy, queries.clone(), T::rounded(1.0), dy_columns);
            let mut rows = RowStats::default();
            for (lane, t) in queries.clone().enumerate() {
                let [max, sum] = [0, 1].map(|i| saved[(head.index * head.len + t) * 2 + i]);
                let (dy, y) = (head.row(dy, t), head.row(y, t));
                let delta: f64 = dy.iter().zip(y).map(|(dy, y)| dy.to_f64() * y.to_f64()).sum();
                rows.max[lane] = max;
                rows.inverse[lane] = T::rounded(1.0 / sum.to_f64());
                rows.delta[lane] = T::rounded(delta);
            }
            copy_rows(head, input.q, &queries, scale, q_rows);
            copy_rows(head, dy, &queries, T::rounded(1.0), dy_rows);
            let overflows =
                may_overflow::<T>(head.d, head.largest_query(input.q, queries.clone()), k_size);
            for keys in head.key_blocks(&queries) {
                let (p, ds) = (&mut p[..keys.len() * QUERIES], &mut ds[..keys.len() * QUERIES]);
                head.logits(input, q, [&queries, &keys], overflows, p);
                head.row_products(input.v, &keys, dy_columns, ds);
                dispatch(Weights { p, ds, rows: &rows });
                add_weighted_queries(p, dy_rows, &keys, queries.len(), dv);
                add_weighted_queries(ds, q_rows, &keys, queries.len(), dk);
                head.add_weighted_rows(input.k, &keys, ds, dq);
            }
        }
        for (lane, t) in rows.enumerate() {
            // SAFETY: a row of a head belongs to one block.
            let out = unsafe { dq_out.part(head.at(t), head.d) };
            for (out, dq) in out.iter_mut().zip(dq.chunks_exact(QUERIES)) {
                *out = dq[lane] * scale;
            }
        }
    }
}

/// Writes the sums of dk and dv to their places: tensors [B, L, Q] that begin at an element of a buffer.
pub(super) fn write_sums<T: Real>(
    head: &Head,
    scratch: &Scratch<T>,
    to: [(&Disjoint<'_, T>, usize); 2],
) {
    for (sums, (to, start)) in [&scratch.dk, &scratch.dv].into_iter().zip(to) {
        for (t, sum) in sums.chunks_exact(sums.len() / head.keys).enumerate() {
            // SAFETY: a head of a tensor belongs to one worker.
            let to = unsafe { to.part(start + head.key_at(t), head.d) };
            to.copy_from_slice(&sum[..head.d]);
        }
    }
}

/// out: [QUERIES, D] = the given rows of x times `scale`. The columns beyond d stay 0.
fn copy_rows<T: Real>(head: &Head, x: &[T], rows: &Range<usize>, scale: T, out: &mut [T]) {
    let width = out.len() / QUERIES;
    for (out, t) in out.chunks_exact_mut(width).zip(rows.clone()) {
        out.iter_mut().zip(head.row(x, t)).for_each(|(out, &x)| *out = x * scale);
    }
}

/// sums: [L, D] += weights: [keys, QUERIES] times rows: [queries, D], at the given keys.
fn add_weighted_queries<T: Real>(
    weights: &[T],
    rows: &[T],
    keys: &Range<usize>,
    queries: usize,
    sums: &mut [T],
) {
    let width = rows.len() / QUERIES;
    Product {
        size: [keys.len(), width, queries],
        a: weights,
        a_strides: [QUERIES, 1],
        b: rows,
        b_layout: Layout::Rows(width),
        c: &mut sums[keys.start * width..],
        add: true,
    }
    .run();
}

/// m, 1/z and δ of the rows of a block; all 0 where there is no query.
pub(super) struct RowStats<T> {
    pub max: Lanes<T>,
    pub inverse: Lanes<T>,
    pub delta: Lanes<T>,
}

impl<T: Real> Default for RowStats<T> {
    fn default() -> Self {
        let zeros = [T::ZERO; QUERIES];
        Self { max: zeros, inverse: zeros, delta: zeros }
    }
}

/// p = e^{s − m}/z and ds = p·(dy·v − δ), in place.
pub(super) struct Weights<'a, T> {
    /// s, then p: [keys, QUERIES].
    pub p: &'a mut [T],
    /// dy·v, then ds: [keys, QUERIES].
    pub ds: &'a mut [T],
    pub rows: &'a RowStats<T>,
}

impl<T: Real> WithSimd for Weights<'_, T> {
    type Output = ();

    // Several arrays are walked lane by lane.
    #[allow(clippy::needless_range_loop)]
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let fuse = fuses::<S>();
        let RowStats { max, inverse, delta } = self.rows;
        let blocks = self.p.as_chunks_mut::<QUERIES>().0.iter_mut();
        for (p, ds) in blocks.zip(self.ds.as_chunks_mut::<QUERIES>().0) {
            for lane in 0..QUERIES {
                p[lane] = (p[lane] - max[lane]).exp_nonpositive(fuse) * inverse[lane];
                ds[lane] = p[lane] * (ds[lane] - delta[lane]);
            }
        }
    }
}
