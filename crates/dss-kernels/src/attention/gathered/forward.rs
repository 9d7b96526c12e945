//! One head, tile by tile, by online softmax.

use super::super::forward::OnlineSoftmax;
use super::super::head::{Head, KEYS, QUERIES};
use super::{GatheredConfig, GatheredInput, gather};
use crate::lines::Lines;
use crate::par::Disjoint;
use crate::product::{Layout, Product};
use crate::real::{Real, dispatch};

/// Buffers of one worker.
pub(super) struct Scratch<T: Real> {
    /// Maximum and sum of each row, and y times its sum: [L], [L], [L, d].
    max: Vec<T>,
    sum: Vec<T>,
    rows: Vec<T>,
    /// q·scale and y times its sum, as columns: [d, QUERIES].
    q: Lines<T>,
    y: Lines<T>,
    /// Logits, then weights: [KEYS, QUERIES].
    s: Lines<T>,
    /// Gathered keys and values: [KEYS, d].
    k: Vec<T>,
    v: Vec<T>,
}

impl<T: Real> Scratch<T> {
    pub(super) fn new(len: usize, d: usize) -> Self {
        let block = |rows: usize| Lines::new(rows * QUERIES / T::LINE);
        let zeros = |count: usize| vec![T::ZERO; count];
        Self {
            max: zeros(len),
            sum: zeros(len),
            rows: zeros(len * d),
            q: block(d),
            y: block(d),
            s: block(KEYS),
            k: zeros(KEYS * d),
            v: zeros(KEYS * d),
        }
    }
}

/// y: [B, L, Q] and the statistics [B, heads, L, 2] of one head.
pub(super) fn attend<T: Real>(
    config: &GatheredConfig,
    head: &Head,
    input: &GatheredInput<'_, T>,
    scratch: &mut Scratch<T>,
    [out_y, out_saved]: [&Disjoint<'_, T>; 2],
) {
    let Scratch { max, sum, rows, q, y, s, k, v } = scratch;
    let d = head.d;
    // Not −∞, so that a tile without a visible key leaves a row as it was.
    max.fill(T::rounded(-T::MAX));
    sum.fill(T::ZERO);
    rows.fill(T::ZERO);
    let (sequence, number) = (head.index / config.heads, head.index % config.heads);
    input.tiles.visit(sequence, number, &mut |queries, keys| {
        for queries in queries.chunks(QUERIES) {
            columns(head, input.q, queries, T::rounded(config.scale), q);
            let (mut row_max, mut row_sum) = ([T::ZERO; QUERIES], [T::ZERO; QUERIES]);
            y.fill(T::ZERO);
            for (lane, &t) in queries.iter().enumerate() {
                (row_max[lane], row_sum[lane]) = (max[t as usize], sum[t as usize]);
                let row = &rows[t as usize * d..][..d];
                y.chunks_exact_mut(QUERIES).zip(row).for_each(|(y, &row)| y[lane] = row);
            }
            for keys in keys.chunks(KEYS) {
                gather(head, input.k, keys, k);
                gather(head, input.v, keys, v);
                let s = &mut s[..keys.len() * QUERIES];
                logits(keys.len(), d, k, q, s);
                config.apply_rules(queries, keys, s);
                dispatch(OnlineSoftmax { s: &mut *s, max: &mut row_max, sum: &mut row_sum, y });
                add_weighted(keys.len(), d, v, s, y);
            }
            for (lane, &t) in queries.iter().enumerate() {
                (max[t as usize], sum[t as usize]) = (row_max[lane], row_sum[lane]);
                let row = &mut rows[t as usize * d..][..d];
                row.iter_mut().zip(y.chunks_exact(QUERIES)).for_each(|(row, y)| *row = y[lane]);
            }
        }
    });
    for (t, row) in rows.chunks_exact(d).enumerate() {
        // SAFETY: a row of a head belongs to one worker.
        let (y, saved) = unsafe {
            (out_y.part(head.at(t), d), out_saved.part((head.index * head.len + t) * 2, 2))
        };
        if sum[t] > T::ZERO {
            let inverse = T::rounded(1.0 / sum[t].to_f64());
            y.iter_mut().zip(row).for_each(|(y, &row)| *y = row * inverse);
            saved.copy_from_slice(&[max[t], sum[t]]);
        } else {
            // In no tile, or not a number.
            y.fill(sum[t]);
            saved.copy_from_slice(&[T::ZERO, sum[t]]);
        }
    }
}

/// out: [d, QUERIES] = the given rows of x as columns, times `scale`; other columns are 0.
pub(super) fn columns<T: Real>(head: &Head, x: &[T], rows: &[u32], scale: T, out: &mut [T]) {
    out.fill(T::ZERO);
    for (lane, &t) in rows.iter().enumerate() {
        for (out, &x) in out.chunks_exact_mut(QUERIES).zip(head.row(x, t as usize)) {
            out[lane] = x * scale;
        }
    }
}

/// s: [keys, QUERIES] = rows: [keys, d] times columns: [d, QUERIES].
pub(super) fn logits<T: Real>(keys: usize, d: usize, rows: &[T], columns: &[T], s: &mut [T]) {
    Product {
        size: [keys, QUERIES, d],
        a: rows,
        a_strides: [d, 1],
        b: columns,
        b_layout: Layout::Rows(QUERIES),
        c: s,
        add: false,
    }
    .run();
}

/// out: [d, QUERIES] += rows: [keys, d], as columns, times weights: [keys, QUERIES].
pub(super) fn add_weighted<T: Real>(
    keys: usize,
    d: usize,
    rows: &[T],
    weights: &[T],
    out: &mut [T],
) {
    Product {
        size: [d, QUERIES, keys],
        a: rows,
        a_strides: [1, d],
        b: weights,
        b_layout: Layout::Rows(QUERIES),
        c: out,
        add: true,
    }
    .run();
}
