//! From parameters to modes: K_l = 2 Re Σ_n C_n·B_n·q_n·e^{ζ_n l} with Re ζ ≤ 0.
//!
//! With z = Δλ, e^ζ = ā and q = B̄/B:
//! - zero-order hold: ζ = z, q = Δ·φ(z), φ(z) = (e^z − 1)/z
//! - bilinear: ζ = ln(1 + z/2) − ln(1 − z/2), q = Δ/(1 − z/2)
//!
//! Both are holomorphic in z: g_z = conj(dζ/dz)·g_ζ + conj(dq/dz)·g_q.

use super::params::{Discretisation, KernelConfig, Params};
use crate::complex::{C64, exp, expm1};
use crate::kernel::DELTA_LOG_LIMIT;
use crate::real::Real;

/// Largest |Im λ| and largest part of B and C that are kept, far beyond use: every product stays finite.
const LIMIT: f64 = 1e60;

/// Least |1 + z/2|: ā = 0 has no logarithm.
const SMALL: f64 = 1e-20;

/// One mode of one feature.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mode {
    pub lambda: C64,
    pub delta: f64,
    pub b: C64,
    /// ln ā.
    pub zeta: C64,
    /// B̄/B.
    pub q: C64,
    /// dζ/dz, and dq/dz for q/Δ.
    zeta_slope: C64,
    q_slope: C64,
}

/// Gradients of one mode.
pub(crate) struct ModeGrad {
    pub lambda: C64,
    pub b: C64,
    pub delta_log: f64,
}

impl Mode {
    /// Mode n of feature h.
    pub(crate) fn new<T: Real>(
        config: &KernelConfig,
        params: &Params<T>,
        h: usize,
        n: usize,
    ) -> Self {
        let at = h % config.systems * config.pairs() + n;
        let lambda = C64::new(
            -bounded_exp(params.lambda_re[at]),
            params.lambda_im[at].to_f64().clamp(-LIMIT, LIMIT),
        );
        let delta = bounded_exp(params.delta_log[h]);
        let b = params.b.map_or(C64::ONE, |b| complex_at(b, at));
        let z = lambda * delta;
        let (zeta, zeta_slope, q, q_slope) = match config.discretisation {
            Discretisation::ZeroOrderHold => {
                let (phi, slope) = phi(z);
                (z, C64::ONE, phi, slope)
            }
            Discretisation::Bilinear => {
                let (mut above, below) = (1.0 + z * 0.5, (1.0 - z * 0.5).inv());
                if above.norm_sqr() < SMALL * SMALL {
                    above = C64::from(SMALL);
                }
                let step = above * below;
                // |ā| ≤ 1, whatever rounding says.
                let zeta = C64::new(step.norm().ln().min(0.0), step.arg());
                (zeta, below / above, below, below * below * 0.5)
            }
        };
        Self { lambda, delta, b, zeta, q: q * delta, zeta_slope, q_slope }
    }

    /// 2·C·B·q, the coefficient of e^{ζl}.
    pub(crate) fn coefficient(&self, c: C64) -> C64 {
        2.0 * c * self.b * self.q
    }

    /// Given g_ζ and g_X of X = B·q.
    pub(crate) fn backward(&self, g_zeta: C64, g_x: C64) -> ModeGrad {
        let g_q = self.b.conj() * g_x;
        let g_z = self.zeta_slope.conj() * g_zeta + self.q_slope.conj() * g_q * self.delta;
        let z = self.lambda * self.delta;
        ModeGrad {
            lambda: g_z * self.delta,
            b: self.q.conj() * g_x,
            // q = Δ·f(z)
            delta_log: (z.conj() * g_z).re + (self.q.conj() * g_q).re,
        }
    }
}

/// φ(z) = (e^z − 1)/z and φ'(z), for Re z ≤ 0.
fn phi(z: C64) -> (C64, C64) {
    if z.norm_sqr() > 0.25 {
        let phi = expm1(z) / z;
        return (phi, (exp(z) - phi) / z);
    }
    // Σ z^k/(k+1)! and Σ (k+1)·z^k/(k+2)!, by Horner: the next term is below 1e-17.
    let (mut value, mut slope) = (C64::ZERO, C64::ZERO);
    for k in (0..14).rev() {
        let k = k as f64;
        value = 1.0 + value * z / (k + 2.0);
        slope = 1.0 + slope * z * (k + 2.0) / ((k + 1.0) * (k + 3.0));
    }
    (value, slope * 0.5)
}

/// exp of a stored logarithm, limited as Δ_log is.
fn bounded_exp<T: Real>(stored: T) -> f64 {
    stored.to_f64().clamp(-DELTA_LOG_LIMIT, DELTA_LOG_LIMIT).exp()
}

/// Element i of a complex tensor stored with a trailing axis of 2.
pub(crate) fn complex_at<T: Real>(x: &[T], i: usize) -> C64 {
    let part = |at: usize| x[at].to_f64().clamp(-LIMIT, LIMIT);
    C64::new(part(2 * i), part(2 * i + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phi_is_smooth() {
        // Both branches at their seam, and the values at 0.
        for angle in [1.6, 2.5, 3.1, 4.0, 4.7] {
            let (inside, outside) =
                (C64::from_polar(0.4999999, angle), C64::from_polar(0.5000001, angle));
            let ((a, da), (b, db)) = (phi(inside), phi(outside));
            let middle = (da + db) * 0.5;
            assert!((b - a - middle * (outside - inside)).norm() < 1e-15);
            assert!((da - db).norm() < 1e-6);
        }
        assert_eq!(phi(C64::ZERO), (C64::ONE, C64::from(0.5)));
        // (e^{-1/4} − 1)/(−1/4), and its slope (e^{-1/4} − φ)/(−1/4).
        let (value, slope) = phi(C64::from(-0.25));
        assert!((value.re - 0.884_796_867_714_380_5).abs() < 1e-15, "{value}");
        assert!((slope.re - 0.423_984_338_571_902_6).abs() < 1e-15, "{slope}");
    }
}
