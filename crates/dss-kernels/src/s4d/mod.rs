//! S4D (Gu, Gupta, Goel, Ré, *On the Parameterization and Initialization of Diagonal State Space Models*, 2022): the
//! diagonal successor of DSS and S4. Kernels K: [C, H, L] forward and backward, and the recurrence.
//!
//! K_l = 2 Re Σ_n C_n·B̄_n·ā_n^l over the N/2 stored modes, Λ = −exp(Λ_re) + i·Λ_im. It is the sum of
//! `kernel/vandermonde.rs` with other exponents and coefficients (`modes.rs`).
//!
//! ```
//! use dss_kernels::s4d::{Discretisation, Kernel, KernelConfig, Params, recurrence};
//! use dss_kernels::init::{S4dInit, s4d_lambda};
//! # fn main() -> dss_kernels::Result<()> {
//! let (h, n, l) = (1, 8, 100);
//! let lambda = s4d_lambda(S4dInit::Lin, n)?;
//! let lambda_re: Vec<f64> = lambda.iter().map(|z| (-z.re).ln()).collect();
//! let lambda_im: Vec<f64> = lambda.iter().map(|z| z.im).collect();
//! let params =
//!     Params { lambda_re: &lambda_re, lambda_im: &lambda_im, b: None, c: &[0.5; 8], delta_log: &[-3.0] };
//! let config = KernelConfig::new(Discretisation::ZeroOrderHold, h, n, l);
//! let mut k = vec![0.0; h * l];
//! Kernel::new(config)?.forward(&params, &mut k)?;
//!
//! // The answer of the recurrence to an impulse is the kernel.
//! let model = recurrence(config, &params)?;
//! let mut state = model.state();
//! let mut y = [0.0];
//! for (t, k) in k.iter().enumerate() {
//!     model.step(&mut state, &[if t == 0 { 1.0 } else { 0.0 }], &mut y)?;
//!     assert!((y[0] - k).abs() < 1e-12);
//! }
//! # Ok(())
//! # }
//! ```

mod modes;
mod params;

use crate::complex::C64;
use crate::error::{Result, check_len};
use crate::kernel::vandermonde::{self, Blocks};
use crate::kernel::{
    self, Variant,
    modes::{delta_log_slope, lambda_re_slope},
};
use crate::par::{self, Disjoint};
use crate::real::Real;
use crate::recurrence::Recurrence;
use modes::{Mode, complex_at};

pub use params::{Discretisation, KernelConfig, ParamGrads, Params};

/// Plan and buffers for the kernels of one S4D layer.
///
/// Time O(C·H·N·L) at the speed of a matrix product, memory O(N√L) per worker next to the result. After [`Kernel::new`]
/// nothing allocates.
///
/// Finite parameters give finite kernels and gradients: |Δ_log| and |Λ_re| beyond
/// [`DELTA_LOG_LIMIT`](crate::kernel::DELTA_LOG_LIMIT) count as the limit, with zero gradient; what is beyond the range
/// of `T` saturates.
pub struct Kernel<T> {
    config: KernelConfig,
    blocks: Blocks,
    scratch: Vec<Scratch<T>>,
    /// `[H, N/2]`: each feature's share of the gradients of Λ and B, summed in the order of the features.
    shares: Vec<[C64; 2]>,
}

struct Scratch<T> {
    sums: vandermonde::Scratch<T>,
    /// `[N/2]` each.
    modes: Vec<Mode>,
    zeta: Vec<C64>,
    coefficients: Vec<C64>,
    s0: Vec<C64>,
    s1: Vec<C64>,
    g_zeta: Vec<C64>,
    g_x: Vec<C64>,
}

impl<T: Real> Scratch<T> {
    fn new(config: &KernelConfig, blocks: Blocks) -> Self {
        let pairs = config.pairs();
        let complex = || vec![C64::ZERO; pairs];
        Self {
            sums: vandermonde::Scratch::new(pairs, blocks),
            modes: Vec::with_capacity(pairs),
            zeta: Vec::with_capacity(pairs),
            coefficients: complex(),
            s0: complex(),
            s1: complex(),
            g_zeta: complex(),
            g_x: complex(),
        }
    }

    /// Takes the modes of feature h.
    fn set(&mut self, config: &KernelConfig, blocks: Blocks, params: &Params<T>, h: usize) {
        self.modes.clear();
        self.modes.extend((0..config.pairs()).map(|n| Mode::new(config, params, h, n)));
        self.zeta.clear();
        self.zeta.extend(self.modes.iter().map(|mode| mode.zeta));
        self.sums.set_modes(blocks, &self.zeta);
    }
}

impl<T: Real> Kernel<T> {
    /// A plan for kernels of this size.
    pub fn new(config: KernelConfig) -> Result<Self> {
        config.validate("s4d::Kernel::new")?;
        let blocks = Blocks::new(config.len);
        let workers = par::workers().min(config.h);
        Ok(Self {
            blocks,
            scratch: (0..workers).map(|_| Scratch::new(&config, blocks)).collect(),
            shares: vec![[C64::ZERO; 2]; config.h * config.pairs()],
            config,
        })
    }

    /// The variant and sizes of this plan.
    pub fn config(&self) -> &KernelConfig {
        &self.config
    }

    /// Computes K: `[C, H, L]`.
    pub fn forward(&mut self, params: &Params<T>, k: &mut [T]) -> Result<()> {
        let op = "s4d::Kernel::forward";
        let (config, blocks) = (self.config, self.blocks);
        params.validate(op, &config)?;
        let KernelConfig { channels, h: features, len, .. } = config;
        check_len(op, "k", "[C, H, L]", channels * features * len, k.len())?;
        // The sum of all modes stays within the range.
        let limit = T::MAX / (8 * config.n) as f64;
        let k = Disjoint::new(k);
        par::for_each(&mut self.scratch, features, |scratch, h| {
            scratch.set(&config, blocks, params, h);
            for channel in 0..channels {
                let at = channel * features + h;
                let coefficients = scratch.coefficients.iter_mut().zip(&scratch.modes);
                for (n, (coefficient, mode)) in coefficients.enumerate() {
                    let c = mode.coefficient(complex_at(params.c, at * config.pairs() + n));
                    *coefficient = C64::new(c.re.clamp(-limit, limit), c.im.clamp(-limit, limit));
                }
                // SAFETY: rows belong to one feature h each.
                let row = unsafe { k.part(at * len, len) };
                scratch.sums.sum(blocks, &scratch.coefficients, row);
            }
        });
        Ok(())
    }

    /// Given dk = ∂loss/∂K: `[C, H, L]`, writes the gradients of all parameters, those of B only if they are asked for.
    pub fn backward(&mut self, params: &Params<T>, dk: &[T], grads: ParamGrads<T>) -> Result<()> {
        let op = "s4d::Kernel::backward";
        let (config, blocks, pairs) = (self.config, self.blocks, self.config.pairs());
        params.validate(op, &config)?;
        grads.validate(op, &config)?;
        let KernelConfig { channels, h: features, len, systems, .. } = config;
        check_len(op, "dk", "[C, H, L]", channels * features * len, dk.len())?;
        let shares = Disjoint::new(&mut self.shares);
        let g_c = Disjoint::new(grads.c);
        let g_delta = Disjoint::new(grads.delta_log);
        par::for_each(&mut self.scratch, features, |scratch, h| {
            scratch.set(&config, blocks, params, h);
            let Scratch { sums, modes, s0, s1, g_zeta, g_x, .. } = scratch;
            g_zeta.fill(C64::ZERO);
            g_x.fill(C64::ZERO);
            for channel in 0..channels {
                let at = channel * features + h;
                sums.moments(blocks, &dk[at * len..][..len], s0, s1);
                // SAFETY: rows of C belong to one feature h each.
                let g_c = unsafe { g_c.part(2 * at * pairs, 2 * pairs) };
                for (n, mode) in modes.iter().enumerate() {
                    let c = complex_at(params.c, at * pairs + n);
                    let g_coefficient = s0[n].conj();
                    g_zeta[n] += (mode.coefficient(c) * s1[n]).conj();
                    g_x[n] += 2.0 * c.conj() * g_coefficient;
                    let g = 2.0 * (mode.b * mode.q).conj() * g_coefficient;
                    (g_c[2 * n], g_c[2 * n + 1]) = (T::from_f64(g.re), T::from_f64(g.im));
                }
            }
            // SAFETY: each feature h has its own share and its own Δ_log.
            let (share, g_delta) = unsafe { (shares.part(h * pairs, pairs), g_delta.part(h, 1)) };
            let mut g_log = 0.0;
            for (n, (mode, share)) in modes.iter().zip(share).enumerate() {
                let grad = mode.backward(g_zeta[n], g_x[n]);
                *share = [grad.lambda, grad.b];
                g_log += grad.delta_log;
            }
            let slope = delta_log_slope(params.delta_log[h].to_f64());
            g_delta[0] = T::from_f64(slope * g_log);
        });
        let mut g_b = grads.b;
        for at in 0..systems * pairs {
            let mut sum = [C64::ZERO; 2];
            for [lambda, b] in self.shares[at..].iter().step_by(systems * pairs) {
                sum[0] += lambda;
                sum[1] += b;
            }
            let slope = lambda_re_slope(Variant::Exp, params.lambda_re[at].to_f64());
            grads.lambda_re[at] = T::from_f64(slope * sum[0].re);
            grads.lambda_im[at] = T::from_f64(sum[0].im);
            if let Some(g_b) = &mut g_b {
                g_b[2 * at] = T::from_f64(sum[1].re);
                g_b[2 * at + 1] = T::from_f64(sum[1].im);
            }
        }
        Ok(())
    }
}

/// The kernels as a recurrence. Its configuration reads as that of an exp-no-scale kernel with N/2 modes: the same sums.
pub fn recurrence<T: Real>(config: KernelConfig, params: &Params<T>) -> Result<Recurrence<T>> {
    let op = "s4d::recurrence";
    config.validate(op)?;
    params.validate(op, &config)?;
    let pairs = config.pairs();
    let modes = || {
        (0..config.h).flat_map(move |h| (0..pairs).map(move |n| Mode::new(&config, params, h, n)))
    };
    let sums = kernel::KernelConfig::new(Variant::ExpNoScale, config.h, pairs, config.len)
        .channels(config.channels);
    Ok(Recurrence::from_modes(
        sums,
        vec![false; config.h * pairs],
        modes().map(|mode| mode.zeta).collect(),
        modes().map(|mode| mode.b * mode.q).collect(),
        |channel, h, n| 2.0 * complex_at(params.c, (channel * config.h + h) * pairs + n),
    ))
}
