//! One step of the decaying modes.

use super::{Recurrence, RecurrentState, padded};
use crate::kernel::KernelConfig;
use crate::real::Real;
use pulp::{Simd, WithSimd};

/// Where a vector of modes of one channel begins in the rows of a table: pointers to `[parts, width]`.
#[derive(Clone, Copy)]
pub(super) struct Table<T> {
    /// Ā: re, im, and what rounding lost of each.
    pub a: *const T,
    /// W·B̄: re, im.
    pub c: *const T,
    /// s: re, im.
    pub s: *mut T,
    pub width: usize,
}

/// Ā of a vector of modes.
pub(super) struct StepOf<T: Real, S: Simd> {
    re: T::V<S>,
    im: T::V<S>,
    low_re: T::V<S>,
    low_im: T::V<S>,
}

/// # Safety
/// A whole vector must stand at `at`.
#[inline(always)]
pub(super) unsafe fn load<T: Real, S: Simd>(at: *const T) -> T::V<S> {
    // SAFETY: the caller's promise; any bits are a float.
    unsafe { at.cast::<T::V<S>>().read_unaligned() }
}

impl<T: Real, S: Simd> StepOf<T, S> {
    /// # Safety
    /// The table must have four rows, with a whole vector from v on.
    #[inline(always)]
    pub(super) unsafe fn load(table: &Table<T>, v: usize) -> Self {
        let Table { a, width, .. } = *table;
        // SAFETY: the caller's promise.
        unsafe {
            let part = |i: usize| load::<T, S>(a.add(i * width + v));
            Self { re: part(0), im: part(1), low_re: part(2), low_im: part(3) }
        }
    }

    /// Ā·s + u
    #[inline(always)]
    pub(super) fn apply(&self, simd: S, u: T::V<S>, [re, im]: [T::V<S>; 2]) -> [T::V<S>; 2] {
        let (mut next_re, mut next_im) = (u, T::vsplat(simd, T::ZERO));
        if T::SPLIT {
            next_re = T::vfma(simd, self.low_re, re, next_re);
            next_re = T::vfnma(simd, self.low_im, im, next_re);
            next_im = T::vmul(simd, self.low_re, im);
            next_im = T::vfma(simd, self.low_im, re, next_im);
        }
        next_re = T::vfnma(simd, self.im, im, T::vfma(simd, self.re, re, next_re));
        next_im = T::vfma(simd, self.im, re, T::vfma(simd, self.re, im, next_im));
        [next_re, next_im]
    }
}

/// All streams and channels.
pub(super) struct Step<'a, T: Real, X, F> {
    pub model: &'a Recurrence<T>,
    pub streams: &'a mut [X],
    pub state_of: &'a F,
    pub u: &'a [T],
    pub y: &'a mut [T],
}

impl<T: Real, X, F: Fn(&mut X) -> &mut RecurrentState<T>> WithSimd for Step<'_, T, X, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { model, streams, state_of, u, y } = self;
        let KernelConfig { channels, h: features, .. } = model.config;
        let width = padded::<T>(model.decaying.len());
        let lanes = T::lanes::<S>();
        for h in 0..features {
            let a = model.a[h * 4 * width..][..4 * width].as_ptr();
            let c = &model.c[h * channels * 2 * width..][..channels * 2 * width];
            for (b, stream) in streams.iter_mut().enumerate() {
                let s = state_of(stream).s[h * 2 * width..][..2 * width].as_mut_ptr();
                let table = Table { a, c: c.as_ptr(), s, width };
                let input = T::vsplat(simd, u[b * features + h]);
                let mut sum = T::vsplat(simd, T::ZERO);
                for v in (0..width).step_by(lanes) {
                    // SAFETY: the rows were cut to their lengths above, and v + lanes ≤ width: the width is a multiple
                    // of the line, and so of the lanes.
                    unsafe {
                        let (s_re, s_im) = (s.add(v), s.add(width + v));
                        let before = [load::<T, S>(s_re), load::<T, S>(s_im)];
                        let [re, im] = StepOf::load(&table, v).apply(simd, input, before);
                        sum = T::vfma(simd, load::<T, S>(table.c.add(v)), re, sum);
                        sum = T::vfnma(simd, load::<T, S>(table.c.add(width + v)), im, sum);
                        s_re.cast::<T::V<S>>().write_unaligned(re);
                        s_im.cast::<T::V<S>>().write_unaligned(im);
                    }
                }
                y[b * channels * features + h] = T::vsum(simd, sum);
                for channel in 1..channels {
                    let c = c[channel * 2 * width..][..2 * width].as_ptr();
                    let mut sum = T::vsplat(simd, T::ZERO);
                    for v in (0..width).step_by(lanes) {
                        // SAFETY: as above.
                        unsafe {
                            let [c_re, c_im] = [c.add(v), c.add(width + v)];
                            let [s_re, s_im] = [s.add(v), s.add(width + v)];
                            sum = T::vfma(simd, load::<T, S>(c_re), load::<T, S>(s_re), sum);
                            sum = T::vfnma(simd, load::<T, S>(c_im), load::<T, S>(s_im), sum);
                        }
                    }
                    y[(b * channels + channel) * features + h] = T::vsum(simd, sum);
                }
            }
        }
    }
}
