//! One head of one sequence: where its rows stand, and chunks of them.

use super::KernelisedConfig;
use crate::lines::Lines;
use crate::par::Disjoint;
use crate::real::Real;
use std::ops::Range;

/// Positions of a chunk: whole cache lines in both precisions.
pub(super) const CHUNK: usize = 64;

/// n, rounded up to whole cache lines.
pub(super) fn wide<T: Real>(n: usize) -> usize {
    n.next_multiple_of(T::LINE)
}

/// A zeroed matrix whose rows are whole cache lines.
pub(super) fn matrix<T: Real>(rows: usize, width: usize) -> Lines<T> {
    Lines::new(rows * width.div_ceil(T::LINE))
}

pub(super) struct Head {
    /// Its number in [B, heads].
    pub index: usize,
    /// Where its first row begins in [B, L, Q], and how far apart rows are.
    start: usize,
    pub stride: usize,
    pub d: usize,
    /// True positions ℓ.
    pub visible: usize,
    /// All positions L.
    pub len: usize,
}

impl Head {
    pub(super) fn new(config: &KernelisedConfig, lengths: Option<&[usize]>, index: usize) -> Self {
        let KernelisedConfig { len, heads, head_dim: d, .. } = *config;
        let (b, stride) = (index / heads, heads * d);
        let visible = lengths.map_or(len, |lengths| lengths[b]);
        Self { index, start: b * len * stride + index % heads * d, stride, d, visible, len }
    }

    /// Where row t begins.
    pub(super) fn at(&self, t: usize) -> usize {
        self.start + t * self.stride
    }

    /// Row t of x: [B, L, Q].
    pub(super) fn row<'a, T>(&self, x: &'a [T], t: usize) -> &'a [T] {
        &x[self.at(t)..][..self.d]
    }

    /// Row t of an array that other heads write to at the same time.
    #[allow(clippy::mut_from_ref)]
    pub(super) fn row_of<'a, T>(&self, x: &'a Disjoint<'_, T>, t: usize) -> &'a mut [T] {
        // SAFETY: a row of a head belongs to one worker, which holds one row at a time.
        unsafe { x.part(self.at(t), self.d) }
    }

    /// The true positions in chunks, in their order or back to front.
    pub(super) fn chunks(&self) -> impl DoubleEndedIterator<Item = Range<usize>> + use<> {
        let end = self.visible;
        (0..end.div_ceil(CHUNK)).map(move |i| i * CHUNK..end.min((i + 1) * CHUNK))
    }

    /// [v, 1] of a chunk: out [rows, wide(d + 1)].
    pub(super) fn values<T: Real>(&self, v: &[T], rows: &Range<usize>, out: &mut [T]) {
        for (t, out) in rows.clone().zip(out.chunks_exact_mut(wide::<T>(self.d + 1))) {
            out[..self.d].copy_from_slice(self.row(v, t));
            out[self.d] = T::rounded(1.0);
        }
    }
}

/// to [columns, to_width] = the first `columns` of x [rows, width], transposed.
pub(super) fn transpose<T: Real>(
    x: &[T],
    [rows, columns]: [usize; 2],
    width: usize,
    to: &mut [T],
    to_width: usize,
) {
    for (i, x) in x.chunks_exact(width).take(rows).enumerate() {
        for (&x, to) in x[..columns].iter().zip(to.chunks_exact_mut(to_width)) {
            to[i] = x;
        }
    }
}

/// Weights of a chunk [rows, CHUNK]: those of later keys become 0.
pub(super) fn hide_later<T: Real>(a: &mut [T], rows: usize) {
    for (i, a) in a.chunks_exact_mut(CHUNK).take(rows).enumerate() {
        a[i + 1..].fill(T::ZERO);
    }
}
