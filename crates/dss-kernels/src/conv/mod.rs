//! Causal convolution y = K * u (Eq. 6) over [B, L, H], and its backward.
//!
//! Right-angle form (see `fft.rs`): one complex FFT of length M ≥ L per channel, vectorised across the channels of a
//! cache line. dK is summed over the batch as a spectrum, with one inverse at the end.
//!
//! The bidirectional form costs the same. Modulo z^M + i the anti-causal tap z^{-1-j} is i·z^{M-1-j}: the second kernel,
//! reversed, is the imaginary part of one complex kernel.

mod butterfly;
mod direct;
mod fft;
mod strip;

use crate::error::{Error, Result, check_len, check_memory};
use crate::lines::Lines;
use crate::par::{self, Disjoint, share};
use crate::real::Real;
use fft::{Fft, good_length};
use strip::{Scratch, Strip, widest};

pub(crate) use strip::{Adjoint, Filter, Inverse, Spectrum};

pub use direct::convolve_direct;

/// Plan and buffers of the convolution of `[B, L, H]` inputs with per-channel kernels.
///
/// After [`Conv::new`] and the first backward nothing allocates. NaN and infinities are not looked for.
///
/// Any L works; the transform runs at the next length of the form 2^a, 3·2^a or 5·2^a. Channels are processed in tiles of
/// one cache line, 16 of f32 or 8 of f64: multiples are fast. Tiles and samples are shared out to the workers; one
/// sample of one tile keeps one of them busy.
///
/// ```
/// use dss_kernels::Conv;
/// let (b, l, h) = (1, 4, 1);
/// let mut conv = Conv::<f32>::new(b, l, h)?;
/// conv.set_kernel(&[1.0, 0.5, 0.25, 0.125])?; // [H, L]
/// let mut y = [0.0; 4];
/// conv.forward(&[1.0, 0.0, 0.0, 2.0], &mut y)?; // [B, L, H]
/// assert!((y[3] - 2.125).abs() < 1e-6);
/// # Ok::<(), dss_kernels::Error>(())
/// ```
pub struct Conv<T: Real> {
    b: usize,
    l: usize,
    h: usize,
    fft: Fft<T>,
    /// Spectra of the kernels times 1/M: [tiles, M] elements.
    spectrum: Lines<T>,
    /// Taps of the current kernel, and whether it has an anti-causal half.
    kernel: Option<(usize, bool)>,
    /// Batch groups per tile: a function of the sizes, not of the threads.
    groups: usize,
    /// Sums over a batch group of conj(û)·dŷ: [groups, tiles, M] elements; made by the first backward.
    sums: Option<Lines<T>>,
    scratch: Vec<Scratch<T>>,
}

impl<T: Real> Conv<T> {
    /// A plan for inputs of shape `[B, L, H]`.
    pub fn new(b: usize, l: usize, h: usize) -> Result<Self> {
        if b == 0 || l == 0 || h == 0 {
            let what = format!("B, L and H must be at least 1, but are {b}, {l} and {h}");
            return Err(Error::Invalid { op: "Conv::new", what });
        }
        // The largest buffer has 2·M·LINE elements per tile and batch group; M ≤ 4·L.
        let whole = h.checked_next_multiple_of(T::LINE).unwrap_or(usize::MAX);
        let sizes = format_args!("B = {b}, L = {l}, H = {h}");
        check_memory("Conv::new", [b, l, whole, 8, 8, size_of::<T>()], sizes)?;
        let m = good_length(l);
        let tiles = h.div_ceil(T::LINE);
        // Enough items to keep a few workers busy when there are few channels, and samples that stay with a worker.
        let groups = 8usize.div_ceil(tiles).max(2).min(b);
        let scratch = (0..par::workers().min(tiles * b)).map(|_| Scratch::new(m, tiles)).collect();
        Ok(Self {
            b,
            l,
            h,
            fft: Fft::new(m),
            spectrum: Lines::new(tiles * 2 * m),
            kernel: None,
            groups,
            sums: None,
            scratch,
        })
    }

    /// Takes causal kernels K: `[H, Lk]`, 1 ≤ Lk ≤ L (shorter kernels are zero beyond Lk).
    pub fn set_kernel(&mut self, k: &[T]) -> Result<()> {
        self.load_kernel("Conv::set_kernel", k, None, false)
    }

    /// Takes K: `[2, H, Lk]`, causal and anti-causal: y_t = Σ_j K0_j u_{t−j} + Σ_j K1_j u_{t+1+j}.
    pub fn set_kernel_bidirectional(&mut self, k: &[T]) -> Result<()> {
        self.load_kernel("Conv::set_kernel_bidirectional", k, None, true)
    }

    /// Takes K: `[H, Lk]`, or `[2, H, Lk]` for both directions, and a skip D: `[H]`, which is part of the first causal
    /// tap: K * u + D·u = (K + D·δ₀) * u.
    pub(crate) fn load_kernel(
        &mut self,
        op: &'static str,
        k: &[T],
        skip: Option<&[T]>,
        both: bool,
    ) -> Result<()> {
        let halves = if both { 2 } else { 1 };
        let taps = k.len() / (halves * self.h);
        if taps == 0 || taps > self.l || k.len() != halves * self.h * taps {
            let shape = if both { "[2, H, 1..=L]" } else { "[H, 1..=L]" };
            let what = format!(
                "`k` must be {shape} with H = {} and L = {}, but has {} elements",
                self.h,
                self.l,
                k.len()
            );
            return Err(Error::Invalid { op, what });
        }
        self.kernel = Some((taps, both));
        let (fft, h, m) = (&self.fft, self.h, self.fft.m);
        let spectrum = Disjoint::new(self.spectrum.as_mut_slice());
        par::for_each(&mut self.scratch, h.div_ceil(T::LINE), |scratch, tile| {
            // SAFETY: tiles do not overlap.
            let x = unsafe { spectrum.part(tile * m * 2 * T::LINE, m * 2 * T::LINE) };
            let scale = T::from_f64(1.0 / m as f64);
            let Scratch { u: second, rows: [rows, _], .. } = scratch;
            let rows = rows.as_mut_slice();
            let channels = tile_channels::<T>(tile, h);
            let half =
                |half: usize| &k[(half * h + channels.start) * taps..][..channels.len() * taps];
            rows.fill(T::ZERO);
            transpose(half(0), taps, |t, lane, k| rows[t * T::LINE + lane] = k * scale);
            if let Some(skip) = skip {
                for (tap, &d) in rows.iter_mut().zip(&skip[channels.clone()]) {
                    *tap += d * scale;
                }
            }
            T::spectrum(Spectrum { fft, rows, x });
            if both {
                // z^{-1-j} = i·z^{M-1-j}
                rows.fill(T::ZERO);
                transpose(half(1), taps, |t, lane, k| {
                    rows[(m - 1 - t) * T::LINE + lane] = k * scale
                });
                let second = &mut second.as_mut_slice()[..x.len()];
                T::spectrum(Spectrum { fft, rows, x: second });
                for (x, second) in elements::<T>(x).zip(elements::<T>(second)) {
                    for lane in 0..T::LINE {
                        x[lane] += -second[T::LINE + lane];
                        x[T::LINE + lane] += second[lane];
                    }
                }
            }
        });
        Ok(())
    }

    /// y = K * u. u, y: `[B, L, H]`.
    pub fn forward(&mut self, u: &[T], y: &mut [T]) -> Result<()> {
        let op = "Conv::forward";
        let size = self.b * self.l * self.h;
        check_len(op, "u", "[B, L, H]", size, u.len())?;
        check_len(op, "y", "[B, L, H]", size, y.len())?;
        self.need_kernel(op)?;
        self.filter_samples(Input::plain(u), y);
        Ok(())
    }

    /// y = K * u of as many samples as the slices hold, at most B.
    pub(crate) fn filter_samples(&mut self, u: Input<'_, T>, y: &mut [T]) {
        let Self { l, h, fft, spectrum, scratch, .. } = self;
        let (l, h, m) = (*l, *h, fft.m);
        let b = u.x.len() / (l * h);
        let tiles = h.div_ceil(T::LINE);
        let spectrum = spectrum.as_slice();
        let y = Disjoint::new(y);
        let block = m * 2 * T::LINE;
        // Wide strips suit the memory, but every worker should have one.
        let wide = (b * tiles / scratch.len()).clamp(1, widest(m));
        let strips = tiles.div_ceil(wide);
        par::for_each(scratch, b * strips, |scratch, item| {
            let (sample, first) = (item / strips, item % strips * wide);
            for strip in Strip::cover::<T>(sample, first..tiles.min(first + wide), wide, l, h) {
                let spectrum = &spectrum[strip.tile * block..][..strip.lines * block];
                T::filter(Filter { fft, strip, u, spectrum, y: &y, scratch });
            }
        });
    }

    /// Given dy = ∂loss/∂y, writes du = ∂loss/∂u and dk = ∂loss/∂K for the u of the forward call.
    ///
    /// # Shapes
    /// u, dy, du: `[B, L, H]`; dk: like the kernel that was set.
    pub fn backward(&mut self, u: &[T], dy: &[T], du: &mut [T], dk: &mut [T]) -> Result<()> {
        let op = "Conv::backward";
        let size = self.b * self.l * self.h;
        check_len(op, "u", "[B, L, H]", size, u.len())?;
        check_len(op, "dy", "[B, L, H]", size, dy.len())?;
        check_len(op, "du", "[B, L, H]", size, du.len())?;
        let (taps, both) = self.need_kernel(op)?;
        let halves = if both { 2 } else { 1 };
        check_len(op, "dk", "that of the kernel", halves * self.h * taps, dk.len())?;
        self.adjoint_samples(Input::plain(u), dy, du, OutputMode::Write, true);
        self.kernel_gradient(dk);
        Ok(())
    }

    /// du of as many samples as the slices hold, at most B; their share of dK is added to the sums, which `first` clears.
    pub(crate) fn adjoint_samples(
        &mut self,
        u: Input<'_, T>,
        dy: &[T],
        du: &mut [T],
        how: OutputMode,
        first: bool,
    ) {
        let Self { l, h, fft, spectrum, groups, sums, scratch, .. } = self;
        let (l, h, m, groups) = (*l, *h, fft.m, *groups);
        let b = u.x.len() / (l * h);
        let tiles = h.div_ceil(T::LINE);
        let spectrum = spectrum.as_slice();
        let block = m * 2 * T::LINE;
        let sums = sums.get_or_insert_with(|| Lines::new(tiles * groups * 2 * m)).as_mut_slice();
        let shared = Disjoint::new(sums);
        let du = Disjoint::new(du);
        // A worker takes a run of tiles and walks it sample by sample: every tile is summed in the order of the samples,
        // however the tiles are shared out.
        let runs = scratch.len().min(tiles);
        par::for_each(scratch, runs * groups, |scratch, item| {
            let (group, run) = (item / runs, item % runs);
            let run = share(tiles, runs, run);
            if first {
                // SAFETY: a tile of a group belongs to one item.
                let sums =
                    unsafe { shared.part((group * tiles + run.start) * block, run.len() * block) };
                sums.fill(T::ZERO);
            }
            for sample in share(b, groups, group) {
                for strip in Strip::cover::<T>(sample, run.clone(), widest(m), l, h) {
                    let Strip { tile, lines, .. } = strip;
                    // SAFETY: a tile of a group belongs to one item.
                    let sum = unsafe { shared.part((group * tiles + tile) * block, lines * block) };
                    let spectrum = &spectrum[tile * block..][..lines * block];
                    T::adjoint(Adjoint { fft, strip, u, dy, spectrum, sum, du: &du, how, scratch });
                }
            }
        });
    }

    /// dk: like the kernel that was set, from the sums of the adjoint calls.
    pub(crate) fn kernel_gradient(&mut self, dk: &mut [T]) {
        let Self { h, fft, groups, sums, scratch, kernel, .. } = self;
        let (h, m, groups) = (*h, fft.m, *groups);
        let (taps, both) = kernel.expect("a kernel was set");
        let tiles = h.div_ceil(T::LINE);
        let block = m * 2 * T::LINE;
        let sums = sums.as_mut().expect("an adjoint call came before").as_mut_slice();
        let shared = Disjoint::new(sums);
        let dk = Disjoint::new(dk);
        par::for_each(scratch, tiles, |scratch, tile| {
            // SAFETY: tiles do not overlap.
            let sum = |group: usize| unsafe { shared.part((group * tiles + tile) * block, block) };
            let x = sum(0);
            for group in 1..groups {
                for (x, &o) in x.iter_mut().zip(&*sum(group)) {
                    *x += o;
                }
            }
            let scale = T::from_f64(1.0 / m as f64);
            let Scratch { u: copy, rows: [rows, _], .. } = scratch;
            let (copy, rows) = (&mut copy.as_mut_slice()[..block], rows.as_mut_slice());
            copy.copy_from_slice(x);
            T::inverse(Inverse { fft, x, rows });
            let channels = tile_channels::<T>(tile, h);
            // SAFETY: the rows of dk belong to one channel each, so to one tile.
            let half = |half: usize| unsafe {
                dk.part((half * h + channels.start) * taps, channels.len() * taps)
            };
            transpose_mut(half(0), taps, |t, lane| scale * rows[t * T::LINE + lane]);
            if both {
                // The imaginary part of z is the real part of -i·z.
                for x in elements::<T>(copy) {
                    for lane in 0..T::LINE {
                        (x[lane], x[T::LINE + lane]) = (x[T::LINE + lane], -x[lane]);
                    }
                }
                T::inverse(Inverse { fft, x: copy, rows });
                transpose_mut(half(1), taps, |t, lane| scale * rows[(m - 1 - t) * T::LINE + lane]);
            }
        });
    }

    fn need_kernel(&self, op: &'static str) -> Result<(usize, bool)> {
        self.kernel.ok_or_else(|| Error::Invalid {
            op,
            what: "no kernel yet: call set_kernel first".into(),
        })
    }
}

/// u: `[B, L, H]`, and what is done to it on the way in.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a, T> {
    pub x: &'a [T],
    /// u = (x − mean)·scale + shift: these three, `[H]` each.
    pub affine: Option<[&'a [T]; 3]>,
    /// Where u becomes zero, for each sample.
    pub lengths: Option<&'a [usize]>,
}

impl<'a, T> Input<'a, T> {
    fn plain(x: &'a [T]) -> Self {
        Self { x, affine: None, lengths: None }
    }
}

/// What is done with du.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum OutputMode {
    /// It is written, in all rows.
    Write,
    /// It is added to what is there, in the rows before each sample's length.
    Add,
}

/// The elements of a tile's spectrum: a line of real parts and a line of imaginary parts each.
fn elements<T: Real>(x: &mut [T]) -> std::slice::ChunksExactMut<'_, T> {
    x.chunks_exact_mut(2 * T::LINE)
}

/// Calls `put(t, lane, k[lane, t])`, in blocks of a cache line.
fn transpose<T: Real>(k: &[T], taps: usize, mut put: impl FnMut(usize, usize, T)) {
    for start in (0..taps).step_by(T::LINE) {
        for (lane, row) in k.chunks_exact(taps).enumerate() {
            for (t, &k) in row.iter().enumerate().skip(start).take(T::LINE) {
                put(t, lane, k);
            }
        }
    }
}

/// Sets `k[lane, t] = get(t, lane)`, in blocks of a cache line.
fn transpose_mut<T: Real>(k: &mut [T], taps: usize, get: impl Fn(usize, usize) -> T) {
    for start in (0..taps).step_by(T::LINE) {
        for (lane, row) in k.chunks_exact_mut(taps).enumerate() {
            for (t, k) in row.iter_mut().enumerate().skip(start).take(T::LINE) {
                *k = get(t, lane);
            }
        }
    }
}

/// The channels of a tile.
fn tile_channels<T: Real>(tile: usize, h: usize) -> std::ops::Range<usize> {
    tile * T::LINE..h.min((tile + 1) * T::LINE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wave(n: usize, seed: f64) -> Vec<f64> {
        (0..n).map(|i| ((i as f64 + 1.0) * (1.3 + seed)).sin() + 0.1 * seed).collect()
    }

    /// Forward and both gradients against the O(L²) sum, at awkward sizes.
    #[test]
    fn equals_the_direct_sum() {
        for (b, l, h, taps, halves) in [
            (1, 1, 1, 1, 1),
            (2, 2, 3, 2, 1),
            (3, 7, 8, 7, 2),
            (1, 37, 5, 37, 2),
            (2, 96, 17, 40, 1),
            (2, 97, 9, 13, 2),
            (1, 641, 2, 641, 1),
            (9, 130, 1, 130, 2),
            // Several strips, whole and narrow.
            (2, 9, 43, 9, 2),
            (2, 5, 77, 5, 1),
            // Deep enough to recurse.
            (1, 1500, 1, 1500, 2),
            (1, 2500, 9, 60, 1),
        ] {
            let u = wave(b * l * h, 0.1);
            let k = wave(halves * h * taps, 0.7);
            let g = wave(b * l * h, 0.4);
            let mut conv = Conv::<f64>::new(b, l, h).unwrap();
            if halves == 2 {
                conv.set_kernel_bidirectional(&k).unwrap();
            } else {
                conv.set_kernel(&k).unwrap();
            }
            let mut y = vec![0.0; u.len()];
            conv.forward(&u, &mut y).unwrap();
            let expected = convolve_direct(&u, &k, b, l, h, taps);
            let close = |a: &[f64], b: &[f64]| {
                let max = b.iter().fold(0f64, |m, x| m.max(x.abs()));
                a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-13 * max)
            };
            assert!(close(&y, &expected), "y at {:?}", (b, l, h, taps, halves));
            let (mut du, mut dk) = (vec![0.0; u.len()], vec![0.0; k.len()]);
            conv.backward(&u, &g, &mut du, &mut dk).unwrap();
            // The map is bilinear: its derivative along a unit vector is its value there.
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            let unit = |n: usize, i: usize| {
                let mut e = vec![0.0; n];
                e[i] = 1.0;
                e
            };
            let max = |x: &[f64]| x.iter().fold(0f64, |m, x| m.max(x.abs()));
            for i in (0..u.len()).step_by(u.len() / 7 + 1) {
                let along = convolve_direct(&unit(u.len(), i), &k, b, l, h, taps);
                assert!((du[i] - dot(&along, &g)).abs() < 1e-12 * max(&du), "du[{i}]");
            }
            for i in (0..k.len()).step_by(k.len() / 7 + 1) {
                let along = convolve_direct(&u, &unit(k.len(), i), b, l, h, taps);
                assert!((dk[i] - dot(&along, &g)).abs() < 1e-12 * max(&dk), "dk[{i}]");
            }
        }
    }

    #[test]
    fn refuses_wrong_shapes() {
        assert!(Conv::<f32>::new(0, 1, 1).is_err());
        assert!(Conv::<f32>::new(1, usize::MAX, 1).is_err());
        assert!(Conv::<f32>::new(1, 1, usize::MAX).is_err());
        assert!(Conv::<f64>::new(1 << 30, 1 << 30, 7).is_err());
        let mut conv = Conv::<f32>::new(1, 4, 2).unwrap();
        let mut y = [0.0; 8];
        assert!(conv.forward(&[0.0; 8], &mut y).is_err(), "no kernel yet");
        assert!(conv.set_kernel(&[0.0; 10]).is_err(), "longer than L");
        assert!(conv.set_kernel(&[0.0; 7]).is_err(), "not a multiple of H");
        conv.set_kernel(&[0.0; 8]).unwrap();
        assert!(conv.forward(&[0.0; 7], &mut y).is_err());
    }
}
