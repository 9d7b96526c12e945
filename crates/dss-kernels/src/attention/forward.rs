//! Blocks of queries against all keys they see, by online softmax.

use super::AttentionInput;
use super::head::{Head, KEYS, Lanes, QUERIES, hidden, may_overflow};
use crate::lines::Lines;
use crate::par::Disjoint;
use crate::real::{Real, dispatch, fuses};
use pulp::{Simd, WithSimd};
use std::ops::Range;

/// Buffers of one worker.
pub(super) struct Scratch<T: Real> {
    /// q/√d: [d, QUERIES].
    q: Lines<T>,
    /// Logits, then weights times z: [KEYS, QUERIES].
    s: Lines<T>,
    /// y times z: [d, QUERIES].
    y: Lines<T>,
}

impl<T: Real> Scratch<T> {
    pub(super) fn new(d: usize) -> Self {
        let block = |rows: usize| Lines::new(rows * QUERIES / T::LINE);
        Self { q: block(d), s: block(KEYS), y: block(d) }
    }
}

/// The outputs.
pub(super) struct Output<'a, T> {
    /// [B, M, Q]
    pub y: &'a Disjoint<'a, T>,
    /// [B, heads, M, 2]
    pub saved: &'a Disjoint<'a, T>,
}

/// The given blocks of queries of one head.
pub(super) fn attend<T: Real>(
    head: &Head,
    blocks: impl Iterator<Item = Range<usize>>,
    input: &AttentionInput<'_, T>,
    scratch: &mut Scratch<T>,
    out: &Output<'_, T>,
) {
    let k_size = head.largest_key(input.k);
    let Scratch { q, s, y } = scratch;
    for rows in blocks {
        let queries = rows.start..rows.end.min(head.visible);
        let (mut max, mut sum) = ([hidden::<T>(); QUERIES], [T::ZERO; QUERIES]);
        if !queries.is_empty() {
            head.columns(input.q, queries.clone(), head.scale(), q);
            let overflows =
                may_overflow::<T>(head.d, head.largest_query(input.q, queries.clone()), k_size);
            y.fill(T::ZERO);
            for keys in head.key_blocks(&queries) {
                let s = &mut s[..keys.len() * QUERIES];
                head.logits(input, q, [&queries, &keys], overflows, s);
                dispatch(OnlineSoftmax { s, max: &mut max, sum: &mut sum, y });
                head.add_weighted_rows(input.v, &keys, s, y);
            }
        }
        for (lane, t) in rows.enumerate() {
            // SAFETY: a row of a head belongs to one block.
            let (out_y, out_saved) = unsafe {
                (out.y.part(head.at(t), head.d), out.saved.part((head.index * head.len + t) * 2, 2))
            };
            if t < head.visible {
                let inverse = T::rounded(1.0 / sum[lane].to_f64());
                for (out, y) in out_y.iter_mut().zip(y.chunks_exact(QUERIES)) {
                    *out = y[lane] * inverse;
                }
                out_saved.copy_from_slice(&[max[lane], sum[lane]]);
            } else {
                out_y.fill(T::ZERO);
                out_saved.fill(T::ZERO);
            }
        }
    }
}

/// Takes one block of keys into the maxima and sums of the rows, and turns its logits into e^{s − max}. What was summed
/// up with a smaller maximum shrinks by e^{before − max}.
pub(super) struct OnlineSoftmax<'a, T> {
    /// [keys, QUERIES]
    pub s: &'a mut [T],
    pub max: &'a mut Lanes<T>,
    pub sum: &'a mut Lanes<T>,
    /// [d, QUERIES]
    pub y: &'a mut [T],
}

impl<T: Real> WithSimd for OnlineSoftmax<'_, T> {
    type Output = ();

    // Several arrays are walked lane by lane.
    #[allow(clippy::needless_range_loop)]
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let fuse = fuses::<S>();
        let before = *self.max;
        let mut max = before;
        for s in self.s.as_chunks::<QUERIES>().0 {
            for lane in 0..QUERIES {
                max[lane] = if s[lane] > max[lane] { s[lane] } else { max[lane] };
            }
        }
        let mut shrink = [T::ZERO; QUERIES];
        for lane in 0..QUERIES {
            shrink[lane] = (before[lane] - max[lane]).exp_nonpositive(fuse);
        }
        for y in self.y.as_chunks_mut::<QUERIES>().0 {
            for lane in 0..QUERIES {
                // An overflown sum times 0 would be NaN.
                y[lane] = if shrink[lane] == T::ZERO { T::ZERO } else { y[lane] * shrink[lane] };
            }
        }
        let mut sum = *self.sum;
        for lane in 0..QUERIES {
            sum[lane] = sum[lane] * shrink[lane];
        }
        for s in self.s.as_chunks_mut::<QUERIES>().0 {
            for lane in 0..QUERIES {
                s[lane] = (s[lane] - max[lane]).exp_nonpositive(fuse);
                sum[lane] += s[lane];
            }
        }
        (*self.max, *self.sum) = (max, sum);
    }
}
