//! The recurrent mode: one step at a time with an explicit state, O(N) per feature.
//!
//! x_k = ā·x_{k−1} − q·(r·x_{k−1}) + B̄·u_k,   y_k = C·x_k   (`discrete.rs`)
//!
//! The scalar r·x is made together with y and kept, so that a step reads the state once. C comes from C̃ by
//! [`uncorrect_length`](super::uncorrect_length): the recurrence has no length.
//!
//! States and arithmetic are f64, for f32 inputs too: the rank-one term is large (‖P‖² = N²/2 for HiPPO), and what f32
//! loses of it in each step, always in the same direction, would add up over the thousands of steps that are remembered.

use super::discrete::Discrete;
use super::length::uncorrected;
use super::modes::Shared;
use super::params::{KernelConfig, Params, delta};
use crate::complex::C64;
use crate::error::{Error, Result, check_finite, check_len};
use crate::lines::Lines;
use crate::real::{Real, dispatch};
use pulp::{Simd, WithSimd};

/// Parts of a feature's table before those of C: ā, q, r and B̄, real and imaginary.
const PARTS: usize = 8;

/// Steps between two looks for values that have decayed to nothing.
const SETTLE: usize = 32;

/// A layer's kernels as a recurrence: constant time and memory per step, for sequences of any length.
pub struct Recurrence {
    config: KernelConfig,
    /// N/2 padded to whole cache lines.
    width: usize,
    /// `[H, 8 + 2C, width]`: ā, q, 2r, B̄ and 2C.
    table: Lines<f64>,
}

/// The state of one stream: everything that the past matters for.
#[derive(Debug, Clone, PartialEq)]
pub struct S4State {
    position: usize,
    /// `[H, 2, width]`: x.
    x: Lines<f64>,
    /// `[H]`: r·x.
    r: Vec<f64>,
}

impl S4State {
    /// Steps taken since the state was new.
    pub fn position(&self) -> usize {
        self.position
    }

    /// As before the first step.
    pub fn reset(&mut self) {
        self.position = 0;
        self.x.fill(0.0);
        self.r.fill(0.0);
    }

    /// Sets values that have decayed to nothing to zero, every so often.
    fn settle(&mut self) {
        if self.position.is_multiple_of(SETTLE) {
            for x in self.x.iter_mut().chain(&mut self.r) {
                *x = if x.abs() < f64::TINY { 0.0 } else { *x };
            }
        }
    }
}

impl Recurrence {
    /// Discretises the kernels of `config` and `params`, whose C̃ is corrected for `config.norm_len`.
    ///
    /// # Errors
    /// As [`uncorrect_length`](super::uncorrect_length).
    pub fn new<T: Real>(config: KernelConfig, params: &Params<T>) -> Result<Self> {
        let c = uncorrected("s4::Recurrence::new", &config, params)?;
        let KernelConfig { channels, h: features, .. } = config;
        let pairs = config.pairs();
        let mut shared = Shared::with_capacity(&config);
        shared.set(params);
        let width = pairs.next_multiple_of(f64::LINE);
        let mut table = Lines::new(features * (PARTS + 2 * channels) * width / f64::LINE);
        for (h, table) in table.chunks_exact_mut((PARTS + 2 * channels) * width).enumerate() {
            let system = shared.of_feature(&config, h);
            let Discrete { a, q, r, b } = Discrete::new(system, delta(params.delta_log[h]));
            let mut parts = table.chunks_exact_mut(width);
            let mut put = |values: &[C64], scale: f64| {
                for part in [|z: &C64| z.re, |z: &C64| z.im] {
                    let to = parts.next().expect("a part is left");
                    to.iter_mut().zip(values).for_each(|(to, z)| *to = scale * part(z));
                }
            };
            put(&a, 1.0);
            put(&q, 1.0);
            put(&r, 2.0);
            put(&b, 1.0);
            for channel in 0..channels {
                let row = &c[2 * (channel * features + h) * pairs..][..2 * pairs];
                let row: Vec<C64> = row.chunks_exact(2).map(|z| C64::new(z[0], z[1])).collect();
                put(&row, 2.0);
            }
        }
        Ok(Self { config, width, table })
    }

    /// What was discretised.
    pub fn config(&self) -> &KernelConfig {
        &self.config
    }

    /// The state before the first step.
    pub fn state(&self) -> S4State {
        let h = self.config.h;
        S4State { position: 0, x: Lines::new(h * 2 * self.width / f64::LINE), r: vec![0.0; h] }
    }

    /// x: `[H, N/2]` after the steps taken so far.
    ///
    /// # Panics
    /// If the state belongs to another model.
    pub fn values(&self, state: &S4State) -> Vec<C64> {
        self.check_state("s4::Recurrence::values", state).expect("a state of this model");
        let features = state.x.chunks_exact(2 * self.width);
        let each = features.flat_map(|x| {
            let (re, im) = x.split_at(self.width);
            re.iter().zip(im).take(self.config.pairs()).map(|(&re, &im)| C64::new(re, im))
        });
        each.collect()
    }

    /// The state with x: `[H, N/2]` after `position` steps, as [`Self::values`] gave it.
    pub fn state_from(&self, position: usize, x: &[C64]) -> Result<S4State> {
        let pairs = self.config.pairs();
        check_len("s4::Recurrence::state_from", "x", "[H, N/2]", self.config.h * pairs, x.len())?;
        let mut state = S4State { position, ..self.state() };
        for (h, x) in x.chunks_exact(pairs).enumerate() {
            let (re, im) = state.x[h * 2 * self.width..][..2 * self.width].split_at_mut(self.width);
            for (i, x) in x.iter().enumerate() {
                (re[i], im[i]) = (x.re, x.im);
            }
            let r = &self.table[(h * self.parts() + 4) * self.width..][..2 * self.width];
            let x = &state.x[h * 2 * self.width..][..2 * self.width];
            state.r[h] = dispatch(Through { r, x });
        }
        Ok(state)
    }

    /// Takes one input u: `[H]` and writes y: `[C, H]`.
    pub fn step<T: Real>(&self, state: &mut S4State, u: &[T], y: &mut [T]) -> Result<()> {
        self.step_batch(std::slice::from_mut(state), u, y)
    }

    /// One step of many independent streams: u `[B, H]` -> y `[B, C, H]`. Nothing changes if there is an error.
    pub fn step_batch<T: Real>(&self, states: &mut [S4State], u: &[T], y: &mut [T]) -> Result<()> {
        self.step_streams(states, |state| state, u, y)
    }

    /// As [`Self::step_batch`], for streams that hold their state of this layer somewhere in them.
    pub fn step_streams<T: Real, X>(
        &self,
        streams: &mut [X],
        state_of: impl Fn(&mut X) -> &mut S4State,
        u: &[T],
        y: &mut [T],
    ) -> Result<()> {
        let op = "s4::Recurrence::step";
        let KernelConfig { channels, h: features, .. } = self.config;
        check_len(op, "u", "[B, H]", streams.len() * features, u.len())?;
        check_len(op, "y", "[B, C, H]", streams.len() * channels * features, y.len())?;
        for stream in &mut *streams {
            self.check_state(op, state_of(stream))?;
        }
        check_finite(op, "u", u)?;
        dispatch(Step { model: self, streams, state_of: &state_of, u, y });
        Ok(())
    }

    /// A whole sequence of one stream: u `[L, H]` -> y `[L, C, H]`. Nothing changes if there is an error.
    pub fn run<T: Real>(&self, state: &mut S4State, u: &[T], y: &mut [T]) -> Result<()> {
        let op = "s4::Recurrence::run";
        let (features, channels) = (self.config.h, self.config.channels);
        if !u.len().is_multiple_of(features) {
            let what =
                format!("`u` must be [L, H] with H = {features}, but has {} elements", u.len());
            return Err(Error::Invalid { op, what });
        }
        check_len(op, "y", "[L, C, H]", u.len() * channels, y.len())?;
        self.check_state(op, state)?;
        check_finite(op, "u", u)?;
        for (u, y) in u.chunks_exact(features).zip(y.chunks_exact_mut(channels * features)) {
            self.step(state, u, y)?;
        }
        Ok(())
    }

    fn parts(&self) -> usize {
        PARTS + 2 * self.config.channels
    }

    fn check_state(&self, op: &'static str, state: &S4State) -> Result<()> {
        let h = self.config.h;
        check_len(op, "state", "that of this model", h * 2 * self.width, state.x.len())
    }
}

/// r·x, summed in the order of a step.
struct Through<'a> {
    r: &'a [f64],
    x: &'a [f64],
}

impl WithSimd for Through<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) -> f64 {
        let [r, x] = [self.r, self.x].map(|x| S::as_simd_f64s(x).0);
        let ((r_re, r_im), (re, im)) = (r.split_at(r.len() / 2), x.split_at(x.len() / 2));
        let mut sum = s.splat_f64s(0.0);
        for v in 0..re.len() {
            sum = f64::vfnma(s, r_im[v], im[v], f64::vfma(s, r_re[v], re[v], sum));
        }
        s.reduce_sum_f64s(sum)
    }
}

/// One step of all streams and features.
struct Step<'a, T, X, F> {
    model: &'a Recurrence,
    streams: &'a mut [X],
    state_of: &'a F,
    u: &'a [T],
    y: &'a mut [T],
}

impl<T: Real, X, F: Fn(&mut X) -> &mut S4State> WithSimd for Step<'_, T, X, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) {
        let Self { model, streams, state_of, u, y } = self;
        let KernelConfig { channels, h: features, .. } = model.config;
        let (width, vectors) = (model.width, model.width / f64::lanes::<S>());
        let tables = model.table.chunks_exact(model.parts() * width);
        for (h, table) in tables.enumerate() {
            let (system, c) = S::as_simd_f64s(table).0.split_at(PARTS * vectors);
            let part = |i: usize| &system[i * vectors..][..vectors];
            let [a_re, a_im, q_re, q_im] = [part(0), part(1), part(2), part(3)];
            let [r_re, r_im, b_re, b_im] = [part(4), part(5), part(6), part(7)];
            for (stream, state) in streams.iter_mut().enumerate() {
                let state = state_of(state);
                let x = &mut state.x[h * 2 * width..][..2 * width];
                let (x_re, x_im) = S::as_mut_simd_f64s(x).0.split_at_mut(vectors);
                let input = s.splat_f64s(u[stream * features + h].to_f64());
                let through = s.splat_f64s(state.r[h]);
                let mut sum = s.splat_f64s(0.0);
                for v in 0..vectors {
                    let (re, im) = (x_re[v], x_im[v]);
                    let mut next_re = f64::vfnma(s, q_re[v], through, s.mul_f64s(b_re[v], input));
                    let mut next_im = f64::vfnma(s, q_im[v], through, s.mul_f64s(b_im[v], input));
                    next_re = f64::vfnma(s, a_im[v], im, f64::vfma(s, a_re[v], re, next_re));
                    next_im = f64::vfma(s, a_im[v], re, f64::vfma(s, a_re[v], im, next_im));
                    sum = f64::vfnma(s, r_im[v], next_im, f64::vfma(s, r_re[v], next_re, sum));
                    (x_re[v], x_im[v]) = (next_re, next_im);
                }
                state.r[h] = s.reduce_sum_f64s(sum);
                for (channel, c) in c.chunks_exact(2 * vectors).enumerate() {
                    let (c_re, c_im) = c.split_at(vectors);
                    let mut sum = s.splat_f64s(0.0);
                    for v in 0..vectors {
                        sum = f64::vfnma(s, c_im[v], x_im[v], f64::vfma(s, c_re[v], x_re[v], sum));
                    }
                    let at = (stream * channels + channel) * features + h;
                    y[at] = T::from_f64(s.reduce_sum_f64s(sum));
                }
            }
        }
        for stream in streams {
            let state = state_of(stream);
            state.position += 1;
            state.settle();
        }
    }
}
