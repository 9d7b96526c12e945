//! Several steps of the decaying modes of one stream at once, channel by channel: Ā, W·B̄ and s stay in registers, and only
//! the sums over modes, one vector per step, go through the first-level cache.

use super::step::{StepOf, Table, load};
use super::{PERIOD, Recurrence, padded};
use crate::real::Real;
use pulp::{Simd, WithSimd};

/// Up to [`PERIOD`] steps: u, y `[steps, H]`.
pub(super) struct Run<'a, T: Real> {
    pub model: &'a Recurrence<T>,
    pub s: &'a mut [T],
    pub u: &'a [T],
    pub y: &'a mut [T],
}

impl<T: Real> WithSimd for Run<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { model, s, u, y } = self;
        let features = model.config.h;
        let width = padded::<T>(model.decaying.len());
        let lanes = T::lanes::<S>();
        let mut sums = [T::vsplat(simd, T::ZERO); PERIOD];
        let sums = &mut sums[..u.len() / features];
        for h in 0..features {
            let table = Table {
                a: model.a[h * 4 * width..][..4 * width].as_ptr(),
                c: model.c[h * 2 * width..][..2 * width].as_ptr(),
                s: s[h * 2 * width..][..2 * width].as_mut_ptr(),
                width,
            };
            sums.fill(T::vsplat(simd, T::ZERO));
            let u = u[h..].iter().step_by(features);
            let mut v = 0;
            while v < width {
                // SAFETY: the rows were cut to their lengths above, and each call takes vectors below the width.
                unsafe {
                    if S::REGISTER_COUNT >= 32 && v + 4 * lanes <= width {
                        modes::<T, S, 4>(simd, &table, v, u.clone(), sums);
                        v += 4 * lanes;
                    } else if v + 2 * lanes <= width {
                        modes::<T, S, 2>(simd, &table, v, u.clone(), sums);
                        v += 2 * lanes;
                    } else {
                        modes::<T, S, 1>(simd, &table, v, u.clone(), sums);
                        v += lanes;
                    }
                }
            }
            for (y, &sum) in y[h..].iter_mut().step_by(features).zip(&*sums) {
                *y = T::vsum(simd, sum);
            }
        }
    }
}

/// V vectors of modes from v on, through all steps.
///
/// # Safety
/// They must stand within the table's rows.
#[inline(always)]
unsafe fn modes<'a, T: Real, S: Simd, const V: usize>(
    simd: S,
    table: &Table<T>,
    v: usize,
    u: impl Iterator<Item = &'a T>,
    sums: &mut [T::V<S>],
) {
    let Table { c, s, width, .. } = *table;
    let lanes = T::lanes::<S>();
    // SAFETY: the caller's promise.
    unsafe {
        let at = |i: usize| v + i * lanes;
        let both =
            |x: *const T, i| [load::<T, S>(x.add(at(i))), load::<T, S>(x.add(width + at(i)))];
        let a: [StepOf<T, S>; V] = std::array::from_fn(|i| StepOf::load(table, at(i)));
        let c: [_; V] = std::array::from_fn(|i| both(c, i));
        let mut now: [_; V] = std::array::from_fn(|i| both(s, i));
        for (&u, sum) in u.zip(sums) {
            let u = T::vsplat(simd, u);
            for i in 0..V {
                now[i] = a[i].apply(simd, u, now[i]);
                *sum = T::vfma(simd, c[i][0], now[i][0], *sum);
                *sum = T::vfnma(simd, c[i][1], now[i][1], *sum);
            }
        }
        for (i, [re, im]) in now.into_iter().enumerate() {
            s.add(at(i)).cast::<T::V<S>>().write_unaligned(re);
            s.add(width + at(i)).cast::<T::V<S>>().write_unaligned(im);
        }
    }
}
