//! From parameters to modes: every kernel of the paper is K_l = Re Σ_n c_n·exp(ζ_n·k) with Re ζ ≤ 0.
//!
//! A mode with Re λ ≤ 0 runs forwards, k = l. A softmax mode with Re λ > 0 runs backwards in time, k = L−1−l and
//! ζ = −λΔ: its row is normalised by its largest element, the last one, so no power ever exceeds 1 in modulus.
//!
//! c = W·q, with λ unscaled by Δ:
//! - softmax: q = (e^ζ − 1)·reciprocal_ε((e^{ζL} − 1)·λ)   (the listing's form)
//! - exp: q = (e^ζ − 1)·conj(λ)/max(|λ|², ε)
//! - exp-no-scale: q = 1
//!
//! Gradients are for real and imaginary parts, g_x = ∂loss/∂Re x + i·∂loss/∂Im x. For holomorphic f, y = f(x) gives
//! g_x = conj(f'(x))·g_y; reciprocal_ε is not holomorphic and needs its second Wirtinger derivative too.

use super::params::{DELTA_LOG_LIMIT, EPSILON, KernelConfig, Params, Variant};
use crate::complex::{C64, expm1, reciprocal_eps};
use crate::real::Real;

/// Largest |Re λ|, |Im λ| and |W| that are kept, far beyond use: products with each other and with Δ stay finite.
const LIMIT: f64 = 1e90;

/// Λ of all systems in f64, and which of their modes grow.
#[derive(Debug, Clone)]
pub(crate) struct Lambda {
    n: usize,
    /// `[S, N]`.
    values: Vec<C64>,
    /// `[S, N]`: Re λ > 0.
    growing: Vec<bool>,
}

impl Lambda {
    pub(crate) fn with_capacity(config: &KernelConfig) -> Self {
        let size = config.systems * config.n;
        Self { n: config.n, values: Vec::with_capacity(size), growing: Vec::with_capacity(size) }
    }

    /// Λ of feature h, and which of its modes grow: `[N]` each.
    pub(crate) fn system(&self, h: usize) -> (&[C64], &[bool]) {
        let at = h * self.n % self.values.len();
        (&self.values[at..][..self.n], &self.growing[at..][..self.n])
    }

    pub(crate) fn set<T: Real>(&mut self, config: &KernelConfig, params: &Params<T>) {
        self.values.clear();
        self.growing.clear();
        for (re, im) in params.lambda_re.iter().zip(params.lambda_im) {
            let lambda = limited(lambda_re(config.variant, re.to_f64()), im.to_f64());
            self.values.push(lambda);
            self.growing.push(lambda.re > 0.0);
        }
    }

    pub(crate) fn count_growing(&self) -> usize {
        self.growing.iter().filter(|&&g| g).count()
    }
}

/// re + i·im within [`LIMIT`].
fn limited(re: f64, im: f64) -> C64 {
    C64::new(re.clamp(-LIMIT, LIMIT), im.clamp(-LIMIT, LIMIT))
}

/// Re λ from the stored parameter.
fn lambda_re(variant: Variant, stored: f64) -> f64 {
    match variant {
        Variant::Softmax => stored,
        // Limited as Δ_log is.
        _ => -stored.clamp(-DELTA_LOG_LIMIT, DELTA_LOG_LIMIT).exp(),
    }
}

/// Δ of one channel for the real and the imaginary part of Λ.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deltas {
    pub re: f64,
    pub im: f64,
}

impl Deltas {
    pub(crate) fn for_channel<T: Real>(
        config: &KernelConfig,
        params: &Params<T>,
        h: usize,
    ) -> Self {
        let per = config.delta.per_channel();
        let at = |i: usize| {
            let log = params.delta_log[h * per + i].to_f64();
            log.clamp(-DELTA_LOG_LIMIT, DELTA_LOG_LIMIT).exp()
        };
        Self { re: at(0), im: at(per - 1) }
    }
}

/// ζ = ±λΔ with Re ζ ≤ 0: the exponent of one step of a mode, in the direction it runs.
pub(crate) fn zeta(lambda: C64, growing: bool, delta: Deltas) -> C64 {
    let z = C64::new(lambda.re * delta.re, lambda.im * delta.im);
    if growing { -z } else { z }
}

/// q, the factor between W and a mode's coefficient, with what its backward needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    pub q: C64,
    /// e^ζ − 1 and e^{ζL} − 1.
    num: C64,
    den: C64,
    /// The reciprocal.
    r: C64,
}

impl Scale {
    pub(crate) fn new(config: &KernelConfig, lambda: C64, zeta: C64) -> Self {
        let one = Self { q: C64::ONE, num: C64::ZERO, den: C64::ZERO, r: C64::ZERO };
        match config.variant {
            Variant::Softmax => {
                let (num, den) = (expm1(zeta), expm1(zeta * config.norm_len as f64));
                let r = reciprocal_eps(den * lambda, EPSILON);
                Self { q: num * r, num, den, r }
            }
            Variant::Exp => {
                let (num, r) = (expm1(zeta), clamped_reciprocal(lambda));
                Self { q: num * r, num, r, ..one }
            }
            Variant::ExpNoScale => one,
        }
    }

    /// Gradients (g_ζ, g_λ), given g_q.
    pub(crate) fn backward(&self, config: &KernelConfig, lambda: C64, g_q: C64) -> (C64, C64) {
        let Self { num, den, r, .. } = *self;
        let r_conj = r.conj();
        let (g_num, g_r) = (r_conj * g_q, num.conj() * g_q);
        let exp_zeta = num + 1.0;
        match config.variant {
            Variant::Softmax => {
                // r = conj(x)/D, D = |x|² + ε:  ∂r/∂x = −r², ∂r/∂conj(x) = ε/D².
                let inverse_d = 1.0 / ((den * lambda).norm_sqr() + EPSILON);
                let g_x = -r_conj * r_conj * g_r + g_r.conj() * (EPSILON * inverse_d * inverse_d);
                let (g_den, g_lambda) = (lambda.conj() * g_x, den.conj() * g_x);
                let exp_zeta_len = (den + 1.0).conj() * config.norm_len as f64;
                (exp_zeta.conj() * g_num + exp_zeta_len * g_den, g_lambda)
            }
            Variant::Exp => {
                let g_lambda = if lambda.norm_sqr() > EPSILON {
                    -r_conj * r_conj * g_r
                } else {
                    g_r.conj() / EPSILON
                };
                (exp_zeta.conj() * g_num, g_lambda)
            }
            Variant::ExpNoScale => (C64::ZERO, C64::ZERO),
        }
    }
}

/// W[channel, h, mode]
pub(crate) fn w_at<T: Real>(
    config: &KernelConfig,
    w: &[T],
    channel: usize,
    h: usize,
    mode: usize,
) -> C64 {
    let at = 2 * ((channel * config.h + h) * config.n + mode);
    limited(w[at].to_f64(), w[at + 1].to_f64())
}

/// conj(λ)/max(|λ|², ε): 1/λ except next to 0.
fn clamped_reciprocal(lambda: C64) -> C64 {
    if lambda.norm_sqr() > EPSILON { reciprocal_eps(lambda, 0.0) } else { lambda.conj() / EPSILON }
}

/// Adds one channel's gradients of ζ and λ, for all modes, to those of the parameters.
pub(crate) struct ParamSums {
    /// `[N]`, of Re λ and Im λ.
    pub lambda: Vec<C64>,
    /// Of this channel's log Δ for the real and the imaginary part.
    pub delta_log: [f64; 2],
}

impl ParamSums {
    pub(crate) fn new(n: usize) -> Self {
        Self { lambda: vec![C64::ZERO; n], delta_log: [0.0; 2] }
    }

    pub(crate) fn clear(&mut self) {
        self.lambda.fill(C64::ZERO);
        self.delta_log = [0.0; 2];
    }

    pub(crate) fn add(
        &mut self,
        mode: usize,
        lambda: C64,
        growing: bool,
        delta: Deltas,
        g_zeta: C64,
        g_lambda: C64,
    ) {
        // z = λ_re·Δ_re + i·λ_im·Δ_im, ζ = ±z.
        let g_z = if growing { -g_zeta } else { g_zeta };
        self.lambda[mode] += g_lambda + C64::new(g_z.re * delta.re, g_z.im * delta.im);
        self.delta_log[0] += g_z.re * lambda.re * delta.re;
        self.delta_log[1] += g_z.im * lambda.im * delta.im;
    }
}

/// ∂Re λ/∂(stored parameter).
pub(crate) fn lambda_re_slope(variant: Variant, stored: f64) -> f64 {
    match variant {
        Variant::Softmax => 1.0,
        _ if stored.abs() > DELTA_LOG_LIMIT => 0.0,
        _ => -stored.exp(),
    }
}

/// 1 inside the limit of Δ_log, 0 beyond.
pub(crate) fn delta_log_slope(stored: f64) -> f64 {
    if stored.abs() > DELTA_LOG_LIMIT { 0.0 } else { 1.0 }
}
