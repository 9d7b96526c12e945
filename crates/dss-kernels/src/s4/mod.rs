//! S4 (Gu, Goel, Ré, *Efficiently Modeling Long Sequences with Structured State Spaces*, 2022): the system the paper
//! compares with. A diagonal plus low-rank state matrix, kernels K: [C, H, L] forward and backward, and the recurrence.
//!
//! A = Λ − PP* with Λ diagonal, discretised by the bilinear rule (Tustin):
//! Ā = (I − ΔA/2)⁻¹(I + ΔA/2), B̄ = (I − ΔA/2)⁻¹ΔB, K_l = C Ā^l B̄. All vectors come in conjugate pairs, of which one
//! half is stored: for C, K_l = 2 Re Σ_n C_n (Ā^l B̄)_n over N/2 modes.
//!
//! The kernel is made in the frequency domain. Its generating function, cut after L taps,
//!
//! K̂(ω) = Σ_{l<L} K_l ω^l = C(I − Ā^L ω^L)(I − Āω)⁻¹B̄ = C̃(I − Āω)⁻¹B̄ at ω^L = 1,   C̃ = C(I − Ā^L)
//!
//! is a resolvent of A; by the Woodbury identity four of Λ (`woodbury.rs`), each a Cauchy sum over modes (`cauchy.rs`);
//! the taps follow by one inverse FFT (`spectrum.rs`). C̃ is what is stored and trained; [`correct_length`] makes it.
//!
//! ```
//! use dss_kernels::s4::{Kernel, KernelConfig, Params, Recurrence, correct_length};
//! use dss_kernels::init;
//! # use rand_chacha::rand_core::SeedableRng;
//! # fn main() -> dss_kernels::Result<()> {
//! # let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
//! let (h, n, l) = (2, 8, 100);
//! let legs = init::nplr_legs(n)?;
//! let flat = |x: &[dss_kernels::C64]| x.iter().flat_map(|z| [z.re, z.im]).collect::<Vec<f64>>();
//! let lambda_re: Vec<f64> = legs.lambda.iter().map(|z| (-z.re).ln()).collect();
//! let lambda_im: Vec<f64> = legs.lambda.iter().map(|z| z.im).collect();
//! let (p, b) = (flat(&legs.p), flat(&legs.b));
//! let c = init::s4_c(1, h, n / 2, &mut rng);
//! let delta_log = init::delta_log(h, init::DT_MIN, init::DT_MAX, &mut rng)?;
//!
//! let config = KernelConfig::new(h, n, l);
//! let (lambda_re, lambda_im, p, b, delta_log) = (&lambda_re[..], &lambda_im[..], &p[..], &b[..], &delta_log[..]);
//! let c = correct_length(&config, &Params { lambda_re, lambda_im, p, b, c: &c, delta_log })?;
//! let params = Params { lambda_re, lambda_im, p, b, c: &c, delta_log };
//! let mut k = vec![0.0; h * l];
//! Kernel::new(config)?.forward(&params, &mut k)?;
//!
//! // The answer of the recurrence to an impulse is the kernel.
//! let model = Recurrence::new(config, &params)?;
//! let mut state = model.state();
//! let mut y = [0.0; 2];
//! for t in 0..l {
//!     let impulse = if t == 0 { 1.0 } else { 0.0 };
//!     model.step(&mut state, &[impulse; 2], &mut y)?;
//!     assert!((y[0] - k[t]).abs() < 1e-12 && (y[1] - k[l + t]).abs() < 1e-12);
//! }
//! # Ok(())
//! # }
//! ```

mod cauchy;
mod discrete;
mod length;
mod modes;
mod params;
mod powers;
mod recurrence;
mod reference;
mod rows;
mod spectrum;
mod woodbury;

use crate::complex::C64;
use crate::error::{Result, check_len};
use crate::par::{self, Disjoint};
use crate::real::Real;
use cauchy::Cauchy;
use modes::{Channel, Mode, Shared, SharedGrad};
use params::{log_slope, put_complex};
use rows::{BLOCK, Rows};
use spectrum::{RealFft, frequencies};

pub use length::{change_length, correct_length, uncorrect_length};
pub use params::{KernelConfig, LOG_LIMIT, ParamGrads, Params};
pub use recurrence::{Recurrence, S4State};
pub use reference::kernel_dense;

/// Plan and buffers for the kernels of one S4 layer.
///
/// Time O(C·H·N·L), memory O(N + C·L) per worker next to the result. After [`Kernel::new`] nothing allocates.
///
/// Everything is computed in f64, for f32 parameters too: near a resonance of Λ the Woodbury identity is a small
/// difference of large numbers, and the gradient of Λ loses twice as many digits. f32 results are the f64 ones, rounded.
///
/// Any length works; those of small prime factors are fast. Finite parameters give finite kernels: |Δ_log| and |Λ_re|
/// beyond [`LOG_LIMIT`] count as the limit, with zero gradient; kernels and gradients beyond the range of `T` saturate.
pub struct Kernel<T> {
    config: KernelConfig,
    /// y of each block of frequencies, the last one padded with 0.
    y: Vec<[f64; BLOCK]>,
    fft: RealFft,
    shared: Shared,
    scratch: Vec<Scratch>,
    /// `[H, N/2]`: each feature's share of the gradients of Λ, P and B, summed in the order of the features.
    shares: Vec<SharedGrad>,
    precision: std::marker::PhantomData<T>,
}

struct Scratch {
    channel: Channel,
    cauchy: Cauchy,
    /// `[rows]`: U and V of the four resolvents, and their gradients.
    sums: Rows,
    g_sums: Rows,
    /// `[C]`: one block of K̂ or of its gradient.
    block: Rows,
    /// `[C, L/2 + 1]`: K̂ or its gradient.
    spectrum: Vec<C64>,
    /// `[C]`: the gradient of K̂ at ω = −1.
    g_minus_one: Vec<f64>,
    fft: spectrum::Buffers,
}

impl Scratch {
    fn new(config: &KernelConfig, fft: &RealFft) -> Self {
        let rows = woodbury::rows(config.channels);
        Self {
            channel: Channel::new(config),
            cauchy: Cauchy::new(config.pairs(), rows),
            sums: Rows::new(rows),
            g_sums: Rows::new(rows),
            block: Rows::new(config.channels),
            spectrum: vec![C64::ZERO; config.channels * (config.norm_len / 2 + 1)],
            g_minus_one: vec![0.0; config.channels],
            fft: fft.buffers(),
        }
    }

    /// U and V of all resolvents at a block of frequencies.
    fn resolvents(&mut self, y: &[f64; BLOCK]) {
        self.cauchy.set(&self.channel.w, y);
        self.cauchy.sums(&self.channel.coefficients, &mut self.sums);
    }
}

impl<T: Real> Kernel<T> {
    /// A plan for kernels of this size.
    pub fn new(config: KernelConfig) -> Result<Self> {
        config.validate("s4::Kernel::new")?;
        let fft = RealFft::new(config.norm_len);
        let mut y = Vec::new();
        for values in frequencies(config.norm_len).chunks(BLOCK) {
            let mut block = [0.0; BLOCK];
            block[..values.len()].copy_from_slice(values);
            y.push(block);
        }
        let workers = par::workers().min(config.h);
        Ok(Self {
            y,
            shared: Shared::with_capacity(&config),
            scratch: (0..workers).map(|_| Scratch::new(&config, &fft)).collect(),
            shares: vec![SharedGrad::default(); config.h * config.pairs()],
            fft,
            config,
            precision: std::marker::PhantomData,
        })
    }

    /// The variant and sizes of this plan.
    pub fn config(&self) -> &KernelConfig {
        &self.config
    }

    /// Computes K: `[C, H, L]`.
    pub fn forward(&mut self, params: &Params<T>, k: &mut [T]) -> Result<()> {
        let op = "s4::Kernel::forward";
        let config = self.config;
        params.validate(op, &config)?;
        let KernelConfig { channels, h: features, len, norm_len, .. } = config;
        check_len(op, "k", "[C, H, L]", channels * features * len, k.len())?;
        self.shared.set(params);
        let (shared, fft, frequencies) = (&self.shared, &self.fft, &self.y);
        let (width, regular) = (norm_len / 2 + 1, norm_len.div_ceil(2));
        let k = Disjoint::new(k);
        par::for_each(&mut self.scratch, features, |scratch, h| {
            scratch.channel.set(&config, shared, params, h);
            for (index, y) in frequencies.iter().enumerate() {
                scratch.resolvents(y);
                woodbury::spectrum(scratch.sums.get(), y, scratch.block.get_mut());
                let start = index * BLOCK;
                for ([re, im], spectrum) in
                    scratch.block.get().iter().zip(scratch.spectrum.chunks_exact_mut(width))
                {
                    let to = &mut spectrum[start..regular.min(start + BLOCK)];
                    for ((to, &re), &im) in to.iter_mut().zip(re).zip(im) {
                        *to = C64::new(re, im);
                    }
                }
            }
            for (channel, spectrum) in scratch.spectrum.chunks_exact_mut(width).enumerate() {
                if regular < width {
                    spectrum[regular] = C64::from(scratch.channel.at_minus_one(channel));
                }
                // SAFETY: rows belong to one feature h each.
                let row = unsafe { k.part((channel * features + h) * len, len) };
                fft.taps(spectrum, &mut scratch.fft, |l, value| {
                    if let Some(k) = row.get_mut(l) {
                        *k = T::from_f64(value);
                    }
                });
            }
        });
        Ok(())
    }

    /// Given dk = ∂loss/∂K: `[C, H, L]`, writes the gradients of all parameters.
    pub fn backward(&mut self, params: &Params<T>, dk: &[T], grads: ParamGrads<T>) -> Result<()> {
        let op = "s4::Kernel::backward";
        let config = self.config;
        params.validate(op, &config)?;
        grads.validate(op, &config)?;
        let KernelConfig { channels, h: features, len, norm_len, systems, .. } = config;
        let pairs = config.pairs();
        check_len(op, "dk", "[C, H, L]", channels * features * len, dk.len())?;
        self.shared.set(params);
        let (shared, fft, frequencies) = (&self.shared, &self.fft, &self.y);
        let (width, regular) = (norm_len / 2 + 1, norm_len.div_ceil(2));
        let shares = Disjoint::new(&mut self.shares);
        let g_c = Disjoint::new(grads.c);
        let g_delta = Disjoint::new(grads.delta_log);
        par::for_each(&mut self.scratch, features, |scratch, h| {
            scratch.channel.set(&config, shared, params, h);
            scratch.cauchy.clear();
            for (channel, g) in scratch.spectrum.chunks_exact_mut(width).enumerate() {
                let row = &dk[(channel * features + h) * len..][..len];
                fft.adjoint(|l| row.get(l).map_or(0.0, |d| d.to_f64()), &mut scratch.fft, g);
                scratch.g_minus_one[channel] = if regular < width { g[regular].re } else { 0.0 };
            }
            for (index, y) in frequencies.iter().enumerate() {
                let start = index * BLOCK;
                let blocks = scratch.block.get_mut().iter_mut();
                for (block, g) in blocks.zip(scratch.spectrum.chunks_exact(width)) {
                    *block = [[0.0; BLOCK]; 2];
                    for (j, g) in g[start..regular.min(start + BLOCK)].iter().enumerate() {
                        (block[0][j], block[1][j]) = (g.re, g.im);
                    }
                }
                scratch.resolvents(y);
                let (sums, block) = (scratch.sums.get(), scratch.block.get());
                woodbury::adjoint(sums, y, block, scratch.g_sums.get_mut());
                scratch.cauchy.add(&scratch.channel.coefficients, &scratch.g_sums, y);
            }
            // SAFETY: each feature h has its own share, its own Δ_log and its own rows of C̃.
            let (share, g_delta) = unsafe { (shares.part(h * pairs, pairs), g_delta.part(h, 1)) };
            let system = shared.of_feature(&config, h);
            let mut g_log = 0.0;
            for (n, share) in share.iter_mut().enumerate() {
                let mode = Mode { config: &config, system, params, h, n };
                let put = |channel: usize, g: C64| {
                    let at = 2 * ((channel * features + h) * pairs + n);
                    // SAFETY: as above.
                    put_complex(unsafe { g_c.part(at, 2) }, 0, g);
                };
                let Scratch { channel, cauchy, g_minus_one, .. } = &*scratch;
                let (grad, log) = channel.backward(mode, cauchy, g_minus_one, put);
                *share = grad;
                g_log += log;
            }
            g_delta[0] = T::from_f64(log_slope(params.delta_log[h]) * g_log);
        });
        for at in 0..systems * pairs {
            let mut sum = SharedGrad::default();
            for share in self.shares[at..].iter().step_by(systems * pairs) {
                sum.lambda += share.lambda;
                sum.p += share.p;
                sum.b += share.b;
            }
            // Re λ = −exp(Λ_re)
            let slope = log_slope(params.lambda_re[at]) * self.shared.lambda[at].re;
            grads.lambda_re[at] = T::from_f64(slope * sum.lambda.re);
            grads.lambda_im[at] = T::from_f64(sum.lambda.im);
            put_complex(grads.p, at, sum.p);
            put_complex(grads.b, at, sum.b);
        }
        Ok(())
    }
}
