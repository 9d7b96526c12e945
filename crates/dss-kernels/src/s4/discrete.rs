//! The bilinear rule for A = Λ − PP* (Tustin): Ā is again diagonal plus rank one.
//!
//! With D = (2/Δ − Λ)⁻¹ the rule reads Ā = (4/Δ)·(D⁻¹ + PP*)⁻¹ − I and B̄ = 2·(D⁻¹ + PP*)⁻¹B, and by the Woodbury
//! identity, κ = 1/(1 + P*DP):
//!
//! Ā = diag(ā) − q·rᵀ,   ā = (1 + Δλ/2)/(1 − Δλ/2),   q = DP,   r = (4κ/Δ)·conj(P)·D
//! B̄ = 2D·(B − κ·P·(P*DB))
//!
//! As A + A* is negative definite, no power of Ā exceeds 1 in norm.

use super::modes::System;
use crate::complex::C64;

/// ā, q, r and B̄ of one feature, one of each conjugate pair: `[N/2]`. Sums over all modes are twice the real part of
/// those over the stored ones.
#[derive(Debug, Clone, Default)]
pub(crate) struct Discrete {
    pub a: Vec<C64>,
    pub q: Vec<C64>,
    pub r: Vec<C64>,
    pub b: Vec<C64>,
}

impl Discrete {
    pub(crate) fn new(system: System<'_>, delta: f64) -> Self {
        let System { lambda, p, b } = system;
        // 2D/Δ
        let d: Vec<C64> = lambda.iter().map(|l| (1.0 - l * (0.5 * delta)).inv()).collect();
        let twice_real = |x: &[C64], y: &[C64]| -> f64 {
            let terms = x.iter().zip(&d).zip(y).map(|((x, d), y)| (x.conj() * d * y).re);
            2.0 * terms.sum::<f64>()
        };
        let kappa = 1.0 / (1.0 + 0.5 * delta * twice_real(p, p));
        let through = kappa * 0.5 * delta * twice_real(p, b);
        let each = |f: &dyn Fn(usize) -> C64| (0..p.len()).map(f).collect();
        Self {
            a: each(&|n| (1.0 + lambda[n] * (0.5 * delta)) * d[n]),
            q: each(&|n| d[n] * p[n] * (0.5 * delta)),
            r: each(&|n| p[n].conj() * d[n] * (2.0 * kappa)),
            b: each(&|n| d[n] * (b[n] - p[n] * through) * delta),
        }
    }
}
