//! Diagonal state spaces as sums of exponentials, in f64: K_l = Re Σ_n c_n·exp(ζ_n·l).

use dss_format::mixer::{Discretisation, DssConfig, S4dConfig, Variant};
use dss_kernels::C64;

use super::reader::Arrays;

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
    /// The greatest Re λΔ·L: above 0 for modes that grow up to the training length.
    pub growth: f64,
}

fn exp(z: C64) -> C64 {
    let r = z.re.exp();
    C64::new(r * z.im.cos(), r * z.im.sin())
}

/// e^z − 1 without cancellation near 0.
fn expm1(z: C64) -> C64 {
    let (re, half) = (z.re.exp_m1(), (z.im / 2.0).sin());
    C64::new(re * z.im.cos() - 2.0 * half * half, (re + 1.0) * z.im.sin())
}

fn mul(a: C64, b: C64) -> C64 {
    C64::new(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re)
}

fn scaled(a: C64, by: f64) -> C64 {
    C64::new(a.re * by, a.im * by)
}

fn conj(a: C64) -> C64 {
    C64::new(a.re, -a.im)
}

fn norm(a: C64) -> f64 {
    a.re * a.re + a.im * a.im
}

fn div(a: C64, b: C64) -> C64 {
    scaled(mul(a, conj(b)), 1.0 / norm(b))
}

fn clamped_exp(x: f64) -> f64 {
    x.clamp(-LOG_LIMIT, LOG_LIMIT).exp()
}

fn complex(numbers: &[f64], at: usize) -> C64 {
    C64::new(numbers[2 * at], numbers[2 * at + 1])
}

/// Of DSS (§3.1). A mode with Re λ > 0 grows, with coefficients that make it end at its greatest after L steps.
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
    let (mut a, mut c, mut growth) = (Vec::new(), Vec::new(), 0f64);
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
            a.push(exp(zeta));
            c.push(match config.variant {
                Variant::Softmax => {
                    // Only numbers of modulus at most 1 are exponentiated.
                    let falling = if value.re > 0.0 { scaled(zeta, -1.0) } else { zeta };
                    let den = mul(expm1(scaled(falling, len as f64)), value);
                    let c =
                        scaled(mul(mul(w, expm1(falling)), conj(den)), 1.0 / (norm(den) + EPSILON));
                    if value.re > 0.0 {
                        growth = growth.max(zeta.re * len as f64);
                        mul(c, exp(scaled(falling, len as f64 - 1.0)))
                    } else {
                        c
                    }
                }
                Variant::Exp => {
                    scaled(mul(mul(w, expm1(zeta)), conj(value)), 1.0 / norm(value).max(EPSILON))
                }
                Variant::ExpNoScale => w,
            });
        }
    }
    Modes { a, c, n, growth }
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
                    let zeta = scaled(value, delta);
                    (exp(zeta), div(expm1(zeta), value))
                }
                Discretisation::Bilinear => {
                    let half = scaled(value, delta / 2.0);
                    let (plus, minus) =
                        (C64::new(1.0 + half.re, half.im), C64::new(1.0 - half.re, -half.im));
                    (div(plus, minus), div(C64::new(delta, 0.0), minus))
                }
            };
            a.push(step);
            c.push(scaled(mul(complex(&c_stored, channel * n + mode), b), 2.0));
        }
    }
    Modes { a, c, n, growth: 0.0 }
}
