//! From the values of the generating function at the roots of unity to the taps, and back.
//!
//! K̂_k = Σ_l K_l ω^l at ω = e^{−2πik/L} is the discrete Fourier transform of real K: the values for 2k ≤ L suffice. At
//! each root z = 2(1 − ω)/(1 + ω) = iy with y = 2 tan(πk/L); only k = L/2 of an even L, ω = −1, has none.
//!
//! For even L the transform is one of length L/2 on pairs of taps, for odd L a plain complex one.

use crate::complex::C64;
use rustfft::{Fft, FftPlanner};
use std::f64::consts::{PI, TAU};
use std::sync::Arc;

/// y_k = 2 tan(πk/L) for 2k < L, to full precision up to the pole at k = L/2.
pub(crate) fn frequencies(len: usize) -> Vec<f64> {
    let tan = |k: usize| {
        if 4 * k <= len {
            (PI * k as f64 / len as f64).tan()
        } else {
            1.0 / (PI * (len - 2 * k) as f64 / (2 * len) as f64).tan()
        }
    };
    (0..len.div_ceil(2)).map(|k| 2.0 * tan(k)).collect()
}

/// The real transform of one length.
pub(crate) struct RealFft {
    len: usize,
    forward: Arc<dyn Fft<f64>>,
    inverse: Arc<dyn Fft<f64>>,
    /// e^{2πik/L}, k < L/2, for even L.
    turns: Vec<C64>,
}

/// Buffers of one worker.
pub(crate) struct Buffers {
    z: Vec<C64>,
    fft: Vec<C64>,
}

impl RealFft {
    pub(crate) fn new(len: usize) -> Self {
        let even = len.is_multiple_of(2);
        let size = if even { len / 2 } else { len };
        let mut planner = FftPlanner::new();
        let turns = (0..if even { size } else { 0 }).map(|k| {
            let (sin, cos) = (TAU * k as f64 / len as f64).sin_cos();
            C64::new(cos, sin)
        });
        Self {
            len,
            forward: planner.plan_fft_forward(size),
            inverse: planner.plan_fft_inverse(size),
            turns: turns.collect(),
        }
    }

    pub(crate) fn buffers(&self) -> Buffers {
        let scratch =
            self.forward.get_inplace_scratch_len().max(self.inverse.get_inplace_scratch_len());
        Buffers { z: vec![C64::ZERO; self.forward.len()], fft: vec![C64::ZERO; scratch] }
    }

    /// The taps of K̂ `[L/2 + 1]`, as many as `put` is wanted for: put(l, K_l).
    pub(crate) fn taps(
        &self,
        spectrum: &[C64],
        buffers: &mut Buffers,
        mut put: impl FnMut(usize, f64),
    ) {
        let Buffers { z, fft } = buffers;
        let scale = 1.0 / self.len as f64;
        if self.turns.is_empty() {
            z[0] = spectrum[0];
            for (k, &x) in spectrum.iter().enumerate().skip(1) {
                (z[k], z[self.len - k]) = (x, x.conj());
            }
            self.inverse.process_with_scratch(z, fft);
            z.iter().enumerate().for_each(|(l, z)| put(l, z.re * scale));
            return;
        }
        let mirror = spectrum.iter().rev();
        for (((z, &x), m), turn) in z.iter_mut().zip(spectrum).zip(mirror).zip(&self.turns) {
            let (sum, difference) = (x + m.conj(), (x - m.conj()) * turn);
            *z = C64::new(sum.re - difference.im, sum.im + difference.re);
        }
        self.inverse.process_with_scratch(z, fft);
        for (i, z) in z.iter().enumerate() {
            put(2 * i, z.re * scale);
            put(2 * i + 1, z.im * scale);
        }
    }

    /// Given the gradient of the taps, tap(l) = ∂loss/∂K_l, writes that of K̂ `[L/2 + 1]`.
    pub(crate) fn adjoint(
        &self,
        tap: impl Fn(usize) -> f64,
        buffers: &mut Buffers,
        g_spectrum: &mut [C64],
    ) {
        let Buffers { z, fft } = buffers;
        let scale = 2.0 / self.len as f64;
        if self.turns.is_empty() {
            z.iter_mut().enumerate().for_each(|(l, z)| *z = C64::from(tap(l)));
            self.forward.process_with_scratch(z, fft);
            for (g, &z) in g_spectrum.iter_mut().zip(&*z) {
                *g = z * scale;
            }
        } else {
            let half = z.len();
            z.iter_mut().enumerate().for_each(|(i, z)| *z = C64::new(tap(2 * i), tap(2 * i + 1)));
            self.forward.process_with_scratch(z, fft);
            for (k, (g, turn)) in g_spectrum.iter_mut().zip(&self.turns).enumerate() {
                let (x, mirror) = (z[k], z[if k == 0 { 0 } else { half - k }].conj());
                let odd = (x - mirror) * turn.conj();
                *g = (x + mirror + C64::new(odd.im, -odd.re)) * (0.5 * scale);
            }
            // ω = −1: even taps less odd ones. It counts once.
            g_spectrum[half] = C64::from((z[0].re - z[0].im) * 0.5 * scale);
        }
        g_spectrum[0] = C64::from(g_spectrum[0].re * 0.5);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ways against the plain sums, at awkward lengths.
    #[test]
    fn equals_the_direct_sum() {
        for len in [1, 2, 3, 4, 7, 10, 16, 37] {
            let fft = RealFft::new(len);
            let mut buffers = fft.buffers();
            let k: Vec<f64> = (0..len).map(|l| (l as f64 * 0.7).sin() + 0.3).collect();
            let turn = |k: usize, l: usize| C64::cis(-TAU * (k * l) as f64 / len as f64);
            let spectrum: Vec<C64> = (0..=len / 2)
                .map(|i| k.iter().enumerate().map(|(l, &k)| turn(i, l) * k).sum())
                .collect();
            let mut taps = vec![0.0; len];
            fft.taps(&spectrum, &mut buffers, |l, value| taps[l] = value);
            let mut g = vec![C64::ZERO; len / 2 + 1];
            fft.adjoint(|l| k[l], &mut buffers, &mut g);
            for l in 0..len {
                assert!((taps[l] - k[l]).abs() < 1e-14, "L = {len}, tap {l}");
            }
            for (i, g) in g.iter().enumerate() {
                let twice = if i == 0 || 2 * i == len { 1.0 } else { 2.0 };
                let expected = spectrum[i] * (twice / len as f64);
                assert!((g - expected).norm() < 1e-14, "L = {len}, frequency {i}");
            }
        }
    }

    #[test]
    fn frequencies_near_the_pole() {
        let y = frequencies(1 << 20);
        // tan(π/2 − x) = 1/x − x/3 − …
        let x = PI / (1 << 20) as f64;
        assert!((y[(1 << 19) - 1] / (2.0 / x - 2.0 * x / 3.0) - 1.0).abs() < 1e-15);
        assert_eq!(frequencies(1), [0.0]);
        assert_eq!(frequencies(2), [0.0]);
        assert_eq!(frequencies(5).len(), 3);
    }
}
