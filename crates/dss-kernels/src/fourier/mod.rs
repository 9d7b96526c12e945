//! Fourier mixing (FNet, Lee-Thorp et al. 2021, Eq. 3): y = Re(F_N·u·F_H) over positions and channels of [B, L, H].
//!
//! $$ y_{lh} = \sum_{t<N} \sum_{c<H} u_{tc} \cos 2π\left(\frac{tl}{N} + \frac{ch}{H}\right) $$
//!
//! ```text
//! y_lh = Σ_t Σ_c u_tc·cos 2π(tl/N + ch/H)
//! ```
//!
//! N ≥ L is the length of the transform: u counts as 0 from a sequence's length on, and y is written up to there, so
//! that a sequence's answer does not depend on its padding. The map is its own adjoint: du = Re(F_N·dy·F_H), with the
//! same zeros.
//!
//! # A quarter of the work
//!
//! The full complex transform has L transforms of length H and H of length N. Indices are modulo N and H. With the rows
//! t and −t as one complex row, one transform of length H serves both:
//!
//! ```text
//! Z = F_H((u_t + u_−t) + i(u_t − u_−t)),   r_h[t] = Re Z[−h]/2,   r_h[−t] = Re Z[h]/2
//! ```
//!
//! `r_h[t] = ½Re(û_t + û_−t)[h] + ½Im(û_t − û_−t)[h]`, û = F_H·u, has the property that column h of y is its Hartley
//! transform, `y_lh = Re R_h[l] − Im R_h[l]`, R_h = F_N·r_h. Two columns r_g and r_h are the real and imaginary parts of one
//! complex transform W of length N:
//!
//! ```text
//! 2·y_lg = Re W[l] + Re W[−l] − Im W[l] + Im W[−l],   2·y_lh = Im W[l] + Im W[−l] + Re W[l] − Re W[−l]
//! ```
//!
//! And y_{l,−h} = y_{−l,h}: the columns up to H/2 suffice. That leaves N/2 transforms of length H and H/4 of length N.
//!
//! # Which sizes are fast
//!
//! N and H without large prime factors.

mod columns;
mod reference;
mod rows;

use crate::error::{Error, Result, check_len, check_memory};
use crate::lines::Lines;
use crate::par::{self, Disjoint};
use crate::real::{Real, Transform};
use num_complex::Complex;

pub use reference::fourier_reference;

/// Sizes of a Fourier mixing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FourierConfig {
    /// Length N of the transform over positions.
    pub len: usize,
    /// Channels H.
    pub channels: usize,
}

/// Plan and buffers of Fourier mixing (see the [module](self)).
///
/// Results are equal bit for bit whatever the number of threads and sequences.
///
/// ```
/// use dss_kernels::fourier::{Fourier, FourierConfig};
/// let mut fourier = Fourier::<f64>::new(FourierConfig { len: 2, channels: 1 })?;
/// let mut y = [0.0; 2];
/// fourier.forward(&[3.0, 1.0], [1, 2], None, &mut y)?;
/// assert_eq!(y, [4.0, 2.0]);
/// # Ok::<(), dss_kernels::Error>(())
/// ```
pub struct Fourier<T: Real> {
    config: FourierConfig,
    /// F_H and F_N.
    over_channels: Box<dyn Transform<T>>,
    over_positions: Box<dyn Transform<T>>,
    scratches: Vec<Scratch<T>>,
}

/// Buffers of one worker.
struct Scratch<T: Real> {
    /// Blocks of complex rows, and what their transform works with.
    z: Vec<Complex<T>>,
    work: Vec<Complex<T>>,
    /// r of one sequence: [H/2 + 1, N].
    r: Lines<T>,
}

/// One sequence: u and y [L, H], of which the first ℓ rows count.
struct Sequence<'a, T> {
    u: &'a [T],
    y: &'a Disjoint<'a, T>,
    /// Where y begins.
    start: usize,
    visible: usize,
}

impl<T: Real> Fourier<T> {
    /// A plan; its buffers are allocated by the first call.
    pub fn new(config: FourierConfig) -> Result<Self> {
        let op = "Fourier::new";
        let FourierConfig { len, channels } = config;
        if len == 0 || channels == 0 {
            let what = format!("N and H must be at least 1, but are {len} and {channels}");
            return Err(Error::Invalid { op, what });
        }
        // Blocks of rows or columns, or r.
        let factors = [len, channels, 2 * rows::ROWS * size_of::<Complex<f64>>()];
        check_memory(op, factors, format_args!("N = {len} and H = {channels}"))?;
        let (over_channels, over_positions) = (T::transform(channels), T::transform(len));
        Ok(Self { config, over_channels, over_positions, scratches: Vec::new() })
    }

    /// The sizes of this plan.
    pub fn config(&self) -> &FourierConfig {
        &self.config
    }

    /// y = Re(F_N·u·F_H) of B sequences of L ≤ N positions; also u's gradient, given that of y as u.
    ///
    /// # Shapes
    /// u, y: `[B, L, H]`; lengths: `[B]`, at most L; L where absent.
    pub fn forward(
        &mut self,
        u: &[T],
        [batch, len]: [usize; 2],
        lengths: Option<&[usize]>,
        y: &mut [T],
    ) -> Result<()> {
        let op = "Fourier::forward";
        let h = self.config.channels;
        let size = batch.checked_mul(len).and_then(|rows| rows.checked_mul(h));
        let Some(size) = size.filter(|_| len <= self.config.len) else {
            let what = format!(
                "sequences may have up to N = {} positions, but L is {len}",
                self.config.len
            );
            return Err(Error::Invalid { op, what });
        };
        check_len(op, "u", "[B, L, H]", size, u.len())?;
        check_len(op, "y", "[B, L, H]", size, y.len())?;
        if let Some(lengths) = lengths {
            check_len(op, "lengths", "[B]", batch, lengths.len())?;
            if let Some(length) = lengths.iter().find(|&&length| length > len) {
                let what = format!("a length is {length}, but L is {len}");
                return Err(Error::Invalid { op, what });
            }
        }
        if size == 0 {
            return Ok(());
        }
        let mut scratches = std::mem::take(&mut self.scratches);
        if scratches.is_empty() {
            scratches.extend((0..par::workers()).map(|_| self.scratch()));
        }
        let y = Disjoint::new(y);
        let sequence = |b: usize| {
            let visible = lengths.map_or(len, |lengths| lengths[b]);
            Sequence { u: &u[b * len * h..][..len * h], y: &y, start: b * len * h, visible }
        };
        if batch > 1 {
            par::for_each(&mut scratches, batch, |scratch, b| {
                let Scratch { z, work, r } = scratch;
                let (sequence, r) = (sequence(b), Disjoint::new(r));
                (0..self.row_blocks()).for_each(|block| self.rows(&sequence, block, z, work, &r));
                for block in 0..self.column_blocks() {
                    self.columns(&sequence, block, z, work, &r);
                }
            });
        } else {
            // The blocks of one sequence are shared out.
            let mut r = std::mem::replace(&mut scratches[0].r, Lines::new(1));
            {
                let (sequence, r) = (sequence(0), Disjoint::new(&mut r));
                par::for_each(&mut scratches, self.row_blocks(), |scratch, block| {
                    self.rows(&sequence, block, &mut scratch.z, &mut scratch.work, &r);
                });
                par::for_each(&mut scratches, self.column_blocks(), |scratch, block| {
                    self.columns(&sequence, block, &mut scratch.z, &mut scratch.work, &r);
                });
            }
            scratches[0].r = r;
        }
        self.scratches = scratches;
        for b in 0..batch {
            let Sequence { y, start, visible, .. } = sequence(b);
            // SAFETY: the workers are done.
            unsafe { y.part(start + visible * h, (len - visible) * h) }.fill(T::ZERO);
        }
        Ok(())
    }

    fn scratch(&self) -> Scratch<T> {
        let FourierConfig { len, channels } = self.config;
        let zero = Complex::new(T::ZERO, T::ZERO);
        let z = (rows::ROWS * channels).max(columns::PAIRS * len);
        let work = self.over_channels.scratch_len().max(self.over_positions.scratch_len());
        let r = Lines::new(((channels / 2 + 1) * len).div_ceil(T::LINE));
        Scratch { z: vec![zero; z], work: vec![zero; work], r }
    }
}
