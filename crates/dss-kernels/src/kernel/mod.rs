//! The DSS kernels K: [C, H, L] from their parameters, forward and backward (§3.1, Alg. 1).

pub(crate) mod modes;
mod params;
mod reference;
pub(crate) mod vandermonde;

use crate::complex::{C64, exp};
use crate::error::{Error, Result, check_len};
use crate::par::{self, Disjoint};
use crate::real::Real;
use modes::{Deltas, Lambda, ParamSums, Scale, delta_log_slope, lambda_re_slope, w_at, zeta};
use vandermonde::Blocks;

pub use params::{DELTA_LOG_LIMIT, Delta, EPSILON, KernelConfig, ParamGrads, Params, Variant};
pub use reference::{kernel_listing, kernel_softmax_eps};

/// Plan and buffers for the kernels of one layer.
///
/// Time O(C·H·N·L) at the speed of a matrix product, memory O(N√L + L) per worker next to the result: the `[H, N, L]`
/// tensor of the paper's listing never exists. After [`Kernel::new`] nothing allocates.
///
/// Finite parameters give finite kernels and gradients. Re λ > 0 (softmax) is exact; λ → 0 and λΔL → 2πik are
/// regularised by [`EPSILON`] as in the paper's listing; |Δ_log| beyond [`DELTA_LOG_LIMIT`] counts as the limit, with
/// zero gradient; coefficients W·q beyond 1/(8N) of the range of `T`, and gradients beyond the range, saturate.
pub struct Kernel<T> {
    config: KernelConfig,
    blocks: Blocks,
    lambda: Lambda,
    scratch: Vec<Scratch<T>>,
    /// `[H, N]`: each channel's share of the gradient of Λ, summed in the order of the channels.
    lambda_shares: Vec<C64>,
}

struct Scratch<T> {
    sums: vandermonde::Scratch<T>,
    /// Modes of one direction: indices, exponents, coefficients.
    index: Vec<usize>,
    zeta: Vec<C64>,
    scale: Vec<Scale>,
    c: Vec<C64>,
    s0: Vec<C64>,
    s1: Vec<C64>,
    g_zeta: Vec<C64>,
    g_q: Vec<C64>,
    /// `[L]`: a kernel of the modes that run backwards.
    reversed: Vec<T>,
    params: ParamSums,
}

impl<T: Real> Scratch<T> {
    fn new(config: &KernelConfig, blocks: Blocks) -> Self {
        let complex = || vec![C64::ZERO; config.n];
        Self {
            sums: vandermonde::Scratch::new(config.n, blocks),
            index: Vec::with_capacity(config.n),
            zeta: Vec::with_capacity(config.n),
            scale: Vec::with_capacity(config.n),
            c: Vec::with_capacity(config.n),
            s0: complex(),
            s1: complex(),
            g_zeta: complex(),
            g_q: complex(),
            reversed: vec![T::ZERO; config.len],
            params: ParamSums::new(config.n),
        }
    }

    /// Collects the modes of a channel that run in one direction; false if there are none.
    fn select(
        &mut self,
        config: &KernelConfig,
        (lambda, grows): (&[C64], &[bool]),
        delta: Deltas,
        growing: bool,
    ) -> bool {
        self.index.clear();
        self.zeta.clear();
        self.scale.clear();
        for (i, (&value, &grows)) in lambda.iter().zip(grows).enumerate() {
            if grows == growing {
                let zeta = zeta(value, grows, delta);
                self.index.push(i);
                self.zeta.push(zeta);
                self.scale.push(Scale::new(config, value, zeta));
            }
        }
        !self.index.is_empty()
    }

    /// c = W·q of channel h, kernel `channel`; times e^{ζ(L_norm − L)} for the modes that run backwards from the end
    /// of a longer kernel.
    fn set_coefficients(
        &mut self,
        config: &KernelConfig,
        w: &[T],
        channel: usize,
        h: usize,
        ahead: usize,
    ) {
        self.c.clear();
        // The sum of all modes stays within the range.
        let limit = T::MAX / (8 * config.n) as f64;
        for (i, &mode) in self.index.iter().enumerate() {
            let w = w_at(config, w, channel, h, mode);
            let shift = if ahead == 0 { C64::ONE } else { exp(self.zeta[i] * ahead as f64) };
            let c = w * self.scale[i].q * shift;
            self.c.push(C64::new(c.re.clamp(-limit, limit), c.im.clamp(-limit, limit)));
        }
    }
}

impl<T: Real> Kernel<T> {
    /// A plan for kernels of this variant and size.
    pub fn new(config: KernelConfig) -> Result<Self> {
        config.validate("Kernel::new")?;
        let blocks = Blocks::new(config.len);
        let workers = par::workers().min(config.h);
        Ok(Self {
            blocks,
            lambda: Lambda::with_capacity(&config),
            scratch: (0..workers).map(|_| Scratch::new(&config, blocks)).collect(),
            lambda_shares: vec![C64::ZERO; config.h * config.n],
            config,
        })
    }

    /// The variant and sizes of this plan.
    pub fn config(&self) -> &KernelConfig {
        &self.config
    }

    fn prepare(&mut self, op: &'static str, params: &Params<T>) -> Result<()> {
        params.validate(op, &self.config)?;
        self.lambda.set(&self.config, params);
        let growing = self.lambda.count_growing();
        if growing > 0 && self.config.len > self.config.norm_len {
            let (position, length) = (self.config.norm_len, self.config.norm_len);
            return Err(Error::PastEnd { op, position, length, modes: growing });
        }
        Ok(())
    }

    /// Computes K: `[C, H, L]`.
    pub fn forward(&mut self, params: &Params<T>, k: &mut [T]) -> Result<()> {
        let op = "Kernel::forward";
        self.prepare(op, params)?;
        let config = self.config;
        let KernelConfig { channels, h: features, len, .. } = config;
        check_len(op, "k", "[C, H, L]", channels * features * len, k.len())?;
        let (lambda, blocks) = (&self.lambda, self.blocks);
        let k = Disjoint::new(k);
        par::for_each(&mut self.scratch, features, |scratch, h| {
            let delta = Deltas::for_channel(&config, params, h);
            let system = lambda.system(h);
            let forwards = scratch.select(&config, system, delta, false);
            if forwards {
                scratch.sums.set_modes(blocks, &scratch.zeta);
            }
            for channel in 0..channels {
                // SAFETY: rows belong to one channel h each.
                let row = unsafe { k.part((channel * features + h) * len, len) };
                if forwards {
                    scratch.set_coefficients(&config, params.w, channel, h, 0);
                    scratch.sums.sum(blocks, &scratch.c, row);
                } else {
                    row.fill(T::ZERO);
                }
            }
            if scratch.select(&config, system, delta, true) {
                scratch.sums.set_modes(blocks, &scratch.zeta);
                for channel in 0..channels {
                    // SAFETY: as above.
                    let row = unsafe { k.part((channel * features + h) * len, len) };
                    let ahead = config.norm_len - len;
                    scratch.set_coefficients(&config, params.w, channel, h, ahead);
                    scratch.sums.sum(blocks, &scratch.c, &mut scratch.reversed);
                    for (k, &r) in row.iter_mut().zip(scratch.reversed.iter().rev()) {
                        *k += r;
                    }
                }
            }
        });
        Ok(())
    }

    /// Given dk = ∂loss/∂K: `[C, H, L]`, writes the true gradients of all parameters.
    pub fn backward(&mut self, params: &Params<T>, dk: &[T], grads: ParamGrads<T>) -> Result<()> {
        self.backward_with("Kernel::backward", params, dk, None, grads)
    }

    /// [`Self::backward`], with what else the loss owes to the modes.
    pub(crate) fn backward_with(
        &mut self,
        op: &'static str,
        params: &Params<T>,
        dk: &[T],
        extra: Option<&ModeGrads>,
        grads: ParamGrads<T>,
    ) -> Result<()> {
        self.prepare(op, params)?;
        let config = self.config;
        let KernelConfig { channels, h: features, n, len, .. } = config;
        check_len(op, "dk", "[C, H, L]", channels * features * len, dk.len())?;
        grads.validate(op, &config)?;
        let (lambda, blocks, per) = (&self.lambda, self.blocks, config.delta.per_channel());
        let shares = Disjoint::new(&mut self.lambda_shares);
        let g_w = Disjoint::new(grads.w);
        let g_delta = Disjoint::new(grads.delta_log);
        par::for_each(&mut self.scratch, features, |scratch, h| {
            let delta = Deltas::for_channel(&config, params, h);
            let system = lambda.system(h);
            scratch.params.clear();
            for growing in [false, true] {
                if !scratch.select(&config, system, delta, growing) {
                    continue;
                }
                scratch.sums.set_modes(blocks, &scratch.zeta);
                for (i, &mode) in scratch.index.iter().enumerate() {
                    scratch.g_zeta[i] = extra.map_or(C64::ZERO, |e| e.zeta[h * n + mode]);
                    scratch.g_q[i] = C64::ZERO;
                }
                let ahead = if growing { config.norm_len - len } else { 0 };
                for channel in 0..channels {
                    let row = &dk[(channel * features + h) * len..][..len];
                    // SAFETY: rows of W belong to one channel h each.
                    let g_w = unsafe { g_w.part(2 * (channel * features + h) * n, 2 * n) };
                    let extra = extra.map(|e| &e.c[(channel * features + h) * n..][..n]);
                    let row = Row { w: params.w, channel, h, dk: row, extra, growing, ahead };
                    scratch.add_row(&config, blocks, row, g_w);
                }
                for (i, &mode) in scratch.index.iter().enumerate() {
                    let value = system.0[mode];
                    let (g_zeta, g_lambda) =
                        scratch.scale[i].backward(&config, value, scratch.g_q[i]);
                    let g_zeta = g_zeta + scratch.g_zeta[i];
                    scratch.params.add(mode, value, growing, delta, g_zeta, g_lambda);
                }
            }
            // SAFETY: each channel h has its own share and its own Δ_log.
            let (share, g_delta) = unsafe { (shares.part(h * n, n), g_delta.part(h * per, per)) };
            share.copy_from_slice(&scratch.params.lambda);
            let [re, im] = scratch.params.delta_log;
            let slope = |i: usize| delta_log_slope(params.delta_log[h * per + i].to_f64());
            if per == 1 {
                g_delta[0] = T::from_f64(slope(0) * (re + im));
            } else {
                g_delta[0] = T::from_f64(slope(0) * re);
                g_delta[1] = T::from_f64(slope(1) * im);
            }
        });
        let modes = config.systems * n;
        for at in 0..modes {
            let sum: C64 = self.lambda_shares[at..].iter().step_by(modes).sum();
            let slope = lambda_re_slope(config.variant, params.lambda_re[at].to_f64());
            grads.lambda_re[at] = T::from_f64(slope * sum.re);
            grads.lambda_im[at] = T::from_f64(sum.im);
        }
        Ok(())
    }
}

/// Gradients that reach the modes by another way than the kernel.
pub(crate) struct ModeGrads {
    /// `[C, H, N]`: of the coefficients c = W·q.
    pub c: Vec<C64>,
    /// `[H, N]`: of the exponents ζ.
    pub zeta: Vec<C64>,
}

/// One kernel of a backward pass.
struct Row<'a, T> {
    w: &'a [T],
    channel: usize,
    h: usize,
    dk: &'a [T],
    extra: Option<&'a [C64]>,
    growing: bool,
    ahead: usize,
}

impl<T: Real> Scratch<T> {
    /// One kernel's part of the gradients: g_W into `g_w`, the rest added to `g_zeta` and `g_q`.
    fn add_row(&mut self, config: &KernelConfig, blocks: Blocks, row: Row<T>, g_w: &mut [T]) {
        let Row { w, channel, h, dk, extra, growing, ahead } = row;
        let modes = self.index.len();
        let (s0, s1) = (&mut self.s0[..modes], &mut self.s1[..modes]);
        if growing {
            for (r, &d) in self.reversed.iter_mut().zip(dk.iter().rev()) {
                *r = d;
            }
            self.sums.moments(blocks, &self.reversed, s0, s1);
        } else {
            self.sums.moments(blocks, dk, s0, s1);
        }
        for (i, &mode) in self.index.iter().enumerate() {
            let w = w_at(config, w, channel, h, mode);
            let (mut s0, mut s1) = (self.s0[i], self.s1[i]);
            if ahead > 0 {
                let shift = exp(self.zeta[i] * ahead as f64);
                s1 = shift * (s1 + s0 * ahead as f64);
                s0 *= shift;
            }
            self.g_zeta[i] += (w * self.scale[i].q * s1).conj();
            let g_c = s0.conj() + extra.map_or(C64::ZERO, |e| e[mode]);
            self.g_q[i] += w.conj() * g_c;
            let g_w_mode = self.scale[i].q.conj() * g_c;
            g_w[2 * mode] = T::from_f64(g_w_mode.re);
            g_w[2 * mode + 1] = T::from_f64(g_w_mode.im);
        }
    }
}
