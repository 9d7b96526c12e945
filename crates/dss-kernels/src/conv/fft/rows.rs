//! The first level of the way there and the last of the way back: between real rows outside the scratch and the complex
//! elements in it.

use super::super::butterfly::{gather, scatter};
use super::{Fft, element, load, store, twiddles};
use crate::real::{CV, Real};
use num_complex::Complex;
use pulp::{Simd, WithSimd};

/// How many rows ahead to prefetch.
const AHEAD: usize = 4;

/// Real rows, and what is done to them first, (x − mean)·scale + shift: these three, as wide as the rows.
pub(crate) type Source<'a, T> = (Rows<*const T>, Option<[&'a [T]; 3]>);

/// Level 0 forward, reading and twisting real rows.
pub(super) struct FirstLevel<'a, T, const AFFINE: bool> {
    pub fft: &'a Fft<T>,
    pub rows: Rows<*const T>,
    pub affine: [&'a [T]; 3],
    pub x: *mut T,
}

impl<T: Real, const AFFINE: bool> WithSimd for FirstLevel<'_, T, AFFINE> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) {
        let Self { fft, rows, affine, x } = self;
        let width = if AFFINE { rows.lines * T::LINE } else { 0 };
        assert!(affine.iter().all(|vector| vector.len() >= width));
        // SAFETY: who makes one vouches for its rows, and that x holds lines·M elements.
        unsafe {
            by_radix!(fft.levels[0].radix, first_pass::<T, S, AFFINE>(s, &rows, affine, x, fft));
        }
    }
}

/// Level 0 backward, untwisting and storing the real parts, or adding them.
pub(super) struct LastLevel<'a, T, const ADD: bool> {
    pub fft: &'a Fft<T>,
    pub rows: Rows<*mut T>,
    pub x: *mut T,
}

impl<T: Real, const ADD: bool> WithSimd for LastLevel<'_, T, ADD> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) {
        let Self { fft, rows, x } = self;
        // SAFETY: who makes one vouches for its rows, and that x holds lines·M elements.
        unsafe { by_radix!(fft.levels[0].radix, last_pass::<T, S, ADD>(s, &rows, x, fft)) }
    }
}

/// Real rows outside the scratch: row t < l begins at `start + t·stride` and is `lines` cache lines wide.
///
/// Line g belongs to the transform at elements g·M.. of the scratch. Neighbouring lines are taken together because
/// memory is fetched in pairs of lines.
#[derive(Clone, Copy)]
pub(crate) struct Rows<P> {
    pub start: P,
    pub stride: usize,
    pub lines: usize,
    pub l: usize,
}

impl<T: Real> Rows<*const T> {
    /// change(x_t)·w^t at lane v of the row, or zero beyond the rows.
    #[inline(always)]
    unsafe fn load<S: Simd>(
        &self,
        s: S,
        t: usize,
        v: usize,
        change: impl Fn(T::V<S>) -> T::V<S>,
        twist: &[Complex<T>],
    ) -> CV<T, S> {
        if t >= self.l {
            return CV::zero(s);
        }
        // SAFETY: t < l, so the row is readable and the twist exists (l ≤ M).
        unsafe {
            let u = self.start.add(t * self.stride + v).cast::<T::V<S>>().read_unaligned();
            let u = change(u);
            let w = twist.get_unchecked(t);
            CV { re: T::vmul(s, u, T::vsplat(s, w.re)), im: T::vmul(s, u, T::vsplat(s, w.im)) }
        }
    }

    /// Asks for row t, which no hardware prefetcher would guess: rows are H elements apart.
    #[inline(always)]
    fn prefetch(&self, t: usize) {
        #[cfg(target_arch = "x86_64")]
        if t < self.l {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            for line in 0..self.lines {
                // SAFETY: row t exists; a prefetch has no other effect than on the cache.
                unsafe {
                    let row = self.start.add(t * self.stride + line * T::LINE);
                    _mm_prefetch::<_MM_HINT_T0>(row.cast());
                }
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = t;
    }
}

impl<T: Real> Rows<*mut T> {
    /// The same rows, for reading.
    #[inline(always)]
    fn reading(&self) -> Rows<*const T> {
        let Self { start, stride, lines, l } = *self;
        Rows { start: start.cast_const(), stride, lines, l }
    }

    /// Re(x·conj(w^t)) to lane v of row t, or added to it; nothing beyond the rows.
    #[inline(always)]
    unsafe fn store<S: Simd, const ADD: bool>(
        &self,
        s: S,
        t: usize,
        v: usize,
        twist: &[Complex<T>],
        x: CV<T, S>,
    ) {
        if t >= self.l {
            return;
        }
        // SAFETY: t < l, so the row is writable and the twist exists (l ≤ M).
        unsafe {
            let w = twist.get_unchecked(t);
            let row = self.start.add(t * self.stride + v).cast::<T::V<S>>();
            let re = T::vmul(s, x.re, T::vsplat(s, w.re));
            let y = T::vfma(s, x.im, T::vsplat(s, w.im), re);
            row.write_unaligned(if ADD { T::vadd(s, row.read_unaligned(), y) } else { y });
        }
    }
}

#[inline(always)]
unsafe fn first_pass<T: Real, S: Simd, const AFFINE: bool, const R: usize>(
    s: S,
    rows: &Rows<*const T>,
    affine: [&[T]; 3],
    x: *mut T,
    fft: &Fft<T>,
) {
    let level = &fft.levels[0];
    let q = level.q;
    // SAFETY: x holds lines·radix·q elements; rows checks t.
    unsafe {
        for j in 0..q {
            for r in 0..R {
                rows.prefetch(j + AHEAD + r * q);
            }
            let w = twiddles::<T, S, R>(s, level, j);
            for line in 0..rows.lines {
                let x = element::<T>(x, line * fft.m + j);
                for v in (0..T::LINE).step_by(T::lanes::<S>()) {
                    let lane = line * T::LINE + v;
                    let mut change = [T::vsplat(s, T::ZERO); 3];
                    if AFFINE {
                        // `FirstLevel` checked the widths.
                        change = affine.map(|vector| {
                            vector.as_ptr().add(lane).cast::<T::V<S>>().read_unaligned()
                        });
                    }
                    let [mean, scale, shift] = change;
                    let change = |x: T::V<S>| match AFFINE {
                        true => T::vfma(s, T::vsub(s, x, mean), scale, shift),
                        false => x,
                    };
                    let mut a = [CV::zero(s); R];
                    for (r, a) in a.iter_mut().enumerate() {
                        *a = rows.load(s, j + r * q, lane, change, &fft.twist);
                    }
                    for (r, y) in scatter(s, a, w).into_iter().enumerate() {
                        store::<T, S>(element::<T>(x, r * q).add(v), y);
                    }
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn last_pass<T: Real, S: Simd, const ADD: bool, const R: usize>(
    s: S,
    rows: &Rows<*mut T>,
    x: *mut T,
    fft: &Fft<T>,
) {
    let level = &fft.levels[0];
    let q = level.q;
    // SAFETY: x holds lines·radix·q elements; rows checks t.
    unsafe {
        for j in 0..q {
            for r in 0..R {
                rows.reading().prefetch(j + AHEAD + r * q);
            }
            let w = twiddles::<T, S, R>(s, level, j);
            for line in 0..rows.lines {
                let x = element::<T>(x, line * fft.m + j);
                for v in (0..T::LINE).step_by(T::lanes::<S>()) {
                    let mut a = [CV::zero(s); R];
                    for (r, a) in a.iter_mut().enumerate() {
                        *a = load::<T, S>(element::<T>(x, r * q).add(v));
                    }
                    for (r, y) in gather(s, a, w).into_iter().enumerate() {
                        rows.store::<S, ADD>(s, j + r * q, line * T::LINE + v, &fft.twist, y);
                    }
                }
            }
        }
    }
}
