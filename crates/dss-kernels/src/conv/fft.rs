//! A complex FFT over many channels at once: one channel per SIMD lane.
//!
//! The transform is *twisted* for the causal convolution. With w = e^{-iπ/2M} it evaluates the polynomial x(z) at the M
//! points z_k = w·e^{-2πik/M}, all roots of z^M = -i:
//!
//! X_k = Σ_t x_t w^t e^{-2πikt/M}
//!
//! so that products of spectra multiply polynomials modulo z^M + i. For real factors of length ≤ M what wraps around
//! lands in the imaginary part, and the real part is the causal convolution: no padding to 2M.
//!
//! Forward is decimation in frequency, backward decimation in time: spectra stay in digit-reversed order, which a
//! pointwise product does not mind. The recursion is depth first, so that every block is finished while it is in cache.
//! An element is two cache lines, `T::LINE` real parts and as many imaginary parts.

use super::butterfly::{dft, gather, scatter};
use crate::real::{CV, Real};
use num_complex::Complex;
use pulp::{Simd, WithSimd};
use std::f64::consts::{FRAC_PI_2, TAU};

/// Blocks of at most this many elements are done level by level (32 KiB: they stay in the first-level cache).
const SMALL_BLOCK: usize = 256;

/// One level: blocks of `radix * q` elements are split into `radix` blocks of `q`.
struct Level<T> {
    radix: usize,
    q: usize,
    /// [q][radix - 1]: e^{-2πi jk/(radix·q)} for k = 1..radix.
    twiddles: Vec<Complex<T>>,
}

/// Tables of the twisted FFT of one length.
pub(crate) struct Fft<T> {
    /// Transform length M.
    pub(crate) m: usize,
    levels: Vec<Level<T>>,
    /// w^t, t < M.
    twist: Vec<Complex<T>>,
}

/// What happens to a spectrum between the way there and the way back.
pub(crate) trait Pointwise<T: Real> {
    /// Maps the value `x` of element `i` (in transform order), lanes `v..` of its line.
    ///
    /// # Safety
    /// `i` is an element of the transforms under way (lines·M of them) and `v < T::LINE`.
    unsafe fn map<S: Simd>(&mut self, s: S, i: usize, v: usize, x: CV<T, S>) -> CV<T, S>;
}

/// The smallest supported length ≥ l: 2^a, 3·2^a or 5·2^a, at least 4.
pub(crate) fn good_length(l: usize) -> usize {
    let power = l.max(4).next_power_of_two();
    let candidates = [5 * power / 8, 3 * power / 4, power];
    candidates.into_iter().find(|&m| m >= l.max(4)).unwrap_or(power)
}

/// How to split a block of n = f·2^a: as few passes as possible, and 16 as 4·4 rather than 8·2.
fn next_radix(n: usize) -> usize {
    match n {
        _ if n.is_multiple_of(5) => 5,
        _ if n.is_multiple_of(3) => 3,
        16 => 4,
        _ if n.is_multiple_of(8) => 8,
        _ => n,
    }
}

/// Calls a function that is generic in the radix.
macro_rules! by_radix {
    ($radix:expr, $function:ident::<$($generic:ident),*>($($argument:expr),*)) => {
        match $radix {
            1 => $function::<$($generic,)* 1>($($argument),*),
            2 => $function::<$($generic,)* 2>($($argument),*),
            3 => $function::<$($generic,)* 3>($($argument),*),
            4 => $function::<$($generic,)* 4>($($argument),*),
            5 => $function::<$($generic,)* 5>($($argument),*),
            8 => $function::<$($generic,)* 8>($($argument),*),
            radix => unreachable!("no radix {radix}"),
        }
    };
}

// Below `by_radix!`, which it uses.
mod rows;

use rows::{FirstLevel, LastLevel};
pub(crate) use rows::{Rows, Source};

impl<T: Real> Fft<T> {
    pub(crate) fn new(m: usize) -> Self {
        let unit = |angle: f64| {
            let (sin, cos) = angle.sin_cos();
            Complex::new(T::from_f64(cos), T::from_f64(sin))
        };
        let mut levels = Vec::new();
        let mut n = m;
        while n > 1 {
            let radix = next_radix(n);
            let q = n / radix;
            let twiddles = (0..q)
                .flat_map(|j| (1..radix).map(move |k| -TAU * (j * k) as f64 / n as f64))
                .map(unit)
                .collect();
            levels.push(Level { radix, q, twiddles });
            n = q;
        }
        let twist = (0..m).map(|t| unit(-FRAC_PI_2 * t as f64 / m as f64)).collect();
        Self { m, levels, twist }
    }

    /// Twisted transforms of real rows into `x`.
    ///
    /// # Safety
    /// The rows are readable, l ≤ M, and `x` holds lines·M elements.
    #[inline(always)]
    pub(crate) unsafe fn forward_rows<S: Simd>(&self, s: S, src: Source<'_, T>, x: *mut T) {
        self.first(s, src, x);
        for offset in self.blocks(src.0.lines) {
            // SAFETY: the caller's promise is passed on.
            unsafe { self.forward(s, x, 1, offset) };
        }
    }

    /// Transforms of real rows, `pointwise` on every element, and back to real rows.
    ///
    /// # Safety
    /// As [`Self::forward_rows`]; `dst` is writable and of the same lines and length.
    #[inline(always)]
    pub(crate) unsafe fn filter_rows<S: Simd>(
        &self,
        s: S,
        src: Source<'_, T>,
        dst: Rows<*mut T>,
        x: *mut T,
        pointwise: &mut impl Pointwise<T>,
    ) {
        self.first(s, src, x);
        for offset in self.blocks(src.0.lines) {
            // SAFETY: the caller's promise is passed on.
            unsafe { self.filter(s, x, 1, offset, pointwise) };
        }
        s.vectorize(LastLevel::<T, false> { fft: self, rows: dst, x });
    }

    /// [`Self::forward_rows`] of u into `x_u`, and [`Self::filter_rows`] of g, whose `pointwise` may read û of the same
    /// element. Block by block, so that both are in cache when they meet. `ADD` adds the result to the rows, of which
    /// there may be fewer than L.
    ///
    /// # Safety
    /// As [`Self::filter_rows`], for both inputs.
    #[inline(always)]
    pub(crate) unsafe fn correlate_rows<S: Simd, const ADD: bool>(
        &self,
        s: S,
        [u, g]: [Source<'_, T>; 2],
        dst: Rows<*mut T>,
        [x_u, x]: [*mut T; 2],
        pointwise: &mut impl Pointwise<T>,
    ) {
        self.first(s, u, x_u);
        self.first(s, g, x);
        for offset in self.blocks(g.0.lines) {
            // SAFETY: the caller's promise is passed on.
            unsafe {
                self.forward(s, x_u, 1, offset);
                self.filter(s, x, 1, offset, pointwise);
            }
        }
        s.vectorize(LastLevel::<T, ADD> { fft: self, rows: dst, x });
    }

    /// M times the real parts of the inverse transforms. `x` is used up.
    ///
    /// # Safety
    /// The rows are writable, l ≤ M, and `x` holds lines·M elements.
    #[inline(always)]
    pub(crate) unsafe fn inverse_rows<S: Simd>(&self, s: S, x: *mut T, dst: Rows<*mut T>) {
        for offset in self.blocks(dst.lines) {
            // SAFETY: the caller's promise is passed on.
            unsafe { self.inverse(s, x, 1, offset) };
        }
        s.vectorize(LastLevel::<T, false> { fft: self, rows: dst, x });
    }

    /// Level 0 of real rows.
    #[inline(always)]
    fn first<S: Simd>(&self, s: S, (rows, affine): Source<'_, T>, x: *mut T) {
        match affine {
            None => s.vectorize(FirstLevel::<T, false> { fft: self, rows, affine: [&[]; 3], x }),
            Some(affine) => s.vectorize(FirstLevel::<T, true> { fft: self, rows, affine, x }),
        }
    }

    /// Where the blocks below level 0 of all lines begin.
    fn blocks(&self, lines: usize) -> impl Iterator<Item = usize> + use<T> {
        (0..lines * self.m).step_by(self.levels[0].q)
    }

    /// Elements in a block at `level`.
    fn block(&self, level: usize) -> usize {
        self.levels.get(level).map_or(1, |l| l.radix * l.q)
    }

    unsafe fn forward<S: Simd>(&self, s: S, x: *mut T, level: usize, offset: usize) {
        let n = self.block(level);
        if n <= SMALL_BLOCK {
            return s.vectorize(SmallBlock::<T, false> { fft: self, x, level, offset, n });
        }
        s.vectorize(OneLevel::<T, false> { fft: self, x, level, offset });
        let Level { radix, q, .. } = &self.levels[level];
        for block in 0..*radix {
            // SAFETY: the block lies inside this one.
            unsafe { self.forward(s, x, level + 1, offset + block * q) };
        }
    }

    unsafe fn inverse<S: Simd>(&self, s: S, x: *mut T, level: usize, offset: usize) {
        let n = self.block(level);
        if n <= SMALL_BLOCK {
            return s.vectorize(SmallBlock::<T, true> { fft: self, x, level, offset, n });
        }
        let Level { radix, q, .. } = &self.levels[level];
        for block in 0..*radix {
            // SAFETY: the block lies inside this one.
            unsafe { self.inverse(s, x, level + 1, offset + block * q) };
        }
        s.vectorize(OneLevel::<T, true> { fft: self, x, level, offset });
    }

    unsafe fn filter<S: Simd>(
        &self,
        s: S,
        x: *mut T,
        level: usize,
        offset: usize,
        pointwise: &mut impl Pointwise<T>,
    ) {
        let n = self.block(level);
        if n <= SMALL_BLOCK {
            return s.vectorize(SmallBlockFilter { fft: self, x, level, offset, n, pointwise });
        }
        s.vectorize(OneLevel::<T, false> { fft: self, x, level, offset });
        let Level { radix, q, .. } = &self.levels[level];
        for block in 0..*radix {
            // SAFETY: the block lies inside this one.
            unsafe { self.filter(s, x, level + 1, offset + block * q, pointwise) };
        }
        s.vectorize(OneLevel::<T, true> { fft: self, x, level, offset });
    }

    /// The levels from `level` on but the last, of the `n` elements at `offset`.
    #[inline(always)]
    unsafe fn all_but_last_level<S: Simd, const INVERSE: bool>(
        &self,
        s: S,
        x: *mut T,
        level: usize,
        offset: usize,
        n: usize,
    ) {
        let count = (self.levels.len() - level).saturating_sub(1);
        for step in 0..count {
            let level = level + if INVERSE { count - 1 - step } else { step };
            for block in (offset..offset + n).step_by(self.block(level)) {
                // SAFETY: the block lies inside the elements of x.
                unsafe { self.one_level::<S, INVERSE>(s, x, level, block) };
            }
        }
    }

    /// The radix of the last level, whose twiddles are all 1; 1 if there is no level from `level` on.
    #[inline(always)]
    fn last_radix(&self, level: usize) -> usize {
        self.levels[level..].last().map_or(1, |last| last.radix)
    }

    /// One level of one block, in place.
    #[inline(always)]
    unsafe fn one_level<S: Simd, const INVERSE: bool>(
        &self,
        s: S,
        x: *mut T,
        level: usize,
        offset: usize,
    ) {
        let level = &self.levels[level];
        // SAFETY: the block lies inside the elements of x.
        unsafe {
            let x = element::<T>(x, offset);
            by_radix!(level.radix, level_in_place::<T, S, INVERSE>(s, x, level));
        }
    }
}

// Work that enters a function compiled for the vector instructions; everything it calls is inlined there.
// In each, x holds the elements of all lines and the block lies inside them.

struct OneLevel<'a, T, const INVERSE: bool> {
    fft: &'a Fft<T>,
    x: *mut T,
    level: usize,
    offset: usize,
}

impl<T: Real, const INVERSE: bool> WithSimd for OneLevel<'_, T, INVERSE> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) {
        // SAFETY: see above.
        unsafe { self.fft.one_level::<S, INVERSE>(s, self.x, self.level, self.offset) }
    }
}

/// The levels of one small block.
struct SmallBlock<'a, T, const INVERSE: bool> {
    fft: &'a Fft<T>,
    x: *mut T,
    level: usize,
    offset: usize,
    n: usize,
}

impl<T: Real, const INVERSE: bool> WithSimd for SmallBlock<'_, T, INVERSE> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) {
        let Self { fft, x, level, offset, n } = self;
        // SAFETY: see above.
        unsafe {
            if !INVERSE {
                fft.all_but_last_level::<S, false>(s, x, level, offset, n);
            }
            by_radix!(fft.last_radix(level), last_level::<T, S, INVERSE>(s, x, offset, n));
            if INVERSE {
                fft.all_but_last_level::<S, true>(s, x, level, offset, n);
            }
        }
    }
}

struct SmallBlockFilter<'a, T, F> {
    fft: &'a Fft<T>,
    x: *mut T,
    level: usize,
    offset: usize,
    n: usize,
    pointwise: &'a mut F,
}

impl<T: Real, F: Pointwise<T>> WithSimd for SmallBlockFilter<'_, T, F> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) {
        let Self { fft, x, level, offset, n, pointwise } = self;
        // SAFETY: see above.
        unsafe {
            fft.all_but_last_level::<S, false>(s, x, level, offset, n);
            by_radix!(
                fft.last_radix(level),
                last_level_and_back::<T, S, F>(s, x, offset, n, pointwise)
            );
            fft.all_but_last_level::<S, true>(s, x, level, offset, n);
        }
    }
}

#[inline(always)]
unsafe fn element<T: Real>(x: *mut T, i: usize) -> *mut T {
    // SAFETY: i is an element of x by the caller's promise.
    unsafe { x.add(i * 2 * T::LINE) }
}

#[inline(always)]
pub(crate) unsafe fn load<T: Real, S: Simd>(p: *const T) -> CV<T, S> {
    // SAFETY: p points into an element: the imaginary line follows the real one.
    unsafe {
        CV {
            re: p.cast::<T::V<S>>().read_unaligned(),
            im: p.add(T::LINE).cast::<T::V<S>>().read_unaligned(),
        }
    }
}

#[inline(always)]
pub(crate) unsafe fn store<T: Real, S: Simd>(p: *mut T, x: CV<T, S>) {
    // SAFETY: p points into an element: the imaginary line follows the real one.
    unsafe {
        p.cast::<T::V<S>>().write_unaligned(x.re);
        p.add(T::LINE).cast::<T::V<S>>().write_unaligned(x.im);
    }
}

/// The twiddles of butterfly j; entry 0 is never used.
#[inline(always)]
unsafe fn twiddles<T: Real, S: Simd, const R: usize>(
    s: S,
    level: &Level<T>,
    j: usize,
) -> [CV<T, S>; R] {
    let mut w = [CV::zero(s); R];
    for (k, w) in w.iter_mut().enumerate().skip(1) {
        // SAFETY: the table has R − 1 entries for each j < q.
        *w = CV::splat(s, unsafe { *level.twiddles.get_unchecked(j * (R - 1) + k - 1) });
    }
    w
}

#[inline(always)]
unsafe fn level_in_place<T: Real, S: Simd, const INVERSE: bool, const R: usize>(
    s: S,
    x: *mut T,
    level: &Level<T>,
) {
    let step = level.q * 2 * T::LINE;
    // SAFETY: x holds radix·q elements.
    unsafe {
        for j in 0..level.q {
            let w = twiddles::<T, S, R>(s, level, j);
            for v in (0..T::LINE).step_by(T::lanes::<S>()) {
                let p = element::<T>(x, j).add(v);
                let mut a = [CV::zero(s); R];
                for (r, a) in a.iter_mut().enumerate() {
                    *a = load::<T, S>(p.add(r * step));
                }
                let y = if INVERSE { gather(s, a, w) } else { scatter(s, a, w) };
                for (r, y) in y.into_iter().enumerate() {
                    store::<T, S>(p.add(r * step), y);
                }
            }
        }
    }
}

/// The last level, of blocks of R elements without twiddles.
#[inline(always)]
unsafe fn last_level<T: Real, S: Simd, const INVERSE: bool, const R: usize>(
    s: S,
    x: *mut T,
    offset: usize,
    n: usize,
) {
    for i in (offset..offset + n).step_by(R) {
        for v in (0..T::LINE).step_by(T::lanes::<S>()) {
            // SAFETY: x holds the elements up to offset + n.
            unsafe {
                let a = load_all::<T, S, R>(s, x, i, v);
                store_all(x, i, v, dft::<T, S, R, INVERSE>(s, a));
            }
        }
    }
}

/// The last level there, `pointwise` on every element, and the same level back, in registers.
#[inline(always)]
unsafe fn last_level_and_back<T: Real, S: Simd, F: Pointwise<T>, const R: usize>(
    s: S,
    x: *mut T,
    offset: usize,
    n: usize,
    pointwise: &mut F,
) {
    for i in (offset..offset + n).step_by(R) {
        for v in (0..T::LINE).step_by(T::lanes::<S>()) {
            // SAFETY: x holds the elements up to offset + n.
            unsafe {
                let mut a = dft::<T, S, R, false>(s, load_all(s, x, i, v));
                for (r, a) in a.iter_mut().enumerate() {
                    *a = pointwise.map(s, i + r, v, *a);
                }
                store_all(x, i, v, dft::<T, S, R, true>(s, a));
            }
        }
    }
}

/// Lanes v.. of the R elements from i on.
#[inline(always)]
unsafe fn load_all<T: Real, S: Simd, const R: usize>(
    s: S,
    x: *mut T,
    i: usize,
    v: usize,
) -> [CV<T, S>; R] {
    let mut a = [CV::zero(s); R];
    for (r, a) in a.iter_mut().enumerate() {
        // SAFETY: the elements exist by the caller's promise.
        *a = unsafe { load(element::<T>(x, i + r).add(v)) };
    }
    a
}

/// The other way.
#[inline(always)]
unsafe fn store_all<T: Real, S: Simd, const R: usize>(
    x: *mut T,
    i: usize,
    v: usize,
    a: [CV<T, S>; R],
) {
    for (r, a) in a.into_iter().enumerate() {
        // SAFETY: the elements exist by the caller's promise.
        unsafe { store(element::<T>(x, i + r).add(v), a) };
    }
}
