//! Causal convolution y = K * u (Eq. 5) over [B, L, H], and its backward.
//!
//! Right-angle form (see `fft.rs`): one complex FFT of length M ≥ L per channel, vectorised across the channels of a
//! cache line. dK is summed over the batch as a spectrum, with one inverse at the end.
//!
//! The bidirectional form costs the same. Modulo z^M + i the anti-causal tap z^{-1-j} is i·z^{M-1-j}: the second kernel,
//! reversed, is the imaginary part of one complex kernel.

mod direct;
pub(crate) mod fft;

use crate::error::{Error, Result, check_len};
use crate::lines::Lines;
use crate::par::{self, Disjoint};
use crate::real::{CV, Real, dispatch};
use fft::{Fft, Leaf, good_length, load, store};
use pulp::{Simd, WithSimd};

pub use direct::convolve_direct;

/// Plan and buffers of the convolution of [B, L, H] inputs with per-channel kernels.
///
/// After [`Conv::new`] nothing allocates. Any L works; the transform runs at the next length of the form
/// 2^a, 3·2^a or 5·2^a. H is processed in tiles of one cache line (16 channels of f32, 8 of f64): multiples are fast.
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
    /// Sums over a batch group of conj(û)·dŷ: [tiles, groups, M] elements; made by the first backward.
    sums: Option<Lines<T>>,
    scratch: Vec<Scratch<T>>,
}

struct Scratch<T: Real> {
    /// M elements each.
    x: Lines<T>,
    u: Lines<T>,
    /// A tile's rows where they have to be gathered: [M, LINE] each.
    rows: [Lines<T>; 2],
}

impl<T: Real> Conv<T> {
    /// A plan for inputs of shape [B, L, H].
    pub fn new(b: usize, l: usize, h: usize) -> Result<Self> {
        if b == 0 || l == 0 || h == 0 {
            let what = format!("B, L and H must be at least 1, but are {b}, {l} and {h}");
            return Err(Error::Invalid { op: "Conv::new", what });
        }
        let m = good_length(l);
        let tiles = h.div_ceil(T::LINE);
        // Enough items to keep a few workers busy when there are few channels.
        let groups = 8usize.div_ceil(tiles).min(b);
        let scratch = (0..par::workers().min(tiles * b))
            .map(|_| Scratch {
                x: Lines::new(2 * m),
                u: Lines::new(2 * m),
                rows: [Lines::new(m), Lines::new(m)],
            })
            .collect();
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

    /// Length of the transform: the smallest 2^a, 3·2^a or 5·2^a that is at least L.
    pub fn transform_length(&self) -> usize {
        self.fft.m
    }

    /// Takes causal kernels K: [H, Lk], 1 ≤ Lk ≤ L (shorter kernels are zero beyond Lk).
    pub fn set_kernel(&mut self, k: &[T]) -> Result<()> {
        self.load_kernel("Conv::set_kernel", k, false)
    }

    /// Takes K: [2, H, Lk]: y_t = Σ_j K[0]_j u_{t−j} + Σ_j K[1]_j u_{t+1+j}.
    pub fn set_kernel_bidirectional(&mut self, k: &[T]) -> Result<()> {
        self.load_kernel("Conv::set_kernel_bidirectional", k, true)
    }

    fn load_kernel(&mut self, op: &'static str, k: &[T], both: bool) -> Result<()> {
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
            dispatch(Spectrum { fft, rows, x });
            if both {
                // z^{-1-j} = i·z^{M-1-j}
                rows.fill(T::ZERO);
                transpose(half(1), taps, |t, lane, k| {
                    rows[(m - 1 - t) * T::LINE + lane] = k * scale
                });
                let second = second.as_mut_slice();
                dispatch(Spectrum { fft, rows, x: second });
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

    /// y = K * u. u, y: [B, L, H].
    pub fn forward(&mut self, u: &[T], y: &mut [T]) -> Result<()> {
        let op = "Conv::forward";
        let size = self.b * self.l * self.h;
        check_len(op, "u", "[B, L, H]", size, u.len())?;
        check_len(op, "y", "[B, L, H]", size, y.len())?;
        self.need_kernel(op)?;
        let Self { b, l, h, fft, spectrum, scratch, .. } = self;
        let (b, l, h, m) = (*b, *l, *h, fft.m);
        let tiles = h.div_ceil(T::LINE);
        let spectrum = spectrum.as_slice();
        let y = Disjoint::new(y);
        par::for_each(scratch, b * tiles, |scratch, item| {
            let (sample, tile) = (item / tiles, item % tiles);
            let spectrum = &spectrum[tile * m * 2 * T::LINE..][..m * 2 * T::LINE];
            let tile = Tile::new::<T>(sample, tile, l, h);
            dispatch(Filter { fft, tile, u, spectrum, y: &y, scratch });
        });
        Ok(())
    }

    /// Given dy = ∂loss/∂y, writes du = ∂loss/∂u and dk = ∂loss/∂K for the u of the forward call.
    ///
    /// # Shapes
    /// u, dy, du: [B, L, H]; dk: like the kernel that was set.
    pub fn backward(&mut self, u: &[T], dy: &[T], du: &mut [T], dk: &mut [T]) -> Result<()> {
        let op = "Conv::backward";
        let size = self.b * self.l * self.h;
        check_len(op, "u", "[B, L, H]", size, u.len())?;
        check_len(op, "dy", "[B, L, H]", size, dy.len())?;
        check_len(op, "du", "[B, L, H]", size, du.len())?;
        let (taps, both) = self.need_kernel(op)?;
        let halves = if both { 2 } else { 1 };
        check_len(op, "dk", "that of the kernel", halves * self.h * taps, dk.len())?;
        let Self { b, l, h, fft, spectrum, groups, sums, scratch, .. } = self;
        let (b, l, h, m, groups) = (*b, *l, *h, fft.m, *groups);
        let tiles = h.div_ceil(T::LINE);
        let spectrum = spectrum.as_slice();
        let block = m * 2 * T::LINE;
        let sums = sums.get_or_insert_with(|| Lines::new(tiles * groups * 2 * m)).as_mut_slice();
        let shared = Disjoint::new(sums);
        let du = Disjoint::new(du);
        // A worker takes a run of tiles and walks it sample by sample: its pages stay in the TLB, and every tile is
        // summed in the order of the samples, however the tiles are shared out.
        let runs = scratch.len().min(tiles);
        par::for_each(scratch, runs * groups, |scratch, item| {
            let (group, run) = (item / runs, item % runs);
            for sample in share(b, groups, group) {
                for tile in share(tiles, runs, run) {
                    // SAFETY: (tile, group) pairs belong to one item each.
                    let sum = unsafe { shared.part((tile * groups + group) * block, block) };
                    if sample == share(b, groups, group).start {
                        sum.fill(T::ZERO);
                    }
                    let spectrum = &spectrum[tile * block..][..block];
                    let tile = Tile::new::<T>(sample, tile, l, h);
                    dispatch(Adjoint { fft, tile, u, dy, spectrum, sum, du: &du, scratch });
                }
            }
        });
        let shared = Disjoint::new(sums);
        let dk = Disjoint::new(dk);
        par::for_each(scratch, tiles, |scratch, tile| {
            // SAFETY: tiles do not overlap.
            let sums = unsafe { shared.part(tile * groups * block, groups * block) };
            let (x, rest) = sums.split_at_mut(block);
            for other in rest.chunks_exact(block) {
                for (x, &o) in x.iter_mut().zip(other) {
                    *x += o;
                }
            }
            let scale = T::from_f64(1.0 / m as f64);
            let Scratch { u: copy, rows: [rows, _], .. } = scratch;
            let (copy, rows) = (copy.as_mut_slice(), rows.as_mut_slice());
            copy.copy_from_slice(x);
            dispatch(Inverse { fft, x, rows });
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
                dispatch(Inverse { fft, x: copy, rows });
                transpose_mut(half(1), taps, |t, lane| scale * rows[(m - 1 - t) * T::LINE + lane]);
            }
        });
        Ok(())
    }

    fn need_kernel(&self, op: &'static str) -> Result<(usize, bool)> {
        self.kernel.ok_or_else(|| Error::Invalid {
            op,
            what: "no kernel yet: call set_kernel first".into(),
        })
    }
}

/// Share `i` of `n` things in `shares` contiguous shares.
fn share(n: usize, shares: usize, i: usize) -> std::ops::Range<usize> {
    i * n / shares..(i + 1) * n / shares
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

/// Up to `T::LINE` channels of one sample: rows `start + t·h` of [B, L, H], t < l.
#[derive(Clone, Copy)]
struct Tile {
    start: usize,
    width: usize,
    l: usize,
    h: usize,
}

impl Tile {
    fn new<T: Real>(sample: usize, tile: usize, l: usize, h: usize) -> Self {
        let channels = tile_channels::<T>(tile, h);
        Self { start: sample * l * h + channels.start, width: channels.len(), l, h }
    }

    fn is_full<T: Real>(&self) -> bool {
        self.width == T::LINE
    }

    /// Where the rows start, and their stride: in `u` itself, or gathered into `rows` where the tile is narrow.
    fn rows<T: Real>(&self, u: &[T], rows: &mut Lines<T>) -> (*const T, usize) {
        let last = self.start + (self.l - 1) * self.h + self.width;
        assert!(last <= u.len());
        if self.is_full::<T>() {
            return (u[self.start..].as_ptr(), self.h);
        }
        let rows = rows.as_mut_slice();
        for t in 0..self.l {
            let row = &u[self.start + t * self.h..][..self.width];
            rows[t * T::LINE..][..self.width].copy_from_slice(row);
        }
        (rows.as_ptr(), T::LINE)
    }

    /// Where to write the rows of a result, and their stride.
    fn rows_out<T: Real>(&self, y: &Disjoint<T>, rows: &mut Lines<T>) -> (*mut T, usize) {
        if self.is_full::<T>() {
            let span = (self.l - 1) * self.h + self.width;
            return (y.pointer(self.start, span), self.h);
        }
        (rows.as_mut_slice().as_mut_ptr(), T::LINE)
    }

    /// Moves the rows of a narrow tile to their place.
    ///
    /// # Safety
    /// No other worker may touch this tile's elements of `y`.
    unsafe fn finish<T: Real>(&self, y: &Disjoint<T>, rows: &Lines<T>) {
        if self.is_full::<T>() {
            return;
        }
        for t in 0..self.l {
            // SAFETY: the caller's promise.
            let row = unsafe { y.part(self.start + t * self.h, self.width) };
            row.copy_from_slice(&rows.as_slice()[t * T::LINE..][..self.width]);
        }
    }
}

/// y = T⁻¹(K̂ · T u) of one tile.
struct Filter<'a, T: Real> {
    fft: &'a Fft<T>,
    tile: Tile,
    u: &'a [T],
    spectrum: &'a [T],
    y: &'a Disjoint<'a, T>,
    scratch: &'a mut Scratch<T>,
}

impl<T: Real> WithSimd for Filter<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) {
        struct Times<'a, T>(&'a [T]);
        impl<T: Real> Leaf<T> for Times<'_, T> {
            #[inline(always)]
            unsafe fn map<S: Simd>(&mut self, s: S, i: usize, v: usize, x: CV<T, S>) -> CV<T, S> {
                // SAFETY: the spectrum has M elements.
                x.mul(s, unsafe { load(self.0.as_ptr().add(i * 2 * T::LINE + v)) })
            }
        }
        let Self { fft, tile, u, spectrum, y, scratch } = self;
        assert_eq!(spectrum.len(), fft.m * 2 * T::LINE);
        let Scratch { x, rows: [rows_in, rows_out], .. } = scratch;
        let src = tile.rows(u, rows_in);
        let dst = tile.rows_out(y, rows_out);
        let x = x.as_mut_slice().as_mut_ptr();
        // SAFETY: `rows` and `rows_out` checked l rows of a line each; x has M elements; one worker per tile.
        unsafe {
            fft.filter_rows(s, src, tile.l, dst, x, &mut Times(spectrum));
            tile.finish(y, rows_out);
        }
    }
}

/// du = T⁻¹(conj(K̂) · T dy) and sum += conj(T u) · T dy of one tile.
struct Adjoint<'a, T: Real> {
    fft: &'a Fft<T>,
    tile: Tile,
    u: &'a [T],
    dy: &'a [T],
    spectrum: &'a [T],
    sum: &'a mut [T],
    du: &'a Disjoint<'a, T>,
    scratch: &'a mut Scratch<T>,
}

impl<T: Real> WithSimd for Adjoint<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) {
        struct Correlate<'a, T> {
            /// û, being written block by block ahead of the leaves.
            u: *const T,
            k: &'a [T],
            sum: &'a mut [T],
        }
        impl<T: Real> Leaf<T> for Correlate<'_, T> {
            #[inline(always)]
            unsafe fn map<S: Simd>(&mut self, s: S, i: usize, v: usize, x: CV<T, S>) -> CV<T, S> {
                let at = i * 2 * T::LINE + v;
                // SAFETY: u, k and sum have M elements each.
                unsafe {
                    let sum = self.sum.as_mut_ptr().add(at);
                    let product = x.mul_conj(s, load(self.u.add(at)));
                    store(sum, load::<T, S>(sum).add(s, product));
                    x.mul_conj(s, load(self.k.as_ptr().add(at)))
                }
            }
        }
        let Self { fft, tile, u, dy, spectrum, sum, du, scratch } = self;
        let size = fft.m * 2 * T::LINE;
        assert!(spectrum.len() == size && sum.len() == size);
        let Scratch { x, u: u_hat, rows: [u_rows, dy_rows] } = scratch;
        let u = tile.rows(u, u_rows);
        let dy = tile.rows(dy, dy_rows);
        // The rows of dy are read before those of du are written.
        let dst = tile.rows_out(du, dy_rows);
        let u_hat = u_hat.as_mut_slice().as_mut_ptr();
        let x = x.as_mut_slice().as_mut_ptr();
        // SAFETY: `rows` and `rows_out` checked l rows of a line each; x and û have M elements; one worker per tile.
        unsafe {
            let leaf = &mut Correlate { u: u_hat, k: spectrum, sum };
            fft.correlate_rows(s, u, dy, tile.l, dst, u_hat, x, leaf);
            tile.finish(du, dy_rows);
        }
    }
}

/// Twisted spectrum of the M rows of a tile.
struct Spectrum<'a, T> {
    fft: &'a Fft<T>,
    rows: &'a [T],
    x: &'a mut [T],
}

impl<T: Real> WithSimd for Spectrum<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) {
        let Self { fft, rows, x } = self;
        assert!(rows.len() == fft.m * T::LINE && x.len() == 2 * fft.m * T::LINE);
        // SAFETY: M rows and M elements.
        unsafe { fft.forward_rows(s, rows.as_ptr(), T::LINE, fft.m, x.as_mut_ptr()) }
    }
}

/// M times the real part of the inverse of a tile's spectrum.
struct Inverse<'a, T> {
    fft: &'a Fft<T>,
    x: &'a mut [T],
    rows: &'a mut [T],
}

impl<T: Real> WithSimd for Inverse<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) {
        let Self { fft, x, rows } = self;
        assert!(rows.len() == fft.m * T::LINE && x.len() == 2 * fft.m * T::LINE);
        // SAFETY: M rows and M elements.
        unsafe { fft.inverse_rows(s, x.as_mut_ptr(), rows.as_mut_ptr(), T::LINE, fft.m) }
    }
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
            for i in (0..u.len()).step_by(u.len() / 11 + 1) {
                let along = convolve_direct(&unit(u.len(), i), &k, b, l, h, taps);
                assert!((du[i] - dot(&along, &g)).abs() < 1e-11, "du[{i}]");
            }
            for i in (0..k.len()).step_by(k.len() / 11 + 1) {
                let along = convolve_direct(&u, &unit(k.len(), i), b, l, h, taps);
                assert!((dk[i] - dot(&along, &g)).abs() < 1e-11, "dk[{i}]");
            }
        }
    }

    #[test]
    fn refuses_wrong_shapes() {
        assert!(Conv::<f32>::new(0, 1, 1).is_err());
        let mut conv = Conv::<f32>::new(1, 4, 2).unwrap();
        let mut y = [0.0; 8];
        assert!(conv.forward(&[0.0; 8], &mut y).is_err(), "no kernel yet");
        assert!(conv.set_kernel(&[0.0; 10]).is_err(), "longer than L");
        assert!(conv.set_kernel(&[0.0; 7]).is_err(), "not a multiple of H");
        conv.set_kernel(&[0.0; 8]).unwrap();
        assert!(conv.forward(&[0.0; 7], &mut y).is_err());
    }
}
