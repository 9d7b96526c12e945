//! y of one head, chunk by chunk.

use super::head::{CHUNK, Head, hide_later, matrix, transpose, wide};
use super::map::Map;
use super::{KernelisedConfig, KernelisedInput};
use crate::lines::Lines;
use crate::par::Disjoint;
use crate::product::{Layout, Product};
use crate::real::Real;
use std::ops::Range;

/// Buffers of one worker.
pub(super) struct Scratch<T: Real> {
    /// Rows as a feature map reads them: [CHUNK, wide(d)].
    x: Lines<T>,
    /// φ of queries and of keys: [CHUNK, wide(m)].
    phi_q: Lines<T>,
    phi_k: Lines<T>,
    /// φ of keys, transposed: [m, CHUNK].
    phi_t: Lines<T>,
    /// [v, 1]: [CHUNK, wide(d + 1)].
    v: Lines<T>,
    /// Weights within a chunk: [CHUNK, CHUNK].
    a: Lines<T>,
    /// Numerators and denominators: [CHUNK, wide(d + 1)].
    o: Lines<T>,
    /// [S, z]: [m, wide(d + 1)].
    s: Lines<T>,
}

impl<T: Real> Scratch<T> {
    pub(super) fn new(config: &KernelisedConfig) -> Self {
        let (m, d) = (config.features(), config.head_dim);
        let inner = if config.causal { m } else { 0 };
        Self {
            x: matrix(CHUNK, d),
            phi_q: matrix(CHUNK, m),
            phi_k: matrix(CHUNK, m),
            phi_t: matrix(inner, CHUNK),
            v: matrix(CHUNK, d + 1),
            a: matrix(CHUNK, CHUNK),
            o: matrix(CHUNK, d + 1),
            s: matrix(m, d + 1),
        }
    }
}

/// Where the results go.
pub(super) struct Output<'a, T> {
    /// [B, L, Q]
    pub y: &'a Disjoint<'a, T>,
    /// [B, heads, L]
    pub saved: &'a Disjoint<'a, T>,
}

/// All rows of one head.
pub(super) fn attend<T: Real>(
    config: &KernelisedConfig,
    head: &Head,
    map: &Map<T>,
    input: &KernelisedInput<'_, T>,
    scratch: &mut Scratch<T>,
    out: &Output<'_, T>,
) {
    let (m, eps) = (config.features(), T::rounded(config.eps));
    let Scratch { x, phi_q, phi_k, phi_t, v, a, o, s } = scratch;
    s.fill(T::ZERO);
    let constant = map.key_constant(head, input.k, x, phi_k);
    if !config.causal {
        for rows in head.chunks() {
            map.keys(head, input.k, &rows, constant, x, phi_k);
            head.values(input.v, &rows, v);
            add_keys(&rows, [m, head.d], phi_k, v, s);
        }
    }
    for rows in head.chunks() {
        map.queries(head, input.q, &rows, x, phi_q);
        read(&rows, [m, head.d], phi_q, s, o);
        if config.causal {
            map.keys(head, input.k, &rows, constant, x, phi_k);
            head.values(input.v, &rows, v);
            transpose(phi_k, [rows.len(), m], wide::<T>(m), phi_t, CHUNK);
            weights(&rows, m, phi_q, phi_t, a);
            add_weighted(&rows, head.d, a, v, o);
            add_keys(&rows, [m, head.d], phi_k, v, s);
        }
        for (t, o) in rows.zip(o.chunks_exact(wide::<T>(head.d + 1))) {
            let denominator = o[head.d] + eps;
            let inverse = T::rounded(1.0 / denominator.to_f64());
            let y = head.row_of(out.y, t);
            y.iter_mut().zip(o).for_each(|(y, &o)| *y = o * inverse);
            // SAFETY: a head has its own denominators.
            unsafe { out.saved.part(head.index * head.len + t, 1)[0] = denominator };
        }
    }
    for t in head.visible..head.len {
        head.row_of(out.y, t).fill(T::ZERO);
        // SAFETY: as above.
        unsafe { out.saved.part(head.index * head.len + t, 1)[0] = T::ZERO };
    }
}

/// [S, z] += φ(k)ᵀ·[v, 1]
pub(super) fn add_keys<T: Real>(
    rows: &Range<usize>,
    [m, d]: [usize; 2],
    phi: &[T],
    v: &[T],
    s: &mut [T],
) {
    let width = wide::<T>(d + 1);
    Product {
        size: [m, width, rows.len()],
        a: phi,
        a_strides: [1, wide::<T>(m)],
        b: v,
        b_layout: Layout::Rows(width),
        c: s,
        add: true,
    }
    .run();
}

/// o = φ(q)·[S, z]
fn read<T: Real>(rows: &Range<usize>, [m, d]: [usize; 2], phi: &[T], s: &[T], o: &mut [T]) {
    let width = wide::<T>(d + 1);
    Product {
        size: [rows.len(), width, m],
        a: phi,
        a_strides: [wide::<T>(m), 1],
        b: s,
        b_layout: Layout::Rows(width),
        c: o,
        add: false,
    }
    .run();
}

/// a_ij = φ(q_i)·φ(k_j) for j ≤ i, else 0.
pub(super) fn weights<T: Real>(rows: &Range<usize>, m: usize, phi: &[T], phi_t: &[T], a: &mut [T]) {
    Product {
        size: [rows.len(), CHUNK, m],
        a: phi,
        a_strides: [wide::<T>(m), 1],
        b: phi_t,
        b_layout: Layout::Rows(CHUNK),
        c: a,
        add: false,
    }
    .run();
    hide_later(a, rows.len());
}

/// o += a·[v, 1]
fn add_weighted<T: Real>(rows: &Range<usize>, d: usize, a: &[T], v: &[T], o: &mut [T]) {
    let width = wide::<T>(d + 1);
    Product {
        size: [rows.len(), width, rows.len()],
        a,
        a_strides: [CHUNK, 1],
        b: v,
        b_layout: Layout::Rows(width),
        c: o,
        add: true,
    }
    .run();
}
