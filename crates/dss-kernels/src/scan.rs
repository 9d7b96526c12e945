//! The chunked scan: a sequence of any length in chunks, convolution inside a chunk, the state across chunks.
//!
//! With T steps in a chunk that begins at position k₀, and X the state (s of `recurrence/mod.rs`) before it:
//!
//! y_t = Σ_{j ≤ t} K_j u_{t−j} + Re Σ_n c_n e^{ζ_n E} X_n · e^{ζ_n i(t)}
//! X' = e^{ζD} X + e^{ζI} Σ_t e^{ζ i'(t)} u_t
//!
//! | modes     | E          | i(t)    | D | I  | i'(t)   |
//! |-----------|------------|---------|---|----|---------|
//! | Re λ ≤ 0  | 1          | t       | T | 0  | T−1−t   |
//! | Re λ > 0  | L − k₀ − T | T−1−t   | 0 | k₀ | t       |
//!
//! The sums over t and n are those of `kernel/vandermonde.rs`. Backward, with M₀ = Σ_t dy_t e^{ζ i(t)},
//! M₁ = Σ_t i(t) dy_t e^{ζ i(t)}, S₀ and S₁ likewise of u and i', and G the gradient of X':
//!
//! - g_c = conj(e^{ζE} X M₀)
//! - g_X = conj(c e^{ζE} M₀) + conj(e^{ζD}) G
//! - g_ζ = conj(c e^{ζE} X (E·M₀ + M₁)) + conj(D e^{ζD} X + e^{ζI}(I·S₀ + S₁)) G
//! - du_t = (the convolution's) + Re Σ_n conj(G_n) e^{ζI} e^{ζ i'(t)}
//!
//! and the parameters follow from g_c, g_ζ and the sum of dK over all chunks, once at the end.

use crate::complex::{C64, exp};
use crate::conv::Conv;
use crate::error::{Error, Result, check_finite, check_len};
use crate::kernel::modes::{Deltas, Lambda, Scale, w_at, zeta};
use crate::kernel::vandermonde::{self, Blocks};
use crate::kernel::{Kernel, KernelConfig, ModeGrads, ParamGrads, Params};
use crate::par::{self, Disjoint};
use crate::real::Real;

/// Plan and buffers of a chunked scan over B sequences with one kernel per feature.
///
/// Memory is bounded by the chunk: O(B·T·H + B·H·N + H·T), whatever the length of the sequence.
pub struct Scan<T: Real> {
    /// `len` is the chunk, `norm_len` the L of the softmax.
    config: KernelConfig,
    b: usize,
    kernel: Kernel<T>,
    conv: Conv<T>,
    lambda: Lambda,
    /// `[H, N]`: exponents and coefficients.
    zeta: Vec<C64>,
    c: Vec<C64>,
    ready: bool,
    /// `[B, H, T]` each, the time innermost: u, y or dy, and du.
    u_rows: Vec<T>,
    y_rows: Vec<T>,
    du_rows: Vec<T>,
    /// `[B, T, H]` each: a last chunk that is shorter, padded.
    padded: [Vec<T>; 3],
    /// `[H, T]`: one chunk's dK, and the sum over all.
    dk: Vec<T>,
    dk_sum: Vec<f64>,
    grads: ModeGrads,
    scratch: Vec<Scratch<T>>,
}

struct Scratch<T> {
    sums: vandermonde::Scratch<T>,
    index: Vec<usize>,
    zeta: Vec<C64>,
    coefficients: Vec<C64>,
    /// M₀, M₁ of dy; S₀, S₁ of u.
    m: [Vec<C64>; 2],
    s: [Vec<C64>; 2],
    row: Vec<T>,
}

/// What is carried from chunk to chunk: one state for each of the B sequences.
#[derive(Debug, Clone, PartialEq)]
pub struct ScanState {
    position: usize,
    /// `[B, H, N]`
    x: Vec<C64>,
}

impl ScanState {
    /// Steps taken.
    pub fn position(&self) -> usize {
        self.position
    }

    /// X: `[B, H, N]` of the module's formulas.
    pub fn values(&self) -> &[C64] {
        &self.x
    }

    /// For changing X, or seeding its gradient.
    pub fn values_mut(&mut self) -> &mut [C64] {
        &mut self.x
    }
}

/// How the modes of one direction meet a chunk (the module's table).
struct Direction {
    growing: bool,
    e: f64,
    d: f64,
    i: f64,
}

impl Direction {
    fn both(norm_len: usize, position: usize, steps: usize) -> [Self; 2] {
        let (k0, t) = (position as f64, steps as f64);
        let left = norm_len as f64 - k0 - t;
        [
            Self { growing: false, e: 1.0, d: t, i: 0.0 },
            Self { growing: true, e: left, d: 0.0, i: k0 },
        ]
    }
}

impl<T: Real> Scan<T> {
    /// A plan for B sequences in chunks of up to `chunk` steps. `config.len` is not used; `config.channels` must be 1.
    pub fn new(config: KernelConfig, b: usize, chunk: usize) -> Result<Self> {
        let op = "Scan::new";
        let config = KernelConfig { len: chunk, ..config };
        config.validate(op)?;
        if config.channels != 1 || b == 0 {
            let what = format!("C must be 1 and B at least 1, but are {} and {b}", config.channels);
            return Err(Error::Invalid { op, what });
        }
        let (h, n) = (config.h, config.n);
        // The kernel of a chunk is the head of the whole one.
        let kernel = Kernel::new(config)?;
        let conv = Conv::new(b, chunk, h)?;
        let blocks = Blocks::new(chunk);
        let complex = |len: usize| vec![C64::ZERO; len];
        let zeros = |len: usize| vec![T::ZERO; len];
        let scratch = || Scratch {
            sums: vandermonde::Scratch::new(n, blocks),
            index: Vec::with_capacity(n),
            zeta: Vec::with_capacity(n),
            coefficients: Vec::with_capacity(n),
            m: [complex(n), complex(n)],
            s: [complex(n), complex(n)],
            row: zeros(chunk),
        };
        Ok(Self {
            b,
            kernel,
            conv,
            lambda: Lambda::with_capacity(&config),
            zeta: complex(h * n),
            c: complex(h * n),
            ready: false,
            u_rows: zeros(b * h * chunk),
            y_rows: zeros(b * h * chunk),
            du_rows: zeros(b * h * chunk),
            padded: [zeros(b * h * chunk), zeros(b * h * chunk), zeros(b * h * chunk)],
            dk: zeros(h * chunk),
            dk_sum: vec![0.0; h * chunk],
            grads: ModeGrads { c: complex(h * n), zeta: complex(h * n) },
            scratch: (0..par::workers().min(h)).map(|_| scratch()).collect(),
            config,
        })
    }

    /// The state before the first chunk.
    pub fn state(&self) -> ScanState {
        ScanState { position: 0, x: vec![C64::ZERO; self.b * self.config.h * self.config.n] }
    }

    /// Takes the parameters for the chunks to come, and forgets gathered gradients.
    pub fn set_params(&mut self, params: &Params<T>) -> Result<()> {
        let op = "Scan::set_params";
        params.validate(op, &self.config)?;
        self.ready = false;
        self.lambda.set(&self.config, params);
        let growing = self.lambda.count_growing();
        let (length, chunk) = (self.config.norm_len, self.config.len);
        if growing > 0 && chunk > length {
            return Err(Error::PastEnd { op, position: length, length, modes: growing });
        }
        self.kernel.forward(params, &mut self.dk)?;
        self.conv.set_kernel(&self.dk)?;
        let n = self.config.n;
        for h in 0..self.config.h {
            let delta = Deltas::for_channel(&self.config, params, h);
            let (values, growing) = self.lambda.system(h);
            for (mode, (&value, &grows)) in values.iter().zip(growing).enumerate() {
                let zeta = zeta(value, grows, delta);
                self.zeta[h * n + mode] = zeta;
                self.c[h * n + mode] = w_at(&self.config, params.w, 0, h, mode)
                    * Scale::new(&self.config, value, zeta).q;
            }
        }
        self.dk_sum.fill(0.0);
        self.grads.c.fill(C64::ZERO);
        self.grads.zeta.fill(C64::ZERO);
        self.ready = true;
        Ok(())
    }

    fn need_params(&self, op: &'static str) -> Result<()> {
        if self.ready {
            return Ok(());
        }
        Err(Error::Invalid { op, what: "no parameters yet: call set_params first".into() })
    }

    /// Steps of the chunk u, if it may be taken now.
    fn check(&self, op: &'static str, state: &ScanState, u: &[T]) -> Result<usize> {
        let (b, h) = (self.b, self.config.h);
        self.need_params(op)?;
        check_len(op, "state", "[B, H, N]", b * h * self.config.n, state.x.len())?;
        let steps = u.len() / (b * h);
        if steps == 0 || steps > self.config.len || steps * b * h != u.len() {
            let what = format!(
                "`u` must be [B, 1..={}, H] with B = {b} and H = {h}, but has {} elements",
                self.config.len,
                u.len()
            );
            return Err(Error::Invalid { op, what });
        }
        let (modes, length) = (self.lambda.count_growing(), self.config.norm_len);
        if modes > 0 && state.position + steps > length {
            let position = length.max(state.position);
            return Err(Error::PastEnd { op, position, length, modes });
        }
        check_finite(op, "u", u)?;
        Ok(steps)
    }

    /// One chunk: u `[B, T, H]` -> y `[B, T, H]`, T up to the chunk; `state` moves on by T.
    pub fn forward(&mut self, state: &mut ScanState, u: &[T], y: &mut [T]) -> Result<()> {
        let op = "Scan::forward";
        let steps = self.check(op, state, u)?;
        check_len(op, "y", "[B, T, H]", u.len(), y.len())?;
        let (b, h, n) = (self.b, self.config.h, self.config.n);
        if steps == self.config.len {
            self.conv.forward(u, y)?;
        } else {
            let [u_padded, y_padded, _] = &mut self.padded;
            pad(u, u_padded, b, steps * h);
            self.conv.forward(u_padded, y_padded)?;
            unpad(y_padded, y, b, steps * h);
        }
        to_rows(u, &mut self.u_rows, b, steps, h);
        let blocks = Blocks::new(self.config.len).shortened(steps);
        let directions = Direction::both(self.config.norm_len, state.position, steps);
        let (lambda, all_zeta, all_c) = (&self.lambda, &self.zeta, &self.c);
        let u_rows = &self.u_rows;
        let y_rows = Disjoint::new(&mut self.y_rows);
        let x = Disjoint::new(&mut state.x);
        par::for_each(&mut self.scratch, h, |scratch, h_at| {
            for sample in 0..b {
                // SAFETY: rows belong to one channel each.
                unsafe { y_rows.part((sample * h + h_at) * steps, steps) }.fill(T::ZERO);
            }
            for direction in &directions {
                let zeta = &all_zeta[h_at * n..][..n];
                if !scratch.select(lambda.system(h_at).1, direction.growing, zeta) {
                    continue;
                }
                scratch.sums.set_modes(blocks, &scratch.zeta);
                for sample in 0..b {
                    let at = sample * h + h_at;
                    // SAFETY: as above.
                    let (x, y) = unsafe { (x.part(at * n, n), y_rows.part(at * steps, steps)) };
                    scratch.coefficients.clear();
                    for (&mode, &zeta) in scratch.index.iter().zip(&scratch.zeta) {
                        let c = all_c[h_at * n + mode];
                        scratch.coefficients.push(c * exp(zeta * direction.e) * x[mode]);
                    }
                    let row = &mut scratch.row[..steps];
                    scratch.sums.sum(blocks, &scratch.coefficients, row);
                    add_row(y, row, direction.growing);
                    let u = &u_rows[at * steps..][..steps];
                    copy_row(row, u, !direction.growing);
                    let modes = scratch.index.len();
                    let [s0, s1] = &mut scratch.s;
                    scratch.sums.moments(blocks, row, &mut s0[..modes], &mut s1[..modes]);
                    for (i, (&mode, &zeta)) in scratch.index.iter().zip(&scratch.zeta).enumerate() {
                        let entered = exp(zeta * direction.i) * s0[i];
                        x[mode] = exp(zeta * direction.d) * x[mode] + entered;
                    }
                }
            }
        });
        add_from_rows(&self.y_rows, y, b, steps, h);
        state.position += steps;
        Ok(())
    }

    /// The backward of one chunk, to be called from the last chunk to the first.
    ///
    /// `state` is the state *before* the chunk, as it was when the chunk went forward; `d_state` holds the gradient of
    /// the state after it and receives the gradient of the state before it (start with zeros). Gradients of the
    /// parameters are gathered until [`Self::finish`].
    ///
    /// # Shapes
    /// u, dy, du: `[B, T, H]`.
    pub fn backward(
        &mut self,
        state: &ScanState,
        u: &[T],
        dy: &[T],
        d_state: &mut ScanState,
        du: &mut [T],
    ) -> Result<()> {
        let op = "Scan::backward";
        let steps = self.check(op, state, u)?;
        let (b, h, n) = (self.b, self.config.h, self.config.n);
        check_len(op, "dy", "[B, T, H]", u.len(), dy.len())?;
        check_len(op, "du", "[B, T, H]", u.len(), du.len())?;
        check_len(op, "d_state", "[B, H, N]", b * h * n, d_state.x.len())?;
        if steps == self.config.len {
            self.conv.backward(u, dy, du, &mut self.dk)?;
        } else {
            let [u_padded, dy_padded, du_padded] = &mut self.padded;
            pad(u, u_padded, b, steps * h);
            pad(dy, dy_padded, b, steps * h);
            self.conv.backward(u_padded, dy_padded, du_padded, &mut self.dk)?;
            unpad(du_padded, du, b, steps * h);
        }
        for (sum, &dk) in self.dk_sum.iter_mut().zip(&self.dk) {
            *sum += dk.to_f64();
        }
        to_rows(u, &mut self.u_rows, b, steps, h);
        to_rows(dy, &mut self.y_rows, b, steps, h);
        let blocks = Blocks::new(self.config.len).shortened(steps);
        let directions = Direction::both(self.config.norm_len, state.position, steps);
        let (lambda, all_zeta, all_c, x) = (&self.lambda, &self.zeta, &self.c, &state.x);
        let (u_rows, dy_rows) = (&self.u_rows, &self.y_rows);
        let du_rows = Disjoint::new(&mut self.du_rows);
        let d_x = Disjoint::new(&mut d_state.x);
        let (g_c, g_zeta) = (Disjoint::new(&mut self.grads.c), Disjoint::new(&mut self.grads.zeta));
        par::for_each(&mut self.scratch, h, |scratch, h_at| {
            // SAFETY: everything that is written belongs to one channel each.
            let (g_c, g_zeta) = unsafe { (g_c.part(h_at * n, n), g_zeta.part(h_at * n, n)) };
            for sample in 0..b {
                // SAFETY: as above.
                unsafe { du_rows.part((sample * h + h_at) * steps, steps) }.fill(T::ZERO);
            }
            for direction in &directions {
                let zeta = &all_zeta[h_at * n..][..n];
                if !scratch.select(lambda.system(h_at).1, direction.growing, zeta) {
                    continue;
                }
                scratch.sums.set_modes(blocks, &scratch.zeta);
                for sample in 0..b {
                    let at = sample * h + h_at;
                    let (u, dy) = (&u_rows[at * steps..][..steps], &dy_rows[at * steps..][..steps]);
                    let x = &x[at * n..][..n];
                    // SAFETY: as above.
                    let (d_x, du) =
                        unsafe { (d_x.part(at * n, n), du_rows.part(at * steps, steps)) };
                    let modes = scratch.index.len();
                    let row = &mut scratch.row[..steps];
                    let [m0, m1] = &mut scratch.m;
                    copy_row(row, dy, direction.growing);
                    scratch.sums.moments(blocks, row, &mut m0[..modes], &mut m1[..modes]);
                    let [s0, s1] = &mut scratch.s;
                    copy_row(row, u, !direction.growing);
                    scratch.sums.moments(blocks, row, &mut s0[..modes], &mut s1[..modes]);
                    scratch.coefficients.clear();
                    for (i, (&mode, &zeta)) in scratch.index.iter().zip(&scratch.zeta).enumerate() {
                        let Direction { e, d, i: into, .. } = *direction;
                        let (exp_e, exp_d, exp_i) =
                            (exp(zeta * e), exp(zeta * d), exp(zeta * into));
                        let (c, x, g) = (all_c[h_at * n + mode], x[mode], d_x[mode]);
                        g_c[mode] += (exp_e * x * m0[i]).conj();
                        g_zeta[mode] += (c * exp_e * x * (m0[i] * e + m1[i])).conj();
                        g_zeta[mode] += (exp_d * x * d + exp_i * (s0[i] * into + s1[i])).conj() * g;
                        d_x[mode] = (c * exp_e * m0[i]).conj() + exp_d.conj() * g;
                        scratch.coefficients.push(g.conj() * exp_i);
                    }
                    scratch.sums.sum(blocks, &scratch.coefficients, row);
                    add_row(du, row, !direction.growing);
                }
            }
        });
        add_from_rows(&self.du_rows, du, b, steps, h);
        d_state.position = state.position;
        Ok(())
    }

    /// Writes the gradients of the parameters gathered since [`Self::set_params`], which must have had the same ones.
    pub fn finish(&mut self, params: &Params<T>, grads: ParamGrads<T>) -> Result<()> {
        self.need_params("Scan::finish")?;
        for (dk, &sum) in self.dk.iter_mut().zip(&self.dk_sum) {
            *dk = T::from_f64(sum);
        }
        self.kernel.backward_with("Scan::finish", params, &self.dk, Some(&self.grads), grads)
    }
}

impl<T: Real> Scratch<T> {
    /// Collects the modes of one direction; false if there are none.
    fn select(&mut self, grows: &[bool], growing: bool, zeta: &[C64]) -> bool {
        self.index.clear();
        self.zeta.clear();
        for (mode, &grows) in grows.iter().enumerate() {
            if grows == growing {
                self.index.push(mode);
                self.zeta.push(zeta[mode]);
            }
        }
        !self.index.is_empty()
    }
}

/// to = from, or from reversed in time.
fn copy_row<T: Real>(to: &mut [T], from: &[T], reversed: bool) {
    to.copy_from_slice(from);
    if reversed {
        to.reverse();
    }
}

/// to += from, or from reversed in time.
fn add_row<T: Real>(to: &mut [T], from: &mut [T], reversed: bool) {
    if reversed {
        from.reverse();
    }
    for (to, &from) in to.iter_mut().zip(&*from) {
        *to += from;
    }
}

/// `[B, T, H]` into `[B, H, T]`.
fn to_rows<T: Real>(x: &[T], rows: &mut [T], b: usize, steps: usize, h: usize) {
    for_transposed(b, steps, h, |at, row| rows[row] = x[at]);
}

/// `[B, T, H]` += `[B, H, T]`.
fn add_from_rows<T: Real>(rows: &[T], x: &mut [T], b: usize, steps: usize, h: usize) {
    for_transposed(b, steps, h, |at, row| x[at] += rows[row]);
}

/// Calls `pair(index in `[B, T, H]`, index in `[B, H, T]`)` for every element, in blocks that fit the cache.
fn for_transposed(b: usize, steps: usize, h: usize, mut pair: impl FnMut(usize, usize)) {
    const BLOCK: usize = 16;
    for sample in 0..b {
        for h0 in (0..h).step_by(BLOCK) {
            for t0 in (0..steps).step_by(BLOCK) {
                for c in h0..h.min(h0 + BLOCK) {
                    for t in t0..steps.min(t0 + BLOCK) {
                        pair((sample * steps + t) * h + c, (sample * h + c) * steps + t);
                    }
                }
            }
        }
    }
}

/// Copies each sample's `size` elements to the start of its longer place, zeros behind.
fn pad<T: Real>(x: &[T], padded: &mut [T], b: usize, size: usize) {
    let whole = padded.len() / b;
    for (x, padded) in x.chunks_exact(size).zip(padded.chunks_exact_mut(whole)) {
        padded[..size].copy_from_slice(x);
        padded[size..].fill(T::ZERO);
    }
}

/// The inverse of [`pad`].
fn unpad<T: Real>(padded: &[T], x: &mut [T], b: usize, size: usize) {
    let whole = padded.len() / b;
    for (x, padded) in x.chunks_exact_mut(size).zip(padded.chunks_exact(whole)) {
        x.copy_from_slice(&padded[..size]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Delta, Variant};

    /// Parameters that are refused must not leave the old ones half in place.
    #[test]
    fn refused_parameters_leave_no_plan() {
        let config = KernelConfig::new(Variant::Softmax, 1, 1, 4).delta(Delta::Tied);
        let mut scan = Scan::<f64>::new(config, 1, 8).unwrap();
        let mut state = scan.state();
        let params = |re: &'static [f64]| Params {
            lambda_re: re,
            lambda_im: &[1.0],
            delta_log: &[0.0],
            w: &[1.0, 0.0],
        };
        let (mut re, mut im, mut delta_log, mut w) = ([0.0], [0.0], [0.0], [0.0; 2]);
        let mut finish = |scan: &mut Scan<f64>| {
            let grads = ParamGrads {
                lambda_re: &mut re,
                lambda_im: &mut im,
                delta_log: &mut delta_log,
                w: &mut w,
            };
            scan.finish(&params(&[-1.0]), grads)
        };
        let mut y = [0.0; 2];
        assert!(scan.forward(&mut state, &[1.0, 2.0], &mut y).is_err(), "no parameters");
        assert!(finish(&mut scan).is_err(), "no parameters");
        scan.set_params(&params(&[-1.0])).unwrap();
        scan.forward(&mut state, &[1.0, 2.0], &mut y).unwrap();
        finish(&mut scan).unwrap();
        // A growing mode, and a chunk that is longer than the softmax.
        assert!(matches!(scan.set_params(&params(&[1.0])), Err(Error::PastEnd { .. })));
        assert!(scan.forward(&mut state, &[1.0, 2.0], &mut y).is_err());
        assert!(scan.forward(&mut state, &[f64::NAN], &mut y[..1]).is_err());
        assert!(Scan::<f64>::new(config, 0, 8).is_err());
    }
}
