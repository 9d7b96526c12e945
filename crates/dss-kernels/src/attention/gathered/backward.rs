//! The gradients of one head: the weights of a tile are recomputed from the saved maxima and sums.

use super::super::backward::{RowStats, Weights};
use super::super::head::{Head, KEYS, QUERIES};
use super::forward::{add_weighted, columns, logits};
use super::{GatheredConfig, GatheredInput, gather};
use crate::lines::Lines;
use crate::par::Disjoint;
use crate::product::{Layout, Product};
use crate::real::{Real, dispatch};

/// Buffers of one worker. D is the head's d, rounded up to whole cache lines.
pub(super) struct Scratch<T: Real> {
    /// 1/z and δ of each row: [L].
    inverse: Vec<T>,
    delta: Vec<T>,
    /// Sums over the tiles: [L, d], [L, D], [L, D].
    dq_rows: Vec<T>,
    dk_rows: Vec<T>,
    dv_rows: Vec<T>,
    /// q·scale, dy and Σ ds·k, as columns: [d, QUERIES].
    q: Lines<T>,
    dy: Lines<T>,
    dq: Lines<T>,
    /// q·scale and dy as rows: [QUERIES, D].
    q_rows: Lines<T>,
    dy_rows: Lines<T>,
    /// Logits, then weights; dy·v, then ds: [KEYS, QUERIES].
    p: Lines<T>,
    ds: Lines<T>,
    /// Gathered keys and values: [KEYS, d]; what a tile adds to their gradients: [KEYS, D].
    k: Vec<T>,
    v: Vec<T>,
    part: Lines<T>,
}

impl<T: Real> Scratch<T> {
    pub(super) fn new(len: usize, d: usize) -> Self {
        let wide = d.next_multiple_of(T::LINE);
        let lines = |count: usize| Lines::new(count.div_ceil(T::LINE));
        let zeros = |count: usize| vec![T::ZERO; count];
        Self {
            inverse: zeros(len),
            delta: zeros(len),
            dq_rows: zeros(len * d),
            dk_rows: zeros(len * wide),
            dv_rows: zeros(len * wide),
            q: lines(d * QUERIES),
            dy: lines(d * QUERIES),
            dq: lines(d * QUERIES),
            q_rows: lines(QUERIES * wide),
            dy_rows: lines(QUERIES * wide),
            p: lines(KEYS * QUERIES),
            ds: lines(KEYS * QUERIES),
            k: zeros(KEYS * d),
            v: zeros(KEYS * d),
            part: lines(KEYS * wide),
        }
    }
}

/// The inputs and outputs of the forward pass, and the gradient of its output.
pub(super) struct BackwardInput<'a, T> {
    pub input: &'a GatheredInput<'a, T>,
    pub y: &'a [T],
    pub saved: &'a [T],
    pub dy: &'a [T],
}

/// dq, dk and dv: [B, L, Q] of one head.
pub(super) fn gradients<T: Real>(
    config: &GatheredConfig,
    head: &Head,
    given: &BackwardInput<'_, T>,
    scratch: &mut Scratch<T>,
    out: &[Disjoint<'_, T>; 3],
) {
    let BackwardInput { input, y, saved, dy } = *given;
    let Scratch { inverse, delta, dq_rows, dk_rows, dv_rows, dq, p, ds, k, v, part, .. } = scratch;
    let (q_columns, dy_columns) = (&mut scratch.q, &mut scratch.dy);
    let (q_rows, dy_rows) = (&mut scratch.q_rows, &mut scratch.dy_rows);
    let (d, wide) = (head.d, head.d.next_multiple_of(T::LINE));
    let (scale, one) = (T::rounded(config.scale), T::rounded(1.0));
    let saved = &saved[head.index * head.len * 2..][..head.len * 2];
    for t in 0..head.len {
        let sum = saved[2 * t + 1].to_f64();
        inverse[t] = T::rounded(if sum == 0.0 { 0.0 } else { 1.0 / sum });
        let pairs = head.row(dy, t).iter().zip(head.row(y, t));
        delta[t] = T::rounded(pairs.map(|(dy, y)| dy.to_f64() * y.to_f64()).sum());
    }
    for rows in [&mut *dq_rows, &mut *dk_rows, &mut *dv_rows] {
        rows.fill(T::ZERO);
    }
    let (sequence, number) = (head.index / config.heads, head.index % config.heads);
    input.tiles.visit(sequence, number, &mut |queries, keys| {
        for queries in queries.chunks(QUERIES) {
            columns(head, input.q, queries, scale, q_columns);
            columns(head, dy, queries, one, dy_columns);
            copy_rows(head, input.q, queries, scale, q_rows);
            copy_rows(head, dy, queries, one, dy_rows);
            let mut rows = RowStats::default();
            for (lane, &t) in queries.iter().enumerate() {
                let t = t as usize;
                rows.max[lane] = saved[2 * t];
                (rows.inverse[lane], rows.delta[lane]) = (inverse[t], delta[t]);
            }
            dq.fill(T::ZERO);
            for keys in keys.chunks(KEYS) {
                gather(head, input.k, keys, k);
                gather(head, input.v, keys, v);
                let n = keys.len();
                let (p, ds) = (&mut p[..n * QUERIES], &mut ds[..n * QUERIES]);
                logits(n, d, k, q_columns, p);
                config.apply_rules(queries, keys, p);
                logits(n, d, v, dy_columns, ds);
                dispatch(Weights { p: &mut *p, ds: &mut *ds, rows: &rows });
                if config.self_last {
                    no_own_gradient(queries, keys, ds);
                }
                add_to_keys(p, dy_rows, keys, queries.len(), part, dv_rows);
                add_to_keys(ds, q_rows, keys, queries.len(), part, dk_rows);
                add_weighted(n, d, k, ds, dq);
            }
            for (lane, &t) in queries.iter().enumerate() {
                let row = &mut dq_rows[t as usize * d..][..d];
                row.iter_mut().zip(dq.chunks_exact(QUERIES)).for_each(|(row, dq)| *row += dq[lane]);
            }
        }
    });
    for t in 0..head.len {
        // SAFETY: a row of a head belongs to one worker.
        let [dq, dk, dv] = out.each_ref().map(|out| unsafe { out.part(head.at(t), d) });
        dq.iter_mut().zip(&dq_rows[t * d..]).for_each(|(to, &x)| *to = x * scale);
        dk.copy_from_slice(&dk_rows[t * wide..][..d]);
        dv.copy_from_slice(&dv_rows[t * wide..][..d]);
    }
}

/// The logit of a query's own key is a constant.
fn no_own_gradient<T: Real>(queries: &[u32], keys: &[u32], ds: &mut [T]) {
    for (ds, &key) in ds.chunks_exact_mut(QUERIES).zip(keys) {
        for (ds, &query) in ds.iter_mut().zip(queries) {
            if query == key {
                *ds = T::ZERO;
            }
        }
    }
}

/// out: [QUERIES, D] = the given rows of x times `scale`. The columns beyond d stay 0.
fn copy_rows<T: Real>(head: &Head, x: &[T], rows: &[u32], scale: T, out: &mut [T]) {
    let width = out.len() / QUERIES;
    for (out, &t) in out.chunks_exact_mut(width).zip(rows) {
        out.iter_mut().zip(head.row(x, t as usize)).for_each(|(out, &x)| *out = x * scale);
    }
}

/// sums: [L, D] += weights: [keys, QUERIES] times rows: [queries, D], at the given keys.
fn add_to_keys<T: Real>(
    weights: &[T],
    rows: &[T],
    keys: &[u32],
    queries: usize,
    part: &mut [T],
    sums: &mut [T],
) {
    let width = rows.len() / QUERIES;
    Product {
        size: [keys.len(), width, queries],
        a: weights,
        a_strides: [QUERIES, 1],
        b: rows,
        b_layout: Layout::Rows(width),
        c: part,
        add: false,
    }
    .run();
    for (part, &t) in part.chunks_exact(width).zip(keys) {
        let sum = &mut sums[t as usize * width..][..width];
        sum.iter_mut().zip(part).for_each(|(sum, &part)| *sum += part);
    }
}
