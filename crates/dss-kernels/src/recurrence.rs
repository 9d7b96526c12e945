//! The recurrent view (§3.4): one step at a time with an explicit state.
//!
//! x_k = Ā x_{k−1} + B̄ u_k, y_k = Re Σ_n W_n x_{k,n}, with Ā = e^{λΔ} and B̄ = q of `kernel/modes.rs`, so that the outputs
//! equal the convolution with the kernel. The state kept is s = x/B̄, which leaves one multiplication per mode:
//!
//! s_k = Ā s_{k−1} + u_k,   y_k = Re Σ_n (W_n B̄_n) s_{k,n}
//!
//! A softmax mode with Re λ > 0 takes the paper's second case, where only numbers of modulus ≤ 1 are exponentiated
//! (ζ = −λΔ): s_k = s_{k−1} + e^{ζk} u_k and x_k = s_k · B̄' e^{ζ(L−1−k)}. It ends at k = L−1: beyond, such a kernel has no
//! values, and its formula grows without bound.
//!
//! In f32, Ā is kept as the sum of two f32 numbers. One alone is wrong by up to 6e-8 per step in phase and decay, always
//! in the same direction, which over a memory of thousands of steps becomes 1e-4.

use crate::complex::{C64, exp};
use crate::error::{Error, Result, check_finite, check_len};
use crate::kernel::modes::{Deltas, Lambda, Scale, w_at, zeta};
use crate::kernel::{KernelConfig, Params};
use crate::real::{Real, dispatch};
use pulp::{Simd, WithSimd};

/// Lanes that the rows of modes are padded to: one cache line.
const fn padded<T: Real>(n: usize) -> usize {
    n.div_ceil(T::LINE) * T::LINE
}

/// Powers of modes with Re λ > 0 are made anew from the exponential every so many steps.
const RENEW: usize = 32;

/// A layer's kernels as a recurrence: constant time and memory per step.
///
/// ```
/// use dss_kernels::kernel::{KernelConfig, Params, Variant};
/// use dss_kernels::Recurrence;
/// let config = KernelConfig::new(Variant::Exp, 1, 1, 16); // H = 1, N = 1
/// let params = Params { lambda_re: &[-1.0f32], lambda_im: &[2.0], delta_log: &[-2.0, -2.0], w: &[1.0, 0.0] };
/// let model = Recurrence::new(config, &params)?;
/// let mut state = model.state();
/// let mut y = [0.0];
/// for u in [1.0, 0.0, 0.5] {
///     model.step(&mut state, &[u], &mut y)?;
/// }
/// # Ok::<(), dss_kernels::Error>(())
/// ```
pub struct Recurrence<T> {
    config: KernelConfig,
    /// Indices of the modes of each kind.
    decaying: Vec<usize>,
    growing: Vec<usize>,
    /// `[H, 4, padded]`: Ā of the decaying modes as re, im, and what rounding lost of each.
    a: Vec<T>,
    /// `[H, C, 2, padded]`: W·B̄ of the decaying modes.
    c: Vec<T>,
    /// `[H, growing]`: ζ, e^ζ and e^{−ζ}.
    growing_zeta: Vec<[C64; 3]>,
    /// `[H, growing, C]`: W·B̄'.
    growing_c: Vec<C64>,
    /// `[H, N]`: B̄ (B̄' of growing modes) and ζ.
    q: Vec<C64>,
    zeta: Vec<C64>,
}

/// The state of one stream: everything that the past matters for.
#[derive(Debug, Clone, PartialEq)]
pub struct State<T> {
    /// Steps taken.
    position: usize,
    /// `[H, 2, padded]`: s of the decaying modes.
    s: Vec<T>,
    /// `[H, growing]`: s of the growing modes, and the powers e^{ζk}, e^{ζ(L−1−k)} of the last step.
    growing: Vec<Growing>,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Growing {
    s: C64,
    fall: C64,
    rise: C64,
}

impl<T> State<T> {
    /// Steps taken since the state was new.
    pub fn position(&self) -> usize {
        self.position
    }
}

impl<T: Real> Recurrence<T> {
    /// Discretises the kernels of `config` and `params`. Of the lengths only `config.norm_len` matters, for softmax.
    pub fn new(config: KernelConfig, params: &Params<T>) -> Result<Self> {
        let op = "Recurrence::new";
        config.validate(op)?;
        params.validate(op, &config)?;
        let mut lambda = Lambda::with_capacity(config.n);
        lambda.set(&config, params);
        let (mut zeta_all, mut q_all) = (Vec::new(), Vec::new());
        for h in 0..config.h {
            let delta = Deltas::of(&config, params, h);
            for (&value, &grows) in lambda.values.iter().zip(&lambda.growing) {
                let zeta = zeta(value, grows, delta);
                zeta_all.push(zeta);
                q_all.push(Scale::new(&config, value, zeta).q);
            }
        }
        let w = |channel, h, mode| w_at(&config, params.w, channel, h, mode);
        Ok(Self::from_modes(config, &lambda.growing, zeta_all, q_all, w))
    }

    /// The recurrence of K_l = Re Σ_n w·q_n·e^{ζ_n k} for w(channel, h, n), `growing` `[N]`, ζ and q `[H, N]`.
    pub(crate) fn from_modes(
        config: KernelConfig,
        growing: &[bool],
        zeta: Vec<C64>,
        q: Vec<C64>,
        w: impl Fn(usize, usize, usize) -> C64,
    ) -> Self {
        let KernelConfig { channels, h: features, n, .. } = config;
        let (growing, decaying): (Vec<_>, Vec<_>) = (0..n).partition(|&i| growing[i]);
        let width = padded::<T>(decaying.len());
        let mut a = vec![T::ZERO; features * 4 * width];
        let mut c = vec![T::ZERO; features * channels * 2 * width];
        let (mut growing_zeta, mut growing_c) = (Vec::new(), Vec::new());
        for h in 0..features {
            let (q, zeta) = (&q[h * n..], &zeta[h * n..]);
            for (i, &mode) in decaying.iter().enumerate() {
                let step = exp(zeta[mode]);
                for (part, value) in [step.re, step.im].into_iter().enumerate() {
                    let high = T::from_f64(value);
                    let low = T::from_f64(value - high.to_f64());
                    a[(h * 4 + part) * width + i] = high;
                    a[(h * 4 + 2 + part) * width + i] = low;
                }
                for channel in 0..channels {
                    let value = w(channel, h, mode) * q[mode];
                    let at = (h * channels + channel) * 2 * width + i;
                    c[at] = T::from_f64(value.re);
                    c[at + width] = T::from_f64(value.im);
                }
            }
            for &mode in &growing {
                growing_zeta.push([zeta[mode], exp(zeta[mode]), (-zeta[mode]).exp()]);
                for channel in 0..channels {
                    growing_c.push(w(channel, h, mode) * q[mode]);
                }
            }
        }
        Self { config, decaying, growing, a, c, growing_zeta, growing_c, q, zeta }
    }

    /// What was discretised.
    pub fn config(&self) -> &KernelConfig {
        &self.config
    }

    /// How many modes have Re λ > 0; with any, the recurrence ends at the softmax's length.
    pub fn growing_modes(&self) -> usize {
        self.growing.len()
    }

    /// The state before the first step.
    pub fn state(&self) -> State<T> {
        State {
            position: 0,
            s: vec![T::ZERO; self.config.h * 2 * padded::<T>(self.decaying.len())],
            growing: vec![Growing::default(); self.config.h * self.growing.len()],
        }
    }

    /// Ā and B̄ of §3.4: `[H, N]` each. B̄ may be 0 by underflow where Re λ·Δ·L ≫ 0: that is what the two cases are for.
    pub fn discretised(&self) -> (Vec<C64>, Vec<C64>) {
        let last = (self.config.norm_len - 1) as f64;
        let grows = |at: usize| self.growing.contains(&(at % self.config.n));
        let a = self.zeta.iter().enumerate();
        let a = a.map(|(at, &z)| if grows(at) { (-z).exp() } else { exp(z) }).collect();
        let b = self.q.iter().zip(&self.zeta).enumerate();
        let b = b.map(|(at, (&q, &z))| if grows(at) { q * exp(z * last) } else { q }).collect();
        (a, b)
    }

    /// The paper's state x: `[H, N]` after the steps taken so far.
    ///
    /// # Panics
    /// If the state belongs to another model.
    pub fn paper_state(&self, state: &State<T>) -> Vec<C64> {
        self.check_input("Recurrence::paper_state", state, &[]).expect("a state of this model");
        let (features, n) = (self.config.h, self.config.n);
        let width = padded::<T>(self.decaying.len());
        let mut x = vec![C64::ZERO; features * n];
        for h in 0..features {
            for (i, &mode) in self.decaying.iter().enumerate() {
                let at = h * 2 * width + i;
                let s = C64::new(state.s[at].to_f64(), state.s[at + width].to_f64());
                x[h * n + mode] = self.q[h * n + mode] * s;
            }
            for (i, &mode) in self.growing.iter().enumerate() {
                let left = self.config.norm_len as f64 - state.position as f64;
                let rise = exp(self.zeta[h * n + mode] * left);
                x[h * n + mode] =
                    self.q[h * n + mode] * rise * state.growing[h * self.growing.len() + i].s;
            }
        }
        x
    }

    /// Takes one input u: `[H]` and writes y: `[C, H]`.
    pub fn step(&self, state: &mut State<T>, u: &[T], y: &mut [T]) -> Result<()> {
        self.step_batch(std::slice::from_mut(state), u, y)
    }

    /// One step of many independent streams, each at its own position: u `[B, H]` -> y `[B, C, H]`.
    ///
    /// Nothing changes if there is an error.
    pub fn step_batch(&self, states: &mut [State<T>], u: &[T], y: &mut [T]) -> Result<()> {
        let op = "Recurrence::step";
        let KernelConfig { channels, h: features, .. } = self.config;
        check_len(op, "u", "[B, H]", states.len() * features, u.len())?;
        check_len(op, "y", "[B, C, H]", states.len() * channels * features, y.len())?;
        let width = padded::<T>(self.decaying.len());
        let modes = self.growing.len();
        for (state, u) in states.iter().zip(u.chunks_exact(features)) {
            self.check_input(op, state, u)?;
        }
        if width > 0 {
            dispatch(DecayingStep { model: self, states, u, y });
        } else {
            y.fill(T::ZERO);
        }
        if modes > 0 {
            for (b, state) in states.iter_mut().enumerate() {
                let u = &u[b * features..][..features];
                self.growing_step(
                    state,
                    u,
                    &mut y[b * channels * features..][..channels * features],
                );
            }
        }
        for state in states {
            state.position += 1;
        }
        Ok(())
    }

    /// A whole sequence of one stream: u `[L, H]` -> y `[L, C, H]`. Nothing changes if there is an error.
    pub fn run(&self, state: &mut State<T>, u: &[T], y: &mut [T]) -> Result<()> {
        let (features, channels) = (self.config.h, self.config.channels);
        if !u.len().is_multiple_of(features) {
            let what =
                format!("`u` must be [L, H] with H = {features}, but has {} elements", u.len());
            return Err(Error::Invalid { op: "Recurrence::run", what });
        }
        check_len("Recurrence::run", "y", "[L, C, H]", u.len() * channels, y.len())?;
        self.check_input("Recurrence::run", state, u)?;
        for (u, y) in u.chunks_exact(features).zip(y.chunks_exact_mut(channels * features)) {
            self.step(state, u, y)?;
        }
        Ok(())
    }

    /// The state belongs to this model and may take the steps of u: `[steps, H]`, all finite.
    fn check_input(&self, op: &'static str, state: &State<T>, u: &[T]) -> Result<()> {
        let (features, modes) = (self.config.h, self.growing.len());
        let width = padded::<T>(self.decaying.len());
        check_len(op, "state", "that of this model", features * 2 * width, state.s.len())?;
        check_len(op, "state", "that of this model", features * modes, state.growing.len())?;
        let length = self.config.norm_len;
        if modes > 0 && state.position + u.len() / features > length {
            let position = state.position.max(length);
            return Err(Error::PastEnd { op, position, length, modes });
        }
        check_finite(op, "u", u)
    }

    /// y += the part of the modes with Re λ > 0, in f64: they are few, and their powers move with the position.
    fn growing_step(&self, state: &mut State<T>, u: &[T], y: &mut [T]) {
        let KernelConfig { channels, h: features, norm_len, .. } = self.config;
        let modes = self.growing.len();
        let (k, left) = (state.position, (norm_len - 1 - state.position) as f64);
        for h in 0..features {
            for mode in 0..modes {
                let at = h * modes + mode;
                let [zeta, down, up] = self.growing_zeta[at];
                let Growing { s, fall, rise } = &mut state.growing[at];
                // A steep mode's power would overflow on the way back up.
                if k % RENEW == 0 || zeta.re < -8.0 {
                    (*fall, *rise) = (exp(zeta * k as f64), exp(zeta * left));
                } else {
                    (*fall, *rise) = (*fall * down, *rise * up);
                }
                *s += *fall * u[h].to_f64();
                for channel in 0..channels {
                    let c = self.growing_c[at * channels + channel];
                    y[channel * features + h] += T::from_f64((c * *rise * *s).re);
                }
            }
        }
    }
}

/// The decaying modes of all streams and channels.
struct DecayingStep<'a, T> {
    model: &'a Recurrence<T>,
    states: &'a mut [State<T>],
    u: &'a [T],
    y: &'a mut [T],
}

impl<T: Real> WithSimd for DecayingStep<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { model, states, u, y } = self;
        let (features, channels) = (model.config.h, model.config.channels);
        let width = padded::<T>(model.decaying.len());
        let lanes = T::lanes::<S>();
        let load = |x: &[T], v: usize| {
            debug_assert!(v + lanes <= x.len());
            // SAFETY: v + lanes ≤ width: the width is a multiple of the line, and so of the lanes.
            unsafe { x.as_ptr().add(v).cast::<T::V<S>>().read_unaligned() }
        };
        for h in 0..features {
            let a = &model.a[h * 4 * width..][..4 * width];
            let (a_re, rest) = a.split_at(width);
            let (a_im, rest) = rest.split_at(width);
            let (low_re, low_im) = rest.split_at(width);
            let c = &model.c[h * channels * 2 * width..][..channels * 2 * width];
            for (b, state) in states.iter_mut().enumerate() {
                let s = &mut state.s[h * 2 * width..][..2 * width];
                let (s_re, s_im) = s.split_at_mut(width);
                let input = T::vsplat(simd, u[b * features + h]);
                let (c_re, c_im) = c[..2 * width].split_at(width);
                let mut sum = T::vsplat(simd, T::ZERO);
                for v in (0..width).step_by(lanes) {
                    let (re, im) = (load(s_re, v), load(s_im, v));
                    let mut next_re = input;
                    let mut next_im = T::vsplat(simd, T::ZERO);
                    if T::SPLIT {
                        let (low_re, low_im) = (load(low_re, v), load(low_im, v));
                        next_re = T::vfma(simd, low_re, re, next_re);
                        next_re = T::vfnma(simd, low_im, im, next_re);
                        next_im = T::vfma(simd, low_re, im, next_im);
                        next_im = T::vfma(simd, low_im, re, next_im);
                    }
                    let (a_re, a_im) = (load(a_re, v), load(a_im, v));
                    next_re = T::vfnma(simd, a_im, im, T::vfma(simd, a_re, re, next_re));
                    next_im = T::vfma(simd, a_im, re, T::vfma(simd, a_re, im, next_im));
                    sum = T::vfma(simd, load(c_re, v), next_re, sum);
                    sum = T::vfnma(simd, load(c_im, v), next_im, sum);
                    // SAFETY: as for the loads.
                    unsafe {
                        s_re.as_mut_ptr().add(v).cast::<T::V<S>>().write_unaligned(next_re);
                        s_im.as_mut_ptr().add(v).cast::<T::V<S>>().write_unaligned(next_im);
                    }
                }
                y[b * channels * features + h] = T::vsum(simd, sum);
                for channel in 1..channels {
                    let (c_re, c_im) = c[channel * 2 * width..][..2 * width].split_at(width);
                    let mut sum = T::vsplat(simd, T::ZERO);
                    for v in (0..width).step_by(lanes) {
                        sum = T::vfma(simd, load(c_re, v), load(s_re, v), sum);
                        sum = T::vfnma(simd, load(c_im, v), load(s_im, v), sum);
                    }
                    y[(b * channels + channel) * features + h] = T::vsum(simd, sum);
                }
            }
        }
    }
}
