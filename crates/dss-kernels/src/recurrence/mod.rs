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
//!
//! A single step reads all of Ā, W·B̄ and s from memory; many steps at once (`run.rs`) keep them in registers. Both do the
//! same operations in the same order, so that the results are equal bit for bit.

mod growing;
mod run;
mod step;

use crate::complex::{C64, exp};
use crate::error::{Error, Result, check_finite, check_len};
use crate::kernel::modes::{Deltas, Lambda, Scale, w_at, zeta};
use crate::kernel::{KernelConfig, Params};
use crate::lines::Lines;
use crate::real::{Real, dispatch};
use growing::GrowingMode;

/// Lanes that the rows of modes are padded to: one cache line.
const fn padded<T: Real>(n: usize) -> usize {
    n.div_ceil(T::LINE) * T::LINE
}

/// Every so often, values that have decayed to nothing are set to zero and powers of modes with Re λ > 0 are made again
/// from the exponential. Also the steps that `run.rs` takes at once.
const PERIOD: usize = 32;

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
pub struct Recurrence<T: Real> {
    config: KernelConfig,
    /// Indices of the modes of each kind; those that are of both, in different systems, have coefficient 0 in the lists
    /// that a feature's mode does not belong to.
    decaying: Vec<usize>,
    growing: Vec<usize>,
    /// `[H, N]`: Re λ > 0.
    grows: Vec<bool>,
    /// `[H, 4, padded]`: Ā of the decaying modes as re, im, and what rounding lost of each.
    a: Lines<T>,
    /// `[H, C, 2, padded]`: W·B̄ of the decaying modes.
    c: Lines<T>,
    /// `[H, growing]`: ζ, e^ζ and e^{−ζ}.
    growing_zeta: Vec<[C64; 3]>,
    /// `[H, growing, C]`: W·B̄'.
    growing_c: Vec<C64>,
    /// `[H, N]`: B̄ (B̄' of growing modes) and ζ.
    q: Vec<C64>,
    zeta: Vec<C64>,
}

/// The state of one stream: everything that the past matters for.
#[derive(Debug, Clone)]
pub struct RecurrentState<T: Real> {
    /// Steps taken.
    position: usize,
    /// `[H, 2, padded]`: s of the decaying modes; what follows them is padding.
    s: Lines<T>,
    /// How many modes decay.
    decaying: usize,
    /// `[H, growing]`: s of the growing modes, and the powers e^{ζk}, e^{ζ(L−1−k)} of the last step.
    growing: Vec<GrowingMode>,
}

impl<T: Real> PartialEq for RecurrentState<T> {
    fn eq(&self, other: &Self) -> bool {
        let width = padded::<T>(self.decaying).max(1);
        let rows = || self.s.chunks_exact(width).zip(other.s.chunks_exact(width));
        (self.position, self.decaying, self.s.len())
            == (other.position, other.decaying, other.s.len())
            && rows().all(|(a, b)| a[..self.decaying] == b[..self.decaying])
            && self.growing == other.growing
    }
}

impl<T: Real> RecurrentState<T> {
    /// Steps taken since the state was new.
    pub fn position(&self) -> usize {
        self.position
    }

    /// As before the first step.
    pub fn reset(&mut self) {
        self.position = 0;
        self.s.fill(T::ZERO);
        self.growing.fill(GrowingMode::default());
    }

    /// Takes values that have decayed to nothing for zero, every [`PERIOD`] steps.
    fn settle(&mut self) {
        if self.position.is_multiple_of(PERIOD) {
            for s in self.s.iter_mut() {
                *s = if *s > -T::TINY && *s < T::TINY { T::ZERO } else { *s };
            }
        }
    }
}

impl<T: Real> Recurrence<T> {
    /// Discretises the kernels of `config` and `params`. Of the lengths only `config.norm_len` matters, for softmax.
    pub fn new(config: KernelConfig, params: &Params<T>) -> Result<Self> {
        let op = "Recurrence::new";
        config.validate(op)?;
        params.validate(op, &config)?;
        let mut lambda = Lambda::with_capacity(&config);
        lambda.set(&config, params);
        let (mut zeta_all, mut q_all, mut grows_all) = (Vec::new(), Vec::new(), Vec::new());
        for h in 0..config.h {
            let delta = Deltas::for_channel(&config, params, h);
            let (values, growing) = lambda.system(h);
            grows_all.extend_from_slice(growing);
            for (&value, &grows) in values.iter().zip(growing) {
                let zeta = zeta(value, grows, delta);
                zeta_all.push(zeta);
                q_all.push(Scale::new(&config, value, zeta).q);
            }
        }
        let w = |channel, h, mode| w_at(&config, params.w, channel, h, mode);
        Ok(Self::from_modes(config, grows_all, zeta_all, q_all, w))
    }

    /// The recurrence of K_l = Re Σ_n w·q_n·e^{ζ_n k} for w(channel, h, n); `grows`, ζ and q: `[H, N]`.
    pub(crate) fn from_modes(
        config: KernelConfig,
        grows: Vec<bool>,
        zeta: Vec<C64>,
        q: Vec<C64>,
        w: impl Fn(usize, usize, usize) -> C64,
    ) -> Self {
        let KernelConfig { channels, h: features, n, .. } = config;
        let of_kind = |kind: bool| {
            let found = (0..n).filter(|&i| grows[i..].iter().step_by(n).any(|&g| g == kind));
            found.collect::<Vec<_>>()
        };
        let (growing, decaying) = (of_kind(true), of_kind(false));
        let width = padded::<T>(decaying.len());
        let mut a = Lines::new(features * 4 * width / T::LINE);
        let mut c = Lines::new(features * channels * 2 * width / T::LINE);
        let (mut growing_zeta, mut growing_c) = (Vec::new(), Vec::new());
        for h in 0..features {
            let (q, zeta, grows) = (&q[h * n..], &zeta[h * n..], &grows[h * n..]);
            for (i, &mode) in decaying.iter().enumerate().filter(|(_, mode)| !grows[**mode]) {
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
                let (zeta, q) =
                    if grows[mode] { (zeta[mode], q[mode]) } else { (C64::ZERO, C64::ZERO) };
                growing_zeta.push([zeta, exp(zeta), (-zeta).exp()]);
                for channel in 0..channels {
                    growing_c.push(w(channel, h, mode) * q);
                }
            }
        }
        Self { config, decaying, growing, grows, a, c, growing_zeta, growing_c, q, zeta }
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
    pub fn state(&self) -> RecurrentState<T> {
        RecurrentState {
            position: 0,
            s: Lines::new(self.config.h * 2 * padded::<T>(self.decaying.len()) / T::LINE),
            decaying: self.decaying.len(),
            growing: vec![GrowingMode::default(); self.config.h * self.growing.len()],
        }
    }

    /// Ā and B̄ of §3.4: `[H, N]` each. B̄ may be 0 by underflow where Re λ·Δ·L ≫ 0: that is what the two cases are for.
    pub fn discretised(&self) -> (Vec<C64>, Vec<C64>) {
        let last = (self.config.norm_len - 1) as f64;
        let a = self.zeta.iter().enumerate();
        let a = a.map(|(at, &z)| if self.grows[at] { (-z).exp() } else { exp(z) }).collect();
        let b = self.q.iter().zip(&self.zeta).enumerate();
        let b =
            b.map(|(at, (&q, &z))| if self.grows[at] { q * exp(z * last) } else { q }).collect();
        (a, b)
    }

    /// s: `[H, N]` of the module's formulas.
    ///
    /// # Panics
    /// If the state belongs to another model.
    pub fn values(&self, state: &RecurrentState<T>) -> Vec<C64> {
        self.check_state("Recurrence::values", state, 0).expect("a state of this model");
        let (features, n) = (self.config.h, self.config.n);
        let width = padded::<T>(self.decaying.len());
        let mut s = vec![C64::ZERO; features * n];
        for h in 0..features {
            for (i, &mode) in self.decaying.iter().enumerate() {
                let at = h * 2 * width + i;
                if self.grows[h * n + mode] {
                    continue;
                }
                s[h * n + mode] = C64::new(state.s[at].to_f64(), state.s[at + width].to_f64());
            }
            for (i, &mode) in self.growing.iter().enumerate() {
                if self.grows[h * n + mode] {
                    s[h * n + mode] = state.growing[h * self.growing.len() + i].s;
                }
            }
        }
        s
    }

    /// The state after `position` steps with s: `[H, N]`, as [`Self::values`] gave it.
    pub fn state_from(&self, position: usize, s: &[C64]) -> Result<RecurrentState<T>> {
        let op = "Recurrence::state_from";
        let (features, n) = (self.config.h, self.config.n);
        check_len(op, "s", "[H, N]", features * n, s.len())?;
        if let Some(index) = s.iter().position(|s| !s.is_finite()) {
            return Err(Error::NonFinite { op, name: "s", index, value: s[index].norm() });
        }
        let mut state = RecurrentState { position, ..self.state() };
        self.check_state(op, &state, 0)?;
        let width = padded::<T>(self.decaying.len());
        for h in 0..features {
            for (i, &mode) in self.decaying.iter().enumerate() {
                let (at, s) = (h * 2 * width + i, s[h * n + mode]);
                (state.s[at], state.s[at + width]) = (T::from_f64(s.re), T::from_f64(s.im));
            }
            for (i, &mode) in self.growing.iter().enumerate() {
                let at = h * self.growing.len() + i;
                state.growing[at] = GrowingMode::at(
                    position,
                    self.config.norm_len,
                    &self.growing_zeta[at],
                    s[h * n + mode],
                );
            }
        }
        Ok(state)
    }

    /// The paper's state x: `[H, N]` after the steps taken so far.
    ///
    /// # Panics
    /// If the state belongs to another model.
    pub fn paper_state(&self, state: &RecurrentState<T>) -> Vec<C64> {
        let mut x = self.values(state);
        let left = self.config.norm_len as f64 - state.position as f64;
        for (at, x) in x.iter_mut().enumerate() {
            let rise = if self.grows[at] { exp(self.zeta[at] * left) } else { C64::ONE };
            *x = self.q[at] * rise * *x;
        }
        x
    }

    /// Takes one input u: `[H]` and writes y: `[C, H]`.
    pub fn step(&self, state: &mut RecurrentState<T>, u: &[T], y: &mut [T]) -> Result<()> {
        self.step_batch(std::slice::from_mut(state), u, y)
    }

    /// One step of many independent streams, each at its own position: u `[B, H]` -> y `[B, C, H]`.
    ///
    /// Nothing changes if there is an error.
    pub fn step_batch(&self, states: &mut [RecurrentState<T>], u: &[T], y: &mut [T]) -> Result<()> {
        self.step_streams(states, |state| state, u, y)
    }

    /// As [`Self::step_batch`], for streams that hold their state of this layer somewhere in them.
    pub fn step_streams<X>(
        &self,
        streams: &mut [X],
        state_of: impl Fn(&mut X) -> &mut RecurrentState<T>,
        u: &[T],
        y: &mut [T],
    ) -> Result<()> {
        let op = "Recurrence::step";
        let KernelConfig { channels, h: features, .. } = self.config;
        check_len(op, "u", "[B, H]", streams.len() * features, u.len())?;
        check_len(op, "y", "[B, C, H]", streams.len() * channels * features, y.len())?;
        for stream in &mut *streams {
            self.check_state(op, state_of(stream), 1)?;
        }
        check_finite(op, "u", u)?;
        if self.decaying.is_empty() {
            y.fill(T::ZERO);
        } else {
            dispatch(step::Step { model: self, streams, state_of: &state_of, u, y });
        }
        let rows = u.chunks_exact(features).zip(y.chunks_exact_mut(channels * features));
        for (stream, (u, y)) in streams.iter_mut().zip(rows) {
            let state = state_of(stream);
            self.growing_step(state, state.position, u, y);
            state.position += 1;
            state.settle();
        }
        Ok(())
    }

    /// Many steps of one stream: u `[L, H]` -> y `[L, C, H]`, equal to single steps bit for bit. With C = 1 each takes a
    /// fraction of the time of a single one. Nothing changes if there is an error.
    pub fn run(&self, state: &mut RecurrentState<T>, u: &[T], y: &mut [T]) -> Result<()> {
        let op = "Recurrence::run";
        let (features, channels) = (self.config.h, self.config.channels);
        if !u.len().is_multiple_of(features) {
            let what =
                format!("`u` must be [L, H] with H = {features}, but has {} elements", u.len());
            return Err(Error::Invalid { op, what });
        }
        check_len(op, "y", "[L, C, H]", u.len() * channels, y.len())?;
        self.check_state(op, state, u.len() / features)?;
        check_finite(op, "u", u)?;
        if channels > 1 || self.decaying.is_empty() {
            for (u, y) in u.chunks_exact(features).zip(y.chunks_exact_mut(channels * features)) {
                self.step(state, u, y)?;
            }
            return Ok(());
        }
        let (mut u, mut y) = (u, y);
        while !u.is_empty() {
            let steps = (PERIOD - state.position % PERIOD).min(u.len() / features);
            let (now, later) = u.split_at(steps * features);
            let (y_now, y_later) = y.split_at_mut(steps * features);
            dispatch(run::Run { model: self, s: &mut state.s, u: now, y: y_now });
            let rows = now.chunks_exact(features).zip(y_now.chunks_exact_mut(features));
            for (t, (u, y)) in rows.enumerate() {
                self.growing_step(state, state.position + t, u, y);
            }
            state.position += steps;
            state.settle();
            (u, y) = (later, y_later);
        }
        Ok(())
    }

    /// Checks that the state belongs to this model and may take this many more steps.
    fn check_state(&self, op: &'static str, state: &RecurrentState<T>, steps: usize) -> Result<()> {
        let (features, modes) = (self.config.h, self.growing.len());
        let width = padded::<T>(self.decaying.len());
        check_len(op, "state", "that of this model", features * 2 * width, state.s.len())?;
        check_len(op, "state", "that of this model", features * modes, state.growing.len())?;
        let length = self.config.norm_len;
        if modes > 0 && state.position.saturating_add(steps) > length {
            let position = state.position.max(length);
            return Err(Error::PastEnd { op, position, length, modes });
        }
        Ok(())
    }
}
