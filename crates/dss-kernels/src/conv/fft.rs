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

use crate::real::{CV, Real};
use num_complex::Complex;
use pulp::{Simd, WithSimd};
use std::f64::consts::{FRAC_PI_2, TAU};

/// Blocks of at most this many elements are done level by level (32 KiB: they stay in the first-level cache).
const BOTTOM: usize = 256;

/// How many rows ahead to prefetch.
const AHEAD: usize = 12;

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
pub(crate) trait Leaf<T: Real> {
    /// Maps the value `x` of element `i` (in transform order), lanes `v..` of its line.
    ///
    /// # Safety
    /// `i < M` and `v < T::LINE`.
    unsafe fn map<S: Simd>(&mut self, s: S, i: usize, v: usize, x: CV<T, S>) -> CV<T, S>;
}

/// The smallest supported length ≥ l: 2^a, 3·2^a or 5·2^a, at least 4.
pub(crate) fn good_length(l: usize) -> usize {
    let power = l.max(4).next_power_of_two();
    let candidates = [5 * power / 8, 3 * power / 4, power];
    candidates.into_iter().find(|&m| m >= l.max(4)).unwrap_or(power)
}

impl<T: Real> Fft<T> {
    pub(crate) fn new(m: usize) -> Self {
        let unit = |angle: f64| {
            let (sin, cos) = angle.sin_cos();
            Complex::new(T::from_f64(cos), T::from_f64(sin))
        };
        let mut levels = Vec::new();
        let mut n = m;
        while n > 1 {
            let radix =
                [5, 3, 4, 2].into_iter().find(|r| n % r == 0).expect("a length of the form f·2^a");
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

    /// Twisted transform of real rows: row t (t < l) stands at `src + t·stride`, the rest is zero.
    ///
    /// # Safety
    /// `T::LINE` elements are readable at `src + t·stride` for all t < l ≤ M; `x` holds M elements.
    #[inline(always)]
    pub(crate) unsafe fn forward_rows<S: Simd>(
        &self,
        s: S,
        src: *const T,
        stride: usize,
        l: usize,
        x: *mut T,
    ) {
        let level = &self.levels[0];
        s.vectorize(First { rows: self.rows_in(src, stride, l), level, x });
        for block in 0..level.radix {
            // SAFETY: the caller's promise is passed on.
            unsafe { self.forward(s, x, 1, block * level.q) };
        }
    }

    /// Transform of real rows, `leaf` on every element, and back to real rows (rows t < l are stored).
    ///
    /// # Safety
    /// As [`Self::forward_rows`], and the same of `dst` for writing. Sources and targets are (start, stride).
    #[inline(always)]
    pub(crate) unsafe fn filter_rows<S: Simd>(
        &self,
        s: S,
        src: (*const T, usize),
        l: usize,
        dst: (*mut T, usize),
        x: *mut T,
        leaf: &mut impl Leaf<T>,
    ) {
        let level = &self.levels[0];
        s.vectorize(First { rows: self.rows_in(src.0, src.1, l), level, x });
        for block in 0..level.radix {
            // SAFETY: the caller's promise is passed on.
            unsafe { self.filter(s, x, 1, block * level.q, leaf) };
        }
        s.vectorize(Last { rows: self.rows_out(dst.0, dst.1, l), level, x });
    }

    /// [`Self::forward_rows`] of u into `xu`, and [`Self::filter_rows`] of g, whose `leaf` may read û of the same element.
    ///
    /// Block by block, so that both are in cache when they meet.
    ///
    /// # Safety
    /// As [`Self::filter_rows`], for both inputs.
    #[allow(clippy::too_many_arguments)]
    #[inline(always)]
    pub(crate) unsafe fn correlate_rows<S: Simd>(
        &self,
        s: S,
        u: (*const T, usize),
        g: (*const T, usize),
        l: usize,
        dst: (*mut T, usize),
        xu: *mut T,
        x: *mut T,
        leaf: &mut impl Leaf<T>,
    ) {
        let level = &self.levels[0];
        s.vectorize(First { rows: self.rows_in(u.0, u.1, l), level, x: xu });
        s.vectorize(First { rows: self.rows_in(g.0, g.1, l), level, x });
        for block in 0..level.radix {
            // SAFETY: the caller's promise is passed on.
            unsafe {
                self.forward(s, xu, 1, block * level.q);
                self.filter(s, x, 1, block * level.q, leaf);
            }
        }
        s.vectorize(Last { rows: self.rows_out(dst.0, dst.1, l), level, x });
    }

    /// M times the real part of the inverse: rows t < l are stored. `x` is used up.
    ///
    /// # Safety
    /// As [`Self::forward_rows`], for writing.
    #[inline(always)]
    pub(crate) unsafe fn inverse_rows<S: Simd>(
        &self,
        s: S,
        x: *mut T,
        dst: *mut T,
        stride: usize,
        l: usize,
    ) {
        let level = &self.levels[0];
        for block in 0..level.radix {
            // SAFETY: the caller's promise is passed on.
            unsafe { self.inverse(s, x, 1, block * level.q) };
        }
        s.vectorize(Last { rows: self.rows_out(dst, stride, l), level, x });
    }

    fn rows_in(&self, src: *const T, stride: usize, l: usize) -> Rows<'_, T> {
        Rows { twist: &self.twist, src, dst: std::ptr::null_mut(), stride, l }
    }

    fn rows_out(&self, dst: *mut T, stride: usize, l: usize) -> Rows<'_, T> {
        Rows { twist: &self.twist, src: std::ptr::null(), dst, stride, l }
    }

    /// Elements in a block at `level`.
    fn block(&self, level: usize) -> usize {
        self.levels.get(level).map_or(1, |l| l.radix * l.q)
    }

    unsafe fn forward<S: Simd>(&self, s: S, x: *mut T, level: usize, offset: usize) {
        let n = self.block(level);
        if n <= BOTTOM {
            return s.vectorize(BottomForward { fft: self, x, level, offset, n });
        }
        s.vectorize(Pass::<T, false> { fft: self, x, level, offset });
        let Level { radix, q, .. } = &self.levels[level];
        for block in 0..*radix {
            // SAFETY: the block lies inside this one.
            unsafe { self.forward(s, x, level + 1, offset + block * q) };
        }
    }

    unsafe fn inverse<S: Simd>(&self, s: S, x: *mut T, level: usize, offset: usize) {
        let n = self.block(level);
        if n <= BOTTOM {
            return s.vectorize(BottomInverse { fft: self, x, level, offset, n });
        }
        let Level { radix, q, .. } = &self.levels[level];
        for block in 0..*radix {
            // SAFETY: the block lies inside this one.
            unsafe { self.inverse(s, x, level + 1, offset + block * q) };
        }
        s.vectorize(Pass::<T, true> { fft: self, x, level, offset });
    }

    unsafe fn filter<S: Simd>(
        &self,
        s: S,
        x: *mut T,
        level: usize,
        offset: usize,
        leaf: &mut impl Leaf<T>,
    ) {
        let n = self.block(level);
        if n <= BOTTOM {
            return s.vectorize(BottomFilter { fft: self, x, level, offset, n, leaf });
        }
        s.vectorize(Pass::<T, false> { fft: self, x, level, offset });
        let Level { radix, q, .. } = &self.levels[level];
        for block in 0..*radix {
            // SAFETY: the block lies inside this one.
            unsafe { self.filter(s, x, level + 1, offset + block * q, leaf) };
        }
        s.vectorize(Pass::<T, true> { fft: self, x, level, offset });
    }

    /// All levels from `level` on, of the `n` elements at `offset`.
    #[inline(always)]
    unsafe fn bottom<S: Simd, const INVERSE: bool>(
        &self,
        s: S,
        x: *mut T,
        level: usize,
        offset: usize,
        n: usize,
    ) {
        for step in 0..self.levels.len() - level {
            let level = if INVERSE { self.levels.len() - 1 - step } else { level + step };
            for block in (offset..offset + n).step_by(self.block(level)) {
                // SAFETY: the block lies inside the M elements of x.
                unsafe { self.pass::<S, INVERSE>(s, x, level, block) };
            }
        }
    }

    /// One level of one block, in place.
    #[inline(always)]
    unsafe fn pass<S: Simd, const INVERSE: bool>(
        &self,
        s: S,
        x: *mut T,
        level: usize,
        offset: usize,
    ) {
        let level = &self.levels[level];
        // SAFETY: the block lies inside the M elements of x.
        unsafe {
            let x = element::<T>(x, offset);
            match level.radix {
                2 => pass_in_place::<T, S, 2, INVERSE>(s, x, level),
                3 => pass_in_place::<T, S, 3, INVERSE>(s, x, level),
                4 => pass_in_place::<T, S, 4, INVERSE>(s, x, level),
                _ => pass_in_place::<T, S, 5, INVERSE>(s, x, level),
            }
        }
    }
}

// Work that enters a function compiled for the vector instructions; everything it calls is inlined there.
// In each, x holds M elements and the block lies inside them.

struct Pass<'a, T, const INVERSE: bool> {
    fft: &'a Fft<T>,
    x: *mut T,
    level: usize,
    offset: usize,
}

impl<T: Real, const INVERSE: bool> WithSimd for Pass<'_, T, INVERSE> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) {
        // SAFETY: see above.
        unsafe { self.fft.pass::<S, INVERSE>(s, self.x, self.level, self.offset) }
    }
}

struct BottomForward<'a, T> {
    fft: &'a Fft<T>,
    x: *mut T,
    level: usize,
    offset: usize,
    n: usize,
}

impl<T: Real> WithSimd for BottomForward<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) {
        let Self { fft, x, level, offset, n } = self;
        // SAFETY: see above.
        unsafe { fft.bottom::<S, false>(s, x, level, offset, n) }
    }
}

struct BottomInverse<'a, T> {
    fft: &'a Fft<T>,
    x: *mut T,
    level: usize,
    offset: usize,
    n: usize,
}

impl<T: Real> WithSimd for BottomInverse<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) {
        let Self { fft, x, level, offset, n } = self;
        // SAFETY: see above.
        unsafe { fft.bottom::<S, true>(s, x, level, offset, n) }
    }
}

struct BottomFilter<'a, T, F> {
    fft: &'a Fft<T>,
    x: *mut T,
    level: usize,
    offset: usize,
    n: usize,
    leaf: &'a mut F,
}

impl<T: Real, F: Leaf<T>> WithSimd for BottomFilter<'_, T, F> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) {
        let Self { fft, x, level, offset, n, leaf } = self;
        // SAFETY: see above.
        unsafe {
            fft.bottom::<S, false>(s, x, level, offset, n);
            for i in offset..offset + n {
                for v in (0..T::LINE).step_by(T::lanes::<S>()) {
                    let p = element::<T>(x, i).add(v);
                    store::<T, S>(p, leaf.map(s, i, v, load::<T, S>(p)));
                }
            }
            fft.bottom::<S, true>(s, x, level, offset, n);
        }
    }
}

/// Level 0 forward, reading and twisting real rows.
struct First<'a, T> {
    rows: Rows<'a, T>,
    level: &'a Level<T>,
    x: *mut T,
}

impl<T: Real> WithSimd for First<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) {
        let Self { rows, level, x } = self;
        // SAFETY: see above.
        unsafe {
            match level.radix {
                2 => first_pass::<T, S, 2>(s, &rows, x, level),
                3 => first_pass::<T, S, 3>(s, &rows, x, level),
                4 => first_pass::<T, S, 4>(s, &rows, x, level),
                _ => first_pass::<T, S, 5>(s, &rows, x, level),
            }
        }
    }
}

/// Level 0 backward, untwisting and storing the real parts.
struct Last<'a, T> {
    rows: Rows<'a, T>,
    level: &'a Level<T>,
    x: *mut T,
}

impl<T: Real> WithSimd for Last<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) {
        let Self { rows, level, x } = self;
        // SAFETY: see above.
        unsafe {
            match level.radix {
                2 => last_pass::<T, S, 2>(s, &rows, x, level),
                3 => last_pass::<T, S, 3>(s, &rows, x, level),
                4 => last_pass::<T, S, 4>(s, &rows, x, level),
                _ => last_pass::<T, S, 5>(s, &rows, x, level),
            }
        }
    }
}

/// Real rows outside the scratch, with the twist.
struct Rows<'a, T> {
    twist: &'a [Complex<T>],
    src: *const T,
    dst: *mut T,
    stride: usize,
    l: usize,
}

impl<T: Real> Rows<'_, T> {
    /// x_t·w^t, or zero beyond the rows.
    #[inline(always)]
    unsafe fn load<S: Simd>(&self, s: S, t: usize, v: usize) -> CV<T, S> {
        if t >= self.l {
            return CV::zero(s);
        }
        // SAFETY: t < l, so the row is readable and the twist exists (l ≤ M).
        unsafe {
            let u = self.src.add(t * self.stride + v).cast::<T::V<S>>().read_unaligned();
            let w = self.twist.get_unchecked(t);
            CV { re: T::vmul(s, u, T::vsplat(s, w.re)), im: T::vmul(s, u, T::vsplat(s, w.im)) }
        }
    }

    /// Asks for row t, whose line no hardware prefetcher would guess: rows are H elements apart.
    #[inline(always)]
    fn prefetch(&self, t: usize) {
        #[cfg(target_arch = "x86_64")]
        if t < self.l {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: row t exists; a prefetch has no other effect than on the cache.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(self.src.add(t * self.stride).cast()) };
        }
    }

    /// Re(x·conj(w^t)) into row t.
    #[inline(always)]
    unsafe fn store<S: Simd>(&self, s: S, t: usize, v: usize, x: CV<T, S>) {
        if t >= self.l {
            return;
        }
        // SAFETY: t < l, so the row is writable and the twist exists (l ≤ M).
        unsafe {
            let w = self.twist.get_unchecked(t);
            let re = T::vmul(s, x.re, T::vsplat(s, w.re));
            let y = T::vfma(s, x.im, T::vsplat(s, w.im), re);
            self.dst.add(t * self.stride + v).cast::<T::V<S>>().write_unaligned(y);
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
unsafe fn pass_in_place<T: Real, S: Simd, const R: usize, const INVERSE: bool>(
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

#[inline(always)]
unsafe fn first_pass<T: Real, S: Simd, const R: usize>(
    s: S,
    rows: &Rows<T>,
    x: *mut T,
    level: &Level<T>,
) {
    let q = level.q;
    // SAFETY: x holds radix·q = M elements; rows checks t.
    unsafe {
        for j in 0..q {
            for r in 0..R {
                rows.prefetch(j + AHEAD + r * q);
            }
            let w = twiddles::<T, S, R>(s, level, j);
            for v in (0..T::LINE).step_by(T::lanes::<S>()) {
                let mut a = [CV::zero(s); R];
                for (r, a) in a.iter_mut().enumerate() {
                    *a = rows.load(s, j + r * q, v);
                }
                for (r, y) in scatter(s, a, w).into_iter().enumerate() {
                    store::<T, S>(element::<T>(x, j + r * q).add(v), y);
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn last_pass<T: Real, S: Simd, const R: usize>(
    s: S,
    rows: &Rows<T>,
    x: *mut T,
    level: &Level<T>,
) {
    let q = level.q;
    // SAFETY: x holds radix·q = M elements; rows checks t.
    unsafe {
        for j in 0..q {
            let w = twiddles::<T, S, R>(s, level, j);
            for v in (0..T::LINE).step_by(T::lanes::<S>()) {
                let mut a = [CV::zero(s); R];
                for (r, a) in a.iter_mut().enumerate() {
                    *a = load::<T, S>(element::<T>(x, j + r * q).add(v));
                }
                for (r, y) in gather(s, a, w).into_iter().enumerate() {
                    rows.store(s, j + r * q, v, y);
                }
            }
        }
    }
}

/// Decimation in frequency: the small DFT, then the twiddles.
#[inline(always)]
fn scatter<T: Real, S: Simd, const R: usize>(
    s: S,
    a: [CV<T, S>; R],
    w: [CV<T, S>; R],
) -> [CV<T, S>; R] {
    let mut y = dft::<T, S, R, false>(s, a);
    for k in 1..R {
        y[k] = y[k].mul(s, w[k]);
    }
    y
}

/// Decimation in time: the conjugate twiddles, then the small inverse DFT.
#[inline(always)]
fn gather<T: Real, S: Simd, const R: usize>(
    s: S,
    mut a: [CV<T, S>; R],
    w: [CV<T, S>; R],
) -> [CV<T, S>; R] {
    for k in 1..R {
        a[k] = a[k].mul_conj(s, w[k]);
    }
    dft::<T, S, R, true>(s, a)
}

/// a ∓ i·b: minus forward, plus inverse.
#[inline(always)]
fn turn<T: Real, S: Simd, const INVERSE: bool>(s: S, a: CV<T, S>, b: CV<T, S>) -> CV<T, S> {
    if INVERSE {
        CV { re: T::vsub(s, a.re, b.im), im: T::vadd(s, a.im, b.re) }
    } else {
        CV { re: T::vadd(s, a.re, b.im), im: T::vsub(s, a.im, b.re) }
    }
}

/// a + c·b for a real constant c.
#[inline(always)]
fn axpy<T: Real, S: Simd>(s: S, a: CV<T, S>, c: f64, b: CV<T, S>) -> CV<T, S> {
    let c = T::vsplat(s, T::from_f64(c));
    CV { re: T::vfma(s, c, b.re, a.re), im: T::vfma(s, c, b.im, a.im) }
}

/// y_k = Σ_r a_r e^{∓2πi rk/R}, minus forward, plus inverse.
#[inline(always)]
fn dft<T: Real, S: Simd, const R: usize, const INVERSE: bool>(
    s: S,
    a: [CV<T, S>; R],
) -> [CV<T, S>; R] {
    // cos and sin of 2π/5 and 4π/5, and sin of 2π/3.
    const C1: f64 = 0.309_016_994_374_947_45;
    const C2: f64 = -0.809_016_994_374_947_45;
    const S1: f64 = 0.951_056_516_295_153_5;
    const S2: f64 = 0.587_785_252_292_473_1;
    const S3: f64 = 0.866_025_403_784_438_6;
    let zero = CV::zero(s);
    let mut y = a;
    match R {
        2 => {
            y[0] = a[0].add(s, a[1]);
            y[1] = a[0].sub(s, a[1]);
        }
        3 => {
            let sum = a[1].add(s, a[2]);
            let even = axpy(s, a[0], -0.5, sum);
            let odd = axpy(s, zero, S3, a[1].sub(s, a[2]));
            y[0] = a[0].add(s, sum);
            y[1] = turn::<T, S, INVERSE>(s, even, odd);
            y[2] = even.add(s, even.sub(s, y[1]));
        }
        4 => {
            let (t0, t1) = (a[0].add(s, a[2]), a[0].sub(s, a[2]));
            let (t2, t3) = (a[1].add(s, a[3]), a[1].sub(s, a[3]));
            y[0] = t0.add(s, t2);
            y[2] = t0.sub(s, t2);
            // The two odd outputs differ by the direction of the quarter turn.
            (y[1], y[3]) = if INVERSE {
                (turn::<T, S, true>(s, t1, t3), turn::<T, S, false>(s, t1, t3))
            } else {
                (turn::<T, S, false>(s, t1, t3), turn::<T, S, true>(s, t1, t3))
            };
        }
        5 => {
            let (p1, m1) = (a[1].add(s, a[4]), a[1].sub(s, a[4]));
            let (p2, m2) = (a[2].add(s, a[3]), a[2].sub(s, a[3]));
            let even1 = axpy(s, axpy(s, a[0], C1, p1), C2, p2);
            let even2 = axpy(s, axpy(s, a[0], C2, p1), C1, p2);
            let odd1 = axpy(s, axpy(s, zero, S1, m1), S2, m2);
            let odd2 = axpy(s, axpy(s, zero, S2, m1), -S1, m2);
            y[0] = a[0].add(s, p1).add(s, p2);
            y[1] = turn::<T, S, INVERSE>(s, even1, odd1);
            y[2] = turn::<T, S, INVERSE>(s, even2, odd2);
            y[3] = even2.add(s, even2.sub(s, y[2]));
            y[4] = even1.add(s, even1.sub(s, y[1]));
        }
        _ => unreachable!("radix 2, 3, 4 or 5"),
    }
    y
}
