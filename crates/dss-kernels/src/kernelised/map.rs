//! Feature maps φ of chunks of rows, and their backward.

use super::head::{CHUNK, Head, matrix, transpose, wide};
use super::{FeatureMap, KernelisedConfig};
use crate::lines::Lines;
use crate::par::Disjoint;
use crate::product::{Layout, Product};
use crate::real::{Real, dispatch, fuses};
use pulp::{Simd, WithSimd};
use std::ops::Range;

/// φ with what it needs for a call.
pub(super) enum Map<T: Real> {
    Pointwise(Pointwise<T>),
    Favor(Favor<T>),
}

#[derive(Clone, Copy)]
pub(super) enum Pointwise<T> {
    EluPlusOne,
    Relu(T),
}

/// FAVOR+ with its directions.
pub(super) struct Favor<T: Real> {
    m: usize,
    /// wᵀ: [d, wide(m)].
    w_t: Lines<T>,
    /// w: [m, wide(d)].
    w: Lines<T>,
    /// d^−¼
    scale: T,
    /// 1/√m, and ε/√m.
    size: T,
    eps: T,
    /// c of causal keys: max |w|²/2.
    bound: T,
    causal: bool,
}

/// c of a head's keys.
#[derive(Clone, Copy)]
pub(super) struct KeyConstant<T> {
    c: T,
    /// The position and the feature that it was found at; `None`: it does not depend on the keys.
    found: Option<(usize, usize)>,
}

impl<T: Real> Map<T> {
    pub(super) fn new(config: &KernelisedConfig, w: &[T]) -> Self {
        let (features, eps) = match config.map {
            FeatureMap::EluPlusOne => return Self::Pointwise(Pointwise::EluPlusOne),
            FeatureMap::Relu { eps } => return Self::Pointwise(Pointwise::Relu(T::rounded(eps))),
            FeatureMap::Favor { features, eps } => (features, eps),
        };
        let d = config.head_dim;
        let mut rows = matrix(features, d);
        for (to, w) in rows.chunks_exact_mut(wide::<T>(d)).zip(w.chunks_exact(d)) {
            to[..d].copy_from_slice(w);
        }
        let mut w_t = matrix(d, features);
        transpose(&rows, [features, d], wide::<T>(d), &mut w_t, wide::<T>(features));
        let half_square = |w: &[T]| w.iter().map(|w| w.to_f64().powi(2)).sum::<f64>() / 2.0;
        let bound = w.chunks_exact(d).map(half_square).fold(0.0, f64::max);
        let size = 1.0 / (features as f64).sqrt();
        Self::Favor(Favor {
            m: features,
            w_t,
            w: rows,
            scale: T::rounded((d as f64).powf(-0.25)),
            size: T::rounded(size),
            eps: T::rounded(eps * size),
            bound: T::rounded(bound),
            causal: config.causal,
        })
    }

    /// c of the keys of a head; `x` and `p` are buffers, [CHUNK, wide(d)] and [CHUNK, wide(m)].
    pub(super) fn key_constant(
        &self,
        head: &Head,
        k: &[T],
        x: &mut [T],
        p: &mut [T],
    ) -> KeyConstant<T> {
        match self {
            Self::Pointwise(_) => KeyConstant { c: T::ZERO, found: None },
            Self::Favor(favor) if favor.causal => KeyConstant { c: favor.bound, found: None },
            Self::Favor(favor) => {
                let mut constant = KeyConstant { c: T::rounded(f64::NEG_INFINITY), found: None };
                for rows in head.chunks() {
                    favor.products(head, k, &rows, x, p);
                    for (t, p) in rows.zip(p.chunks_exact(wide::<T>(favor.m))) {
                        for (r, &p) in p[..favor.m].iter().enumerate() {
                            if p > constant.c {
                                constant = KeyConstant { c: p, found: Some((t, r)) };
                            }
                        }
                    }
                }
                constant
            }
        }
    }

    /// φ of queries: out [rows, wide(m)]; `x` is a buffer as in [`Self::key_constant`].
    pub(super) fn queries(
        &self,
        head: &Head,
        q: &[T],
        rows: &Range<usize>,
        x: &mut [T],
        out: &mut [T],
    ) {
        self.rows(head, q, rows, None, x, out);
    }

    /// φ of keys with their c.
    pub(super) fn keys(
        &self,
        head: &Head,
        k: &[T],
        rows: &Range<usize>,
        constant: KeyConstant<T>,
        x: &mut [T],
        out: &mut [T],
    ) {
        self.rows(head, k, rows, Some(constant), x, out);
    }

    /// `constant`: that of keys; queries have one each, their largest product.
    fn rows(
        &self,
        head: &Head,
        source: &[T],
        rows: &Range<usize>,
        constant: Option<KeyConstant<T>>,
        x: &mut [T],
        out: &mut [T],
    ) {
        match self {
            Self::Pointwise(map) => {
                let width = wide::<T>(head.d);
                let rows =
                    Rows { x: &source[head.at(rows.start)..], head, count: rows.len(), width };
                dispatch(PointwiseForward { rows, map: *map, out });
            }
            Self::Favor(favor) => {
                favor.products(head, source, rows, x, out);
                let c = constant.map(|constant| constant.c);
                dispatch(Exponentials {
                    favor,
                    x,
                    c,
                    p: &mut out[..rows.len() * wide::<T>(favor.m)],
                });
            }
        }
    }

    /// dx of the rows of q.
    pub(super) fn queries_backward(
        &self,
        head: &Head,
        q: &[T],
        rows: &Range<usize>,
        chunk: ChunkGrads<'_, T>,
        dq: &Disjoint<'_, T>,
    ) {
        match self {
            Self::Pointwise(map) => map.backward(head, q, rows, chunk, dq),
            Self::Favor(favor) => {
                let mut sums = [T::ZERO; CHUNK];
                let width = wide::<T>(favor.m);
                let all = chunk.phi.chunks_exact(width).zip(chunk.dphi.chunks_exact_mut(width));
                for ((phi, dphi), sum) in all.zip(&mut sums[..rows.len()]) {
                    *sum = favor.through_exponentials(phi, dphi);
                    // φ grows with w·x̂: where it is largest, c was found.
                    let larger = |best: usize, r: usize| if phi[r] > phi[best] { r } else { best };
                    let largest = (1..favor.m).fold(0, larger);
                    dphi[largest] = dphi[largest] - *sum;
                }
                favor.through_products(head, rows, &sums, chunk, dq);
            }
        }
    }

    /// As [`Self::queries_backward`], of keys; adds to `total` what c gets, with the other sign.
    pub(super) fn keys_backward(
        &self,
        head: &Head,
        k: &[T],
        rows: &Range<usize>,
        chunk: ChunkGrads<'_, T>,
        dk: &Disjoint<'_, T>,
        total: &mut f64,
    ) {
        match self {
            Self::Pointwise(map) => map.backward(head, k, rows, chunk, dk),
            Self::Favor(favor) => {
                let mut sums = [T::ZERO; CHUNK];
                let width = wide::<T>(favor.m);
                let all = chunk.phi.chunks_exact(width).zip(chunk.dphi.chunks_exact_mut(width));
                for ((phi, dphi), sum) in all.zip(&mut sums[..rows.len()]) {
                    *sum = favor.through_exponentials(phi, dphi);
                    *total += sum.to_f64();
                }
                favor.through_products(head, rows, &sums, chunk, dk);
            }
        }
    }

    /// What c passes on to the key that it was found at.
    pub(super) fn key_constant_backward(
        &self,
        head: &Head,
        constant: KeyConstant<T>,
        total: f64,
        dk: &Disjoint<'_, T>,
    ) {
        let (Self::Favor(favor), Some((t, r))) = (self, constant.found) else { return };
        let w = &favor.w[r * wide::<T>(head.d)..][..head.d];
        let dc = T::rounded(-total * favor.scale.to_f64());
        head.row_of(dk, t).iter_mut().zip(w).for_each(|(dk, &w)| *dk += dc * w);
    }
}

/// A chunk on its way back.
pub(super) struct ChunkGrads<'a, T> {
    /// φ: [rows, wide(m)].
    pub phi: &'a [T],
    /// ∂loss/∂φ: [rows, wide(m)]; overwritten.
    pub dphi: &'a mut [T],
    /// What the buffer `x` was left with by the forward map: x̂ of FAVOR+.
    pub x: &'a [T],
    /// A buffer [CHUNK, wide(d)].
    pub dx: &'a mut [T],
}

impl<T: Real> Pointwise<T> {
    fn backward(
        self,
        head: &Head,
        source: &[T],
        rows: &Range<usize>,
        chunk: ChunkGrads<'_, T>,
        out: &Disjoint<'_, T>,
    ) {
        let width = wide::<T>(head.d);
        let ChunkGrads { phi, dphi, .. } = chunk;
        let own = Rows { x: &source[head.at(rows.start)..], head, count: rows.len(), width };
        dispatch(PointwiseBackward { rows: own, map: self, phi, dphi });
        for (t, dx) in rows.clone().zip(dphi.chunks_exact(width)) {
            head.row_of(out, t).copy_from_slice(&dx[..head.d]);
        }
    }
}

impl<T: Real> Favor<T> {
    /// x = x̂ of a chunk, p = x̂·wᵀ: [rows, wide(m)].
    fn products(&self, head: &Head, source: &[T], rows: &Range<usize>, x: &mut [T], p: &mut [T]) {
        let (d, d_width, m_width) = (head.d, wide::<T>(head.d), wide::<T>(self.m));
        for (t, x) in rows.clone().zip(x.chunks_exact_mut(d_width)) {
            x.iter_mut().zip(head.row(source, t)).for_each(|(x, &own)| *x = own * self.scale);
        }
        Product {
            size: [rows.len(), m_width, d],
            a: x,
            a_strides: [d_width, 1],
            b: &self.w_t,
            b_layout: Layout::Rows(m_width),
            c: p,
            add: false,
        }
        .run();
    }

    /// dφ of a row becomes the gradient of its exponents; their sum.
    fn through_exponentials(&self, phi: &[T], dphi: &mut [T]) -> T {
        dispatch(ThroughExponentials {
            phi: &phi[..self.m],
            dphi: &mut dphi[..self.m],
            eps: self.eps,
        })
    }

    /// dx = d^−¼·(de·w − Σde·x̂), de [rows, wide(m)] the gradients of the exponents.
    fn through_products(
        &self,
        head: &Head,
        rows: &Range<usize>,
        sums: &[T; CHUNK],
        chunk: ChunkGrads<'_, T>,
        out: &Disjoint<'_, T>,
    ) {
        let (d_width, m_width) = (wide::<T>(head.d), wide::<T>(self.m));
        let ChunkGrads { dphi, x, dx, .. } = chunk;
        Product {
            size: [rows.len(), d_width, self.m],
            a: dphi,
            a_strides: [m_width, 1],
            b: &self.w,
            b_layout: Layout::Rows(d_width),
            c: dx,
            add: false,
        }
        .run();
        let all = dx.chunks_exact(d_width).zip(x.chunks_exact(d_width)).zip(sums);
        for (t, ((dx, x), &sum)) in rows.clone().zip(all) {
            let row = head.row_of(out, t).iter_mut().zip(dx.iter().zip(x));
            row.for_each(|(out, (&dx, &x))| *out = self.scale * (dx - sum * x));
        }
    }
}

/// Rows of a head in [B, L, Q], and the width of theirs in a buffer.
struct Rows<'a, T> {
    /// From the first row on.
    x: &'a [T],
    head: &'a Head,
    count: usize,
    width: usize,
}

impl<'a, T> Rows<'a, T> {
    #[inline(always)]
    fn iter(&self) -> impl Iterator<Item = &'a [T]> + use<'a, T> {
        let d = self.head.d;
        self.x.chunks(self.head.stride).take(self.count).map(move |x| &x[..d])
    }
}

struct PointwiseForward<'a, T> {
    rows: Rows<'a, T>,
    map: Pointwise<T>,
    /// [rows, width]
    out: &'a mut [T],
}

impl<T: Real> WithSimd for PointwiseForward<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let fuse = fuses::<S>();
        for (x, out) in self.rows.iter().zip(self.out.chunks_exact_mut(self.rows.width)) {
            match self.map {
                Pointwise::EluPlusOne => {
                    for (out, &x) in out.iter_mut().zip(x) {
                        let positive = if x > T::ZERO { x } else { T::ZERO };
                        *out = positive + x.exp_nonpositive(fuse);
                    }
                }
                Pointwise::Relu(eps) => {
                    for (out, &x) in out.iter_mut().zip(x) {
                        *out = (if x > T::ZERO { x } else { T::ZERO }) + eps;
                    }
                }
            }
        }
    }
}

struct PointwiseBackward<'a, T> {
    rows: Rows<'a, T>,
    map: Pointwise<T>,
    /// [rows, width]
    phi: &'a [T],
    /// [rows, width]; becomes dx.
    dphi: &'a mut [T],
}

impl<T: Real> WithSimd for PointwiseBackward<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let width = self.rows.width;
        let grads = self.phi.chunks_exact(width).zip(self.dphi.chunks_exact_mut(width));
        for (x, (phi, dphi)) in self.rows.iter().zip(grads) {
            let all = x.iter().zip(phi).zip(dphi);
            match self.map {
                // φ' = e^x = φ for x ≤ 0.
                Pointwise::EluPlusOne => all.for_each(|((&x, &phi), dphi)| {
                    *dphi = if x > T::ZERO { *dphi } else { *dphi * phi };
                }),
                Pointwise::Relu(_) => all.for_each(|((&x, _), dphi)| {
                    *dphi = if x > T::ZERO { *dphi } else { T::ZERO };
                }),
            }
        }
    }
}

/// p = w·x̂ becomes (e^{p − |x̂|²/2 − c} + ε)/√m.
struct Exponentials<'a, T: Real> {
    favor: &'a Favor<T>,
    /// x̂: [rows, wide(d)]
    x: &'a [T],
    /// c of all rows; `None`: the maximum of each.
    c: Option<T>,
    /// [rows, wide(m)]
    p: &'a mut [T],
}

impl<T: Real> WithSimd for Exponentials<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let fuse = fuses::<S>();
        let Favor { m, size, eps, .. } = *self.favor;
        let d_width = self.favor.w.len() / m;
        let rows = self.x.chunks_exact(d_width).zip(self.p.chunks_exact_mut(wide::<T>(m)));
        for (x, p) in rows {
            // Beyond m there stay zeros.
            let p = &mut p[..m];
            let half_square = x.iter().map(|x| x.to_f64() * x.to_f64()).sum::<f64>() / 2.0;
            let largest = |p: &[T]| p.iter().fold(p[0], |best, &p| if p > best { p } else { best });
            let c = self.c.unwrap_or_else(|| largest(p));
            let shift = T::rounded(half_square) + c;
            for p in p {
                *p = (*p - shift).exp_nonpositive(fuse) * size + eps;
            }
        }
    }
}

/// dφ_r becomes dφ_r·e^{..}/√m = dφ_r·(φ_r − ε/√m); their sum.
struct ThroughExponentials<'a, T> {
    phi: &'a [T],
    dphi: &'a mut [T],
    eps: T,
}

impl<T: Real> WithSimd for ThroughExponentials<'_, T> {
    type Output = T;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> T {
        let mut sum = T::ZERO;
        for (dphi, &phi) in self.dphi.iter_mut().zip(self.phi) {
            *dphi = *dphi * (phi - self.eps);
            sum += *dphi;
        }
        sum
    }
}
