//! The gradients of one head: a scan over its chunks for dq, and one back for dk and dv.

use super::forward::{add_keys, weights};
use super::head::{CHUNK, Head, hide_later, matrix, transpose, wide};
use super::map::{ChunkGrads, Map};
use super::{KernelisedConfig, KernelisedInput};
use crate::lines::Lines;
use crate::par::Disjoint;
use crate::product::{Layout, Product};
use crate::real::Real;
use std::ops::Range;

/// Buffers of one worker. Letters as in the forward pass.
pub(super) struct Scratch<T: Real> {
    /// Rows of queries and of keys as the map reads them, and their gradients: [CHUNK, wide(d)].
    x_q: Lines<T>,
    x_k: Lines<T>,
    dx: Lines<T>,
    /// [CHUNK, wide(m)]
    phi_q: Lines<T>,
    phi_k: Lines<T>,
    dphi: Lines<T>,
    /// [v, 1], its gradient, and g: [CHUNK, wide(d + 1)].
    v: Lines<T>,
    dv: Lines<T>,
    g: Lines<T>,
    /// A transpose: [m or d + 1, CHUNK].
    t: Lines<T>,
    /// Weights within a chunk, and their gradients: [CHUNK, CHUNK].
    a: Lines<T>,
    da: Lines<T>,
    /// [S, z] and its gradient, each with its transpose: [m, wide(d + 1)] and [d + 1, wide(m)].
    s: Lines<T>,
    ds: Lines<T>,
    s_t: Lines<T>,
}

impl<T: Real> Scratch<T> {
    pub(super) fn new(config: &KernelisedConfig) -> Self {
        let (m, d) = (config.features(), config.head_dim);
        Self {
            x_q: matrix(CHUNK, d),
            x_k: matrix(CHUNK, d),
            dx: matrix(CHUNK, d),
            phi_q: matrix(CHUNK, m),
            phi_k: matrix(CHUNK, m),
            dphi: matrix(CHUNK, m),
            v: matrix(CHUNK, d + 1),
            dv: matrix(CHUNK, d + 1),
            g: matrix(CHUNK, d + 1),
            t: matrix(m.max(d + 1), CHUNK),
            a: matrix(CHUNK, CHUNK),
            da: matrix(CHUNK, CHUNK),
            s: matrix(m, d + 1),
            ds: matrix(m, d + 1),
            s_t: matrix(d + 1, m),
        }
    }
}

/// What a forward call had and left.
pub(super) struct BackwardInput<'a, T> {
    pub input: &'a KernelisedInput<'a, T>,
    pub y: &'a [T],
    pub saved: &'a [T],
    pub dy: &'a [T],
}

impl<T: Real> BackwardInput<'_, T> {
    /// g = [dy, −dy·y]/D of a chunk: [rows, wide(d + 1)].
    fn outputs(&self, head: &Head, rows: &Range<usize>, g: &mut [T]) {
        for (t, g) in rows.clone().zip(g.chunks_exact_mut(wide::<T>(head.d + 1))) {
            let inverse = T::rounded(1.0 / self.saved[head.index * head.len + t].to_f64());
            let (y, dy) = (head.row(self.y, t), head.row(self.dy, t));
            let mut product = T::ZERO;
            for ((g, &dy), &y) in g.iter_mut().zip(dy).zip(y) {
                product += dy * y;
                *g = dy * inverse;
            }
            g[head.d] = -product * inverse;
        }
    }
}

/// Writes all rows of dq, dk and dv of one head.
pub(super) fn attend<T: Real>(
    config: &KernelisedConfig,
    head: &Head,
    map: &Map<T>,
    given: &BackwardInput<'_, T>,
    scratch: &mut Scratch<T>,
    [dq, dk, dv]: &[Disjoint<'_, T>; 3],
) {
    let (m, d, input) = (config.features(), head.d, given.input);
    let (m_width, d_width) = (wide::<T>(m), wide::<T>(d + 1));
    let Scratch { x_q, x_k, dx, phi_q, phi_k, dphi, v, dv: dv_rows, g, t, a, da, s, ds, s_t } =
        scratch;
    s.fill(T::ZERO);
    ds.fill(T::ZERO);
    let constant = map.key_constant(head, input.k, x_k, phi_k);
    if !config.causal {
        for rows in head.chunks() {
            map.keys(head, input.k, &rows, constant, x_k, phi_k);
            head.values(input.v, &rows, v);
            add_keys(&rows, [m, d], phi_k, v, s);
        }
        transpose(s, [m, d + 1], d_width, s_t, m_width);
    }
    // The queries. If all keys are seen by all, d[S, z] is complete after it.
    for rows in head.chunks() {
        map.queries(head, input.q, &rows, x_q, phi_q);
        given.outputs(head, &rows, g);
        if config.causal {
            transpose(s, [m, d + 1], d_width, s_t, m_width);
        }
        times_transposed(&rows, [m, d], g, s_t, dphi, false);
        if config.causal {
            map.keys(head, input.k, &rows, constant, x_k, phi_k);
            head.values(input.v, &rows, v);
            weight_grads(&rows, d, g, v, t, da);
            let (size, a_strides) = ([rows.len(), m_width, rows.len()], [CHUNK, 1]);
            let b_layout = Layout::Rows(m_width);
            Product { size, a: da, a_strides, b: phi_k, b_layout, c: dphi, add: true }.run();
            add_keys(&rows, [m, d], phi_k, v, s);
        } else {
            add_keys(&rows, [m, d], phi_q, g, ds);
        }
        let chunk = ChunkGrads { phi: phi_q, dphi, x: x_q, dx };
        map.queries_backward(head, input.q, &rows, chunk, dq);
    }
    // The keys and values, back to front: ds has what the later chunks ask for.
    let mut total = 0.0;
    if !config.causal {
        transpose(ds, [m, d + 1], d_width, s_t, m_width);
    }
    for rows in head.chunks().rev() {
        map.keys(head, input.k, &rows, constant, x_k, phi_k);
        head.values(input.v, &rows, v);
        if config.causal {
            transpose(ds, [m, d + 1], d_width, s_t, m_width);
        }
        times_transposed(&rows, [m, d], v, s_t, dphi, false);
        let (size, a_strides, b_layout) =
            ([rows.len(), d_width, m], [m_width, 1], Layout::Rows(d_width));
        Product { size, a: phi_k, a_strides, b: ds, b_layout, c: dv_rows, add: false }.run();
        if config.causal {
            map.queries(head, input.q, &rows, x_q, phi_q);
            given.outputs(head, &rows, g);
            weight_grads(&rows, d, g, v, t, da);
            transpose(phi_k, [rows.len(), m], m_width, t, CHUNK);
            weights(&rows, m, phi_q, t, a);
            let (size, a_strides) = ([rows.len(), m_width, rows.len()], [1, CHUNK]);
            let b_layout = Layout::Rows(m_width);
            Product { size, a: da, a_strides, b: phi_q, b_layout, c: dphi, add: true }.run();
            let (size, b_layout) = ([rows.len(), d_width, rows.len()], Layout::Rows(d_width));
            Product { size, a, a_strides, b: g, b_layout, c: dv_rows, add: true }.run();
            add_keys(&rows, [m, d], phi_q, g, ds);
        }
        for (t, row) in rows.clone().zip(dv_rows.chunks_exact(d_width)) {
            head.row_of(dv, t).copy_from_slice(&row[..d]);
        }
        let chunk = ChunkGrads { phi: phi_k, dphi, x: x_k, dx };
        map.keys_backward(head, input.k, &rows, chunk, dk, &mut total);
    }
    map.key_constant_backward(head, constant, total, dk);
    for t in head.visible..head.len {
        for grad in [dq, dk, dv] {
            head.row_of(grad, t).fill(T::ZERO);
        }
    }
}

/// dφ [rows, wide(m)] = x·s_t, x [rows, wide(d + 1)], s_t [d + 1, wide(m)].
fn times_transposed<T: Real>(
    rows: &Range<usize>,
    [m, d]: [usize; 2],
    x: &[T],
    s_t: &[T],
    dphi: &mut [T],
    add: bool,
) {
    Product {
        size: [rows.len(), wide::<T>(m), d + 1],
        a: x,
        a_strides: [wide::<T>(d + 1), 1],
        b: s_t,
        b_layout: Layout::Rows(wide::<T>(m)),
        c: dphi,
        add,
    }
    .run();
}

/// da_ij = g_i·[v_j, 1] for j ≤ i, else 0; `t` is a buffer.
fn weight_grads<T: Real>(
    rows: &Range<usize>,
    d: usize,
    g: &[T],
    v: &[T],
    t: &mut [T],
    da: &mut [T],
) {
    let width = wide::<T>(d + 1);
    transpose(v, [rows.len(), d + 1], width, t, CHUNK);
    Product {
        size: [rows.len(), CHUNK, d + 1],
        a: g,
        a_strides: [width, 1],
        b: t,
        b_layout: Layout::Rows(CHUNK),
        c: da,
        add: false,
    }
    .run();
    hide_later(da, rows.len());
}
