//! From parameters to the coefficients of the Cauchy sums, and their gradients back.
//!
//! With A = Λ − PP*, R_XY = Δ·X(z − ΔΛ)⁻¹Y: poles w = Δλ and numerators v = Δ·x·y of the products conj(P)·B, |P|²,
//! C̃·B and C̃·P. Each v is two coefficients, p = −2 Re(v·conj(w)) and s = 2 Re v (`cauchy.rs`).

use super::cauchy::Cauchy;
use super::params::{KernelConfig, Params, complex_at, delta, lambda};
use super::woodbury::rows;
use crate::complex::C64;
use crate::real::Real;

/// Λ, P and B in f64: `[S, N/2]` each.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shared {
    pub lambda: Vec<C64>,
    pub p: Vec<C64>,
    pub b: Vec<C64>,
}

impl Shared {
    pub(crate) fn with_capacity(config: &KernelConfig) -> Self {
        let [lambda, p, b] = [(); 3].map(|()| Vec::with_capacity(config.systems * config.pairs()));
        Self { lambda, p, b }
    }

    pub(crate) fn set<T: Real>(&mut self, params: &Params<T>) {
        let modes = params.lambda_re.len();
        self.lambda.clear();
        self.p.clear();
        self.b.clear();
        let parts = params.lambda_re.iter().zip(params.lambda_im);
        self.lambda.extend(parts.map(|(&re, &im)| lambda(re, im)));
        self.p.extend((0..modes).map(|i| complex_at(params.p, i)));
        self.b.extend((0..modes).map(|i| complex_at(params.b, i)));
    }

    /// Λ, P and B of feature h: `[N/2]` each.
    pub(crate) fn of_feature(&self, config: &KernelConfig, h: usize) -> System<'_> {
        let pairs = config.pairs();
        let start = h % config.systems * pairs;
        let at = start..start + pairs;
        System { lambda: &self.lambda[at.clone()], p: &self.p[at.clone()], b: &self.b[at] }
    }
}

/// Those of one system: `[N/2]` each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct System<'a> {
    pub lambda: &'a [C64],
    pub p: &'a [C64],
    pub b: &'a [C64],
}

/// Gradients of Λ, P and B of one mode.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SharedGrad {
    pub lambda: C64,
    pub p: C64,
    pub b: C64,
}

/// Poles, numerators and coefficients of one feature.
pub(crate) struct Channel {
    pub delta: f64,
    /// `[pairs]`: w.
    pub w: Vec<C64>,
    /// `[2 + 2C, pairs]`: v.
    v: Vec<C64>,
    /// `[rows, pairs]`: p and s of each v.
    pub coefficients: Vec<f64>,
}

impl Channel {
    pub(crate) fn new(config: &KernelConfig) -> Self {
        let (pairs, rows) = (config.pairs(), rows(config.channels));
        Self {
            delta: 0.0,
            w: vec![C64::ZERO; pairs],
            v: vec![C64::ZERO; rows / 2 * pairs],
            coefficients: vec![0.0; rows * pairs],
        }
    }

    /// Takes the parameters of feature h.
    pub(crate) fn set<T: Real>(
        &mut self,
        config: &KernelConfig,
        shared: &Shared,
        params: &Params<T>,
        h: usize,
    ) {
        let pairs = config.pairs();
        let system = shared.of_feature(config, h);
        self.delta = delta(params.delta_log[h]);
        for n in 0..pairs {
            let (b, p) = (system.b[n] * self.delta, system.p[n] * self.delta);
            self.w[n] = system.lambda[n] * self.delta;
            self.v[n] = system.p[n].conj() * b;
            self.v[pairs + n] = system.p[n].conj() * p;
            for channel in 0..config.channels {
                let c = complex_at(params.c, (channel * config.h + h) * pairs + n);
                self.v[(2 + 2 * channel) * pairs + n] = c * b;
                self.v[(3 + 2 * channel) * pairs + n] = c * p;
            }
        }
        let coefficients = self.coefficients.chunks_exact_mut(2 * pairs);
        for (v, coefficients) in self.v.chunks_exact(pairs).zip(coefficients) {
            let (p, s) = coefficients.split_at_mut(pairs);
            for n in 0..pairs {
                p[n] = -2.0 * (v[n].re * self.w[n].re + v[n].im * self.w[n].im);
                s[n] = 2.0 * v[n].re;
            }
        }
    }

    /// K̂ at ω = −1, where z has no value: the limit is Σ Re v of R_CB, and the rest vanishes.
    pub(crate) fn at_minus_one(&self, channel: usize) -> f64 {
        let pairs = self.w.len();
        self.v[(2 + 2 * channel) * pairs..][..pairs].iter().map(|v| v.re).sum()
    }

    /// Gradients of one mode, given those of its coefficients and of K̂ at ω = −1 `[C]`: shared ones and Δ_log's
    /// part are returned, that of C̃ is handed to `put` by kernel.
    pub(crate) fn backward<T: Real>(
        &self,
        mode: Mode<'_, T>,
        cauchy: &Cauchy,
        g_minus_one: &[f64],
        mut put: impl FnMut(usize, C64),
    ) -> (SharedGrad, f64) {
        let Mode { config, system, params, h, n } = mode;
        let (pairs, w) = (config.pairs(), self.w[n]);
        let mut g_w = cauchy.pole(n, w);
        let mut g_log = 0.0;
        // g_v of numerator i; its part of g_w and of Δ's.
        let mut numerator = |i: usize, direct: f64| {
            let v = self.v[i * pairs + n];
            let (g_p, g_s) = (cauchy.coefficient(n, 2 * i), cauchy.coefficient(n, 2 * i + 1));
            let g_v = C64::new(2.0 * g_s - 2.0 * g_p * w.re + direct, -2.0 * g_p * w.im);
            g_w -= v * (2.0 * g_p);
            g_log += (v.conj() * g_v).re;
            g_v * self.delta
        };
        let (p, b) = (system.p[n], system.b[n]);
        let (g_pb, g_pp) = (numerator(0, 0.0), numerator(1, 0.0));
        let mut grad =
            SharedGrad { lambda: C64::ZERO, p: b * g_pb.conj() + p * (2.0 * g_pp.re), b: p * g_pb };
        for (channel, &direct) in g_minus_one.iter().enumerate() {
            let c = complex_at(params.c, (channel * config.h + h) * pairs + n);
            let (g_cb, g_cp) =
                (numerator(2 + 2 * channel, direct), numerator(3 + 2 * channel, 0.0));
            put(channel, b.conj() * g_cb + p.conj() * g_cp);
            grad.b += c.conj() * g_cb;
            grad.p += c.conj() * g_cp;
        }
        grad.lambda = g_w * self.delta;
        g_log += (w.conj() * g_w).re;
        (grad, g_log)
    }
}

/// One mode of one feature.
pub(crate) struct Mode<'a, T> {
    pub config: &'a KernelConfig,
    pub system: System<'a>,
    pub params: &'a Params<'a, T>,
    pub h: usize,
    pub n: usize,
}
