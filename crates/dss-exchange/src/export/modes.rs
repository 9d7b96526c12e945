//! State spaces as recurrences, in f64: what their parameters become before the first position. Of diagonal ones, whose
//! kernels are K_l = Re Σ_n c_n·exp(ζ_n·l), of S4, and of those whose modes all channels share.

use dss_format::mixer::{Discretisation, DssConfig, S4Config, S4dConfig, Variant};
use dss_kernels::C64;
use dss_kernels::s4::{KernelConfig, Params, uncorrect_length};

use super::reader::Arrays;
use crate::error::Result;

/// |Δ_log| and |log −Re λ| beyond it count as this.
const LOG_LIMIT: f64 = 40.0;
/// What keeps divisions by λ finite.
const EPSILON: f64 = 1e-7;

/// The modes of one layer: `[H, N]` each.
pub(super) struct Modes {
    pub a: Vec<C64>,
    pub c: Vec<C64>,
    /// Modes per channel.
    pub n: usize,
    /// −λΔ of the modes that grow (Re λ > 0) and 0 of the others, `[H, N]`; empty if none grows.
    pub growing: Vec<C64>,
}

/// e^z − 1 without cancellation near 0.
fn expm1(z: C64) -> C64 {
    let (re, half) = (z.re.exp_m1(), (z.im / 2.0).sin());
    C64::new(re * z.im.cos() - 2.0 * half * half, (re + 1.0) * z.im.sin())
}

fn clamped_exp(x: f64) -> f64 {
    x.clamp(-LOG_LIMIT, LOG_LIMIT).exp()
}

fn complex(numbers: &[f64], at: usize) -> C64 {
    C64::new(numbers[2 * at], numbers[2 * at + 1])
}

/// Of DSS (§3.1). A mode with Re λ > 0 is Σ_j u_j·e^(ζj) times c·e^(ζ(L−1−k)) at position k, with ζ = −λΔ: two factors of
/// modulus at most 1 in the place of one that grows.
pub(super) fn dss(
    config: &DssConfig,
    arrays: &Arrays<'_>,
    layer: &str,
    h: usize,
    len: usize,
) -> Modes {
    let (n, ssms, per) = (config.n, config.ssms, config.delta.per_channel());
    let [lambda, delta, w] =
        ["lambda", "delta_log", "w"].map(|name| arrays.get(&format!("{layer}.mixer.{name}")));
    let (mut a, mut c, mut growing) = (Vec::new(), Vec::new(), Vec::new());
    for channel in 0..h {
        // One for both parts, or the real part's first.
        let own = &delta[channel * per..][..per];
        let (delta_re, delta_im) = (clamped_exp(own[0]), clamped_exp(own[per - 1]));
        for mode in 0..n {
            let mut value = complex(&lambda, channel % ssms * n + mode);
            if config.variant != Variant::Softmax {
                value.re = -clamped_exp(value.re);
            }
            let w = complex(&w, channel * n + mode);
            let zeta = C64::new(delta_re * value.re, delta_im * value.im);
            let grows = config.variant == Variant::Softmax && value.re > 0.0;
            let zeta = if grows { -zeta } else { zeta };
            a.push(if grows { C64::new(1.0, 0.0) } else { zeta.exp() });
            growing.push(if grows { zeta } else { C64::new(0.0, 0.0) });
            c.push(match config.variant {
                Variant::Softmax => {
                    let den = expm1(zeta * len as f64) * value;
                    w * expm1(zeta) * den.conj() / (den.norm_sqr() + EPSILON)
                }
                Variant::Exp => w * expm1(zeta) * value.conj() / value.norm_sqr().max(EPSILON),
                Variant::ExpNoScale => w,
            });
        }
    }
    if growing.iter().all(|zeta| zeta.re == 0.0) {
        growing.clear();
    }
    Modes { a, c, n, growing }
}

/// Of S4D: N/2 modes with twice the real part.
pub(super) fn s4d(config: &S4dConfig, arrays: &Arrays<'_>, layer: &str, h: usize) -> Modes {
    let (n, ssms) = (config.n / 2, config.ssms);
    let [re, im, c_stored, delta] = ["lambda_re", "lambda_im", "c", "delta_log"]
        .map(|name| arrays.get(&format!("{layer}.mixer.{name}")));
    let (mut a, mut c) = (Vec::new(), Vec::new());
    for channel in 0..h {
        let delta = clamped_exp(delta[channel]);
        for mode in 0..n {
            let at = channel % ssms * n + mode;
            let value = C64::new(-clamped_exp(re[at]), im[at]);
            let (step, b) = match config.discretisation {
                Discretisation::Zoh => {
                    let zeta = value * delta;
                    (zeta.exp(), expm1(zeta) / value)
                }
                Discretisation::Bilinear => {
                    let half = value * (0.5 * delta);
                    ((1.0 + half) / (1.0 - half), delta / (1.0 - half))
                }
            };
            a.push(step);
            c.push(2.0 * b * complex(&c_stored, channel * n + mode));
        }
    }
    Modes { a, c, n, growing: Vec::new() }
}

/// A layer of S4: x' = ā·x − q·Re(r·x) + B̄·u, y = Re(c·x'), `[H, N/2]` each.
pub(super) struct LowRank {
    pub a: Vec<C64>,
    pub q: Vec<C64>,
    pub r: Vec<C64>,
    pub b: Vec<C64>,
    pub c: Vec<C64>,
    /// N/2.
    pub n: usize,
}

/// Of S4, by the bilinear rule for A = Λ − PP* (`discrete.rs` of `dss_kernels::s4`): with d = 1/(1 − Δλ/2) and
/// κ = 1/(1 + Δ/2·P*dP),
///
/// ā = (1 + Δλ/2)·d, q = Δ/2·d·P, r = 2κ·conj(P)·d, B̄ = Δ·d·(B − κ·Δ/2·P·(P*dB)),
///
/// where one of each conjugate pair is stored, so that sums over all states are twice the real part. C comes from
/// C̃ = C·(I − Ā^len).
///
/// # Errors
/// If I − Ā^len has no inverse.
pub(super) fn s4(
    config: &S4Config,
    arrays: &Arrays<'_>,
    layer: &str,
    h: usize,
    len: usize,
) -> Result<LowRank> {
    let (n, ssms) = (config.n / 2, config.ssms);
    let [re, im, p, b, c, delta] = ["lambda_re", "lambda_im", "p", "b", "c", "delta_log"]
        .map(|name| arrays.get(&format!("{layer}.mixer.{name}")));
    let params = Params { lambda_re: &re, lambda_im: &im, p: &p, b: &b, c: &c, delta_log: &delta };
    let c = uncorrect_length(&KernelConfig::new(h, config.n, len).systems(ssms), &params)?;
    let mut system = LowRank { a: vec![], q: vec![], r: vec![], b: vec![], c: vec![], n };
    for (channel, &delta) in delta.iter().enumerate() {
        let half = 0.5 * clamped_exp(delta);
        let modes = (0..n).map(|mode| {
            let at = channel % ssms * n + mode;
            let value = half * C64::new(-clamped_exp(re[at]), im[at]);
            (value, 1.0 / (1.0 - value), complex(&p, at), complex(&b, at))
        });
        let over_both = |x: fn(C64, C64) -> C64| -> f64 {
            2.0 * modes.clone().map(|(_, d, p, b)| (p.conj() * d * x(p, b)).re).sum::<f64>()
        };
        let kappa = 1.0 / (1.0 + half * over_both(|p, _| p));
        let through = kappa * half * over_both(|_, b| b);
        for (mode, (value, d, p, b)) in modes.enumerate() {
            system.a.push((1.0 + value) * d);
            system.q.push(half * d * p);
            system.r.push(4.0 * kappa * p.conj() * d);
            system.b.push(2.0 * half * d * (b - p * through));
            system.c.push(2.0 * complex(&c, channel * n + mode));
        }
    }
    Ok(system)
}

/// A layer whose N modes all channels share: x' = λ·x + B u, y = C (Re x', Im x').
pub(super) struct SharedModes {
    /// λ `[N]`.
    pub re: Vec<f64>,
    pub im: Vec<f64>,
    /// `[2N, H]`: real parts, then imaginary parts.
    pub b: Vec<f64>,
    /// `[H, 2N]`.
    pub c: Vec<f64>,
}

impl SharedModes {
    /// Of λ = e^ζ, with row n of B times `factors[n]`, and C times `scale`.
    fn new(zeta: &[C64], factors: &[C64], scale: f64, arrays: &Arrays<'_>, layer: &str) -> Self {
        let b = arrays.get(&format!("{layer}.mixer.b"));
        let (re, im) = b.split_at(b.len() / 2);
        let h = re.len() / factors.len();
        let products = (0..re.len()).map(|i| C64::new(re[i], im[i]) * factors[i / h]);
        let c = arrays.get(&format!("{layer}.mixer.c")).iter().map(|c| scale * c).collect();
        Self {
            re: zeta.iter().map(|zeta| zeta.exp().re).collect(),
            im: zeta.iter().map(|zeta| zeta.exp().im).collect(),
            b: products.clone().map(|b| b.re).chain(products.map(|b| b.im)).collect(),
            c,
        }
    }
}

/// Of LRU: λ = exp(−exp(ν_log) + i·exp(θ_log)), γ·B.
pub(super) fn lru(arrays: &Arrays<'_>, layer: &str) -> SharedModes {
    let [nu, theta, gamma] = ["nu_log", "theta_log", "gamma_log"]
        .map(|name| arrays.get(&format!("{layer}.mixer.{name}")));
    let zeta = nu.iter().zip(&theta).map(|(nu, theta)| C64::new(-nu.exp(), theta.exp()));
    let zeta: Vec<C64> = zeta.collect();
    let factors: Vec<C64> = gamma.iter().map(|gamma| gamma.exp().into()).collect();
    SharedModes::new(&zeta, &factors, 1.0, arrays, layer)
}

/// Of S5: zero-order hold with a Δ for each state, one of each conjugate pair.
pub(super) fn s5(arrays: &Arrays<'_>, layer: &str) -> SharedModes {
    let [re, im, delta] = ["lambda_re", "lambda_im", "delta_log"]
        .map(|name| arrays.get(&format!("{layer}.mixer.{name}")));
    let lambda = || re.iter().zip(&im).map(|(re, im)| C64::new(-re.exp(), *im));
    let zeta: Vec<C64> = lambda().zip(&delta).map(|(value, delta)| value * delta.exp()).collect();
    let factors: Vec<C64> = lambda().zip(&zeta).map(|(value, zeta)| expm1(*zeta) / value).collect();
    SharedModes::new(&zeta, &factors, 2.0, arrays, layer)
}
