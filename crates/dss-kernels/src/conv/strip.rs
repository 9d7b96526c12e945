//! One strip of channels of one sample: a few whole cache lines, or one that is narrower.

use super::fft::{Fft, Pointwise, Rows, load, store};
use super::{Input, OutputMode};
use crate::lines::Lines;
use crate::par::Disjoint;
use crate::real::{CV, Real};
use pulp::{Simd, WithSimd};

/// Elements of transforms that are under way together, unless two lines of channels have more.
const ELEMENTS: usize = 1 << 15;

/// Whole cache lines of channels that are taken together, at transforms of length m. Rows are best read and written in
/// wide pieces, but what lies between must not outgrow the caches.
pub(super) fn widest(m: usize) -> usize {
    (ELEMENTS / m).clamp(2, 4)
}

/// Buffers of one worker.
pub(crate) struct Scratch<T: Real> {
    /// [`widest`]·M elements each.
    pub x: Lines<T>,
    pub u: Lines<T>,
    /// `[M, LINE]` each: the rows of a narrow strip, or of a kernel.
    pub rows: [Lines<T>; 2],
}

impl<T: Real> Scratch<T> {
    pub fn new(m: usize, tiles: usize) -> Self {
        let elements = || Lines::new(widest(m).min(tiles) * 2 * m);
        Self { x: elements(), u: elements(), rows: [Lines::new(m), Lines::new(m)] }
    }
}

/// Channels `first..first + width` of one sample: in `[B, L, H]`, the rows `start + t·h`, t < l.
#[derive(Clone, Copy)]
pub(crate) struct Strip {
    /// Tiles (cache lines of channels) that it covers.
    pub tile: usize,
    pub lines: usize,
    sample: usize,
    start: usize,
    width: usize,
    l: usize,
    h: usize,
}

impl Strip {
    /// The strips of the tiles in `tiles`, at most `wide` lines each, for one sample.
    pub fn cover<T: Real>(
        sample: usize,
        tiles: std::ops::Range<usize>,
        wide: usize,
        l: usize,
        h: usize,
    ) -> impl Iterator<Item = Self> {
        let whole = (h / T::LINE).min(tiles.end);
        let mut next = tiles.start;
        std::iter::from_fn(move || {
            let tile = next;
            if tile >= tiles.end {
                return None;
            }
            let lines = whole.saturating_sub(tile).clamp(1, wide);
            next += lines;
            let first = tile * T::LINE;
            let width = (lines * T::LINE).min(h - first);
            let start = sample * l * h + first;
            Some(Self { tile, lines, sample, start, width, l, h })
        })
    }

    fn is_whole<T: Real>(&self) -> bool {
        self.width == self.lines * T::LINE
    }

    /// How many rows of u are not zero.
    fn true_rows<T>(&self, u: &Input<'_, T>) -> usize {
        u.lengths.map_or(self.l, |lengths| lengths[self.sample].min(self.l))
    }

    /// The rows and what is to be done to them: in `u` itself, or, where the strip is narrow, gathered into `rows`, and
    /// done.
    fn rows<'a, T: Real>(
        &self,
        u: &Input<'a, T>,
        rows: &Lines<T>,
    ) -> (Rows<*const T>, Option<[&'a [T]; 3]>) {
        let Self { start, width, h, lines, .. } = *self;
        assert!(start + (self.l - 1) * h + width <= u.x.len());
        let l = self.true_rows(u);
        let first = self.tile * T::LINE;
        let affine = u.affine.map(|vectors| vectors.map(|vector| &vector[first..][..width]));
        if self.is_whole::<T>() {
            return (Rows { start: u.x[start..].as_ptr(), stride: h, lines, l }, affine);
        }
        assert!(l * T::LINE <= rows.as_slice().len());
        let gathered = rows.pointer();
        for t in 0..l {
            let row = &u.x[start + t * h..][..width];
            // SAFETY: row t of the buffer exists; the worker owns it.
            let to = unsafe { std::slice::from_raw_parts_mut(gathered.add(t * T::LINE), width) };
            match affine {
                None => to.copy_from_slice(row),
                Some([mean, scale, shift]) => {
                    let vectors = mean.iter().zip(scale).zip(shift);
                    for ((to, &x), ((&mean, &scale), &shift)) in to.iter_mut().zip(row).zip(vectors)
                    {
                        *to = (x - mean) * scale + shift;
                    }
                }
            }
        }
        (Rows { start: gathered.cast_const(), stride: T::LINE, lines, l }, None)
    }

    /// Where the first l rows of a result are to be written.
    fn rows_out<T: Real>(&self, y: &Disjoint<T>, l: usize, rows: &Lines<T>) -> Rows<*mut T> {
        let Self { start, width, h, lines, .. } = *self;
        if self.is_whole::<T>() {
            let start = y.pointer(start, (self.l - 1) * h + width);
            return Rows { start, stride: h, lines, l };
        }
        assert!(l * T::LINE <= rows.as_slice().len());
        Rows { start: rows.pointer(), stride: T::LINE, lines, l }
    }

    /// Moves the first l rows of a narrow strip to their place, or adds them to what is there.
    ///
    /// # Safety
    /// No other worker may touch this strip's elements of `y`.
    unsafe fn finish<T: Real>(&self, y: &Disjoint<T>, l: usize, rows: &Lines<T>, add: bool) {
        if self.is_whole::<T>() {
            return;
        }
        for t in 0..l {
            // SAFETY: the caller's promise.
            let row = unsafe { y.part(self.start + t * self.h, self.width) };
            let from = &rows.as_slice()[t * T::LINE..][..self.width];
            if add {
                row.iter_mut().zip(from).for_each(|(y, &x)| *y += x);
            } else {
                row.copy_from_slice(from);
            }
        }
    }
}

/// y = T⁻¹(K̂ · T u) of one strip.
pub(crate) struct Filter<'a, T: Real> {
    pub fft: &'a Fft<T>,
    pub strip: Strip,
    pub u: Input<'a, T>,
    /// Of the strip's tiles.
    pub spectrum: &'a [T],
    /// No other worker may touch the strip's elements.
    pub y: &'a Disjoint<'a, T>,
    pub scratch: &'a mut Scratch<T>,
}

impl<T: Real> WithSimd for Filter<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) {
        struct Times<'a, T>(&'a [T]);
        impl<T: Real> Pointwise<T> for Times<'_, T> {
            #[inline(always)]
            unsafe fn map<S: Simd>(&mut self, s: S, i: usize, v: usize, x: CV<T, S>) -> CV<T, S> {
                // SAFETY: the spectrum has as many elements as x.
                x.mul(s, unsafe { load(self.0.as_ptr().add(i * 2 * T::LINE + v)) })
            }
        }
        let Self { fft, strip, u, spectrum, y, scratch } = self;
        let Scratch { x, rows: [rows_in, rows_out], .. } = scratch;
        let x = x.as_mut_slice();
        let size = strip.lines * fft.m * 2 * T::LINE;
        assert!(spectrum.len() == size && x.len() >= size);
        let src = strip.rows(&u, rows_in);
        let dst = strip.rows_out(y, strip.l, rows_out);
        // SAFETY: `rows` and `rows_out` checked the rows, the assertion the elements; one worker per strip.
        unsafe {
            fft.filter_rows(s, src, dst, x.as_mut_ptr(), &mut Times(spectrum));
            strip.finish(y, strip.l, rows_out, false);
        }
    }
}

/// du = T⁻¹(conj(K̂) · T dy) and sum += conj(T u) · T dy of one strip.
pub(crate) struct Adjoint<'a, T: Real> {
    pub fft: &'a Fft<T>,
    pub strip: Strip,
    pub u: Input<'a, T>,
    pub dy: &'a [T],
    /// Of the strip's tiles.
    pub spectrum: &'a [T],
    pub sum: &'a mut [T],
    /// No other worker may touch the strip's elements.
    pub du: &'a Disjoint<'a, T>,
    pub how: OutputMode,
    pub scratch: &'a mut Scratch<T>,
}

impl<T: Real> WithSimd for Adjoint<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) {
        struct Correlate<'a, T> {
            /// û, being written block by block ahead of the product.
            u: *const T,
            k: &'a [T],
            sum: &'a mut [T],
        }
        impl<T: Real> Pointwise<T> for Correlate<'_, T> {
            #[inline(always)]
            unsafe fn map<S: Simd>(&mut self, s: S, i: usize, v: usize, x: CV<T, S>) -> CV<T, S> {
                let at = i * 2 * T::LINE + v;
                // SAFETY: u, k and sum have as many elements as x.
                unsafe {
                    let sum = self.sum.as_mut_ptr().add(at);
                    let product = x.mul_conj(s, load(self.u.add(at)));
                    store(sum, load::<T, S>(sum).add(s, product));
                    x.mul_conj(s, load(self.k.as_ptr().add(at)))
                }
            }
        }
        let Self { fft, strip, u, dy, spectrum, sum, du, how, scratch } = self;
        let Scratch { x, u: u_hat, rows: [u_rows, dy_rows] } = scratch;
        let (x, u_hat) = (x.as_mut_slice(), u_hat.as_mut_slice());
        let size = strip.lines * fft.m * 2 * T::LINE;
        assert!(spectrum.len() == size && sum.len() == size);
        assert!(x.len() >= size && u_hat.len() >= size);
        let src = [strip.rows(&u, u_rows), strip.rows(&Input::plain(dy), dy_rows)];
        let add = how == OutputMode::Add;
        let l = if add { strip.true_rows(&u) } else { strip.l };
        // The rows of dy are read before those of du are written.
        let dst = strip.rows_out(du, l, dy_rows);
        let u_hat = u_hat.as_mut_ptr();
        // SAFETY: `rows` and `rows_out` checked the rows, the assertions the elements; one worker per strip.
        unsafe {
            let pointwise = &mut Correlate { u: u_hat, k: spectrum, sum };
            let x = [u_hat, x.as_mut_ptr()];
            if add && strip.is_whole::<T>() {
                fft.correlate_rows::<S, true>(s, src, dst, x, pointwise);
            } else {
                fft.correlate_rows::<S, false>(s, src, dst, x, pointwise);
            }
            strip.finish(du, l, dy_rows, add);
        }
    }
}

/// Twisted spectrum of M rows of one line.
pub(crate) struct Spectrum<'a, T> {
    pub fft: &'a Fft<T>,
    pub rows: &'a [T],
    pub x: &'a mut [T],
}

impl<T: Real> WithSimd for Spectrum<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) {
        let Self { fft, rows, x } = self;
        assert!(rows.len() == fft.m * T::LINE && x.len() >= 2 * fft.m * T::LINE);
        let src = Rows { start: rows.as_ptr(), stride: T::LINE, lines: 1, l: fft.m };
        // SAFETY: M rows and M elements.
        unsafe { fft.forward_rows(s, (src, None), x.as_mut_ptr()) }
    }
}

/// M times the real part of the inverse of one line's spectrum.
pub(crate) struct Inverse<'a, T> {
    pub fft: &'a Fft<T>,
    pub x: &'a mut [T],
    pub rows: &'a mut [T],
}

impl<T: Real> WithSimd for Inverse<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) {
        let Self { fft, x, rows } = self;
        assert!(rows.len() == fft.m * T::LINE && x.len() >= 2 * fft.m * T::LINE);
        let dst = Rows { start: rows.as_mut_ptr(), stride: T::LINE, lines: 1, l: fft.m };
        // SAFETY: M rows and M elements.
        unsafe { fft.inverse_rows(s, x.as_mut_ptr(), dst) }
    }
}
