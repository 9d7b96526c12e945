//! The small DFTs that the levels of the FFT are made of, on complex SIMD registers.

use crate::real::{CV, Real};
use pulp::Simd;
use std::f64::consts::FRAC_1_SQRT_2;

/// Decimation in frequency: the small DFT, then the twiddles.
#[inline(always)]
pub(super) fn scatter<T: Real, S: Simd, const R: usize>(
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
pub(super) fn gather<T: Real, S: Simd, const R: usize>(
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

/// a ± i·b: the other way round.
#[inline(always)]
fn unturn<T: Real, S: Simd, const INVERSE: bool>(s: S, a: CV<T, S>, b: CV<T, S>) -> CV<T, S> {
    if INVERSE { turn::<T, S, false>(s, a, b) } else { turn::<T, S, true>(s, a, b) }
}

#[inline(always)]
fn dft4<T: Real, S: Simd, const INVERSE: bool>(s: S, a: [CV<T, S>; 4]) -> [CV<T, S>; 4] {
    let (t0, t1) = (a[0].add(s, a[2]), a[0].sub(s, a[2]));
    let (t2, t3) = (a[1].add(s, a[3]), a[1].sub(s, a[3]));
    [
        t0.add(s, t2),
        turn::<T, S, INVERSE>(s, t1, t3),
        t0.sub(s, t2),
        unturn::<T, S, INVERSE>(s, t1, t3),
    ]
}

/// a + c·b for a real constant c.
#[inline(always)]
fn axpy<T: Real, S: Simd>(s: S, a: CV<T, S>, c: f64, b: CV<T, S>) -> CV<T, S> {
    let c = T::vsplat(s, T::from_f64(c));
    CV { re: T::vfma(s, c, b.re, a.re), im: T::vfma(s, c, b.im, a.im) }
}

/// y_k = Σ_r a_r e^{∓2πi rk/R}, minus forward, plus inverse.
#[inline(always)]
pub(super) fn dft<T: Real, S: Simd, const R: usize, const INVERSE: bool>(
    s: S,
    a: [CV<T, S>; R],
) -> [CV<T, S>; R] {
    // cos and sin of 2π/5 and 4π/5, and sin of 2π/3.
    const C1: f64 = 0.309_016_994_374_947_45;
    const C2: f64 = -0.809_016_994_374_947_4;
    const S1: f64 = 0.951_056_516_295_153_5;
    const S2: f64 = 0.587_785_252_292_473_1;
    const S3: f64 = 0.866_025_403_784_438_6;
    let zero = CV::zero(s);
    let mut y = a;
    match R {
        1 => {}
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
            y[2] = unturn::<T, S, INVERSE>(s, even, odd);
        }
        4 => {
            let [y0, y1, y2, y3] = dft4::<T, S, INVERSE>(s, [a[0], a[1], a[2], a[3]]);
            (y[0], y[1], y[2], y[3]) = (y0, y1, y2, y3);
        }
        8 => {
            let even = dft4::<T, S, INVERSE>(s, [a[0], a[2], a[4], a[6]]);
            let odd = dft4::<T, S, INVERSE>(s, [a[1], a[3], a[5], a[7]]);
            // e^{∓iπ/4}·x = (x ∓ i·x)/√2, and e^{∓3iπ/4}·x = ∓i·e^{∓iπ/4}·x.
            let eighth = |x: CV<T, S>| axpy(s, zero, FRAC_1_SQRT_2, turn::<T, S, INVERSE>(s, x, x));
            let (odd1, odd3) = (eighth(odd[1]), eighth(odd[3]));
            y[0] = even[0].add(s, odd[0]);
            y[4] = even[0].sub(s, odd[0]);
            y[1] = even[1].add(s, odd1);
            y[5] = even[1].sub(s, odd1);
            y[2] = turn::<T, S, INVERSE>(s, even[2], odd[2]);
            y[6] = unturn::<T, S, INVERSE>(s, even[2], odd[2]);
            y[3] = turn::<T, S, INVERSE>(s, even[3], odd3);
            y[7] = unturn::<T, S, INVERSE>(s, even[3], odd3);
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
            y[3] = unturn::<T, S, INVERSE>(s, even2, odd2);
            y[4] = unturn::<T, S, INVERSE>(s, even1, odd1);
        }
        _ => unreachable!("radix 1, 2, 3, 4, 5 or 8"),
    }
    y
}
