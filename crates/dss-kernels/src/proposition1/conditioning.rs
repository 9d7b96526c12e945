//! How far a diagonal form can be trusted: a first-order bound on the error of its kernel.

use faer::Mat;
use faer::linalg::solvers::{PartialPivLu, Solve};

use super::eigenbasis::growth;
use super::{DiagonalForm, max};
use crate::complex::{C64, exp};

/// How many decimal digits of max_k |K_k| can be trusted in [`DiagonalForm::kernel_a`] and `kernel_b`.
///
/// The eigensolver leaves A V = VΛ + R with columns ‖r_j‖ ≈ ε‖A‖ (they are computed), and solving for
/// V⁻¹B leaves an error like it: Λ and w̃ belong to A − RV⁻¹ instead of A. To first order
///
/// ```text
/// |δK_k| ≤ Δ · max_t ‖C e^{At}‖ · Σ_j |V⁻¹B|_j (ε + ‖r_j‖ ∫ e^{Re λ_j t} dt),   0 ≤ t ≤ LΔ
/// ```
///
/// (if some Re λ > 0, with the growth e^{max Re λ · t} taken out of both and put back at t = LΔ). To
/// this come the roundings of the sum itself, ε·[`cancellation`](DiagonalForm::cancellation). The
/// estimate is 4 times the total: a bound rather than a guess, usually 10 to 10⁴ times the true
/// error. Being of first order, it means nothing once N·ε·κ(V) reaches 0.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conditioning {
    /// At least 8 digits: more than f32 holds.
    Good,
    /// 1 to 7 digits.
    Poor {
        /// max |error| ≤ 10^−digits · max |K|.
        digits: u32,
    },
    /// Not one digit can be promised, or N·ε·κ(V) ≥ 0.1.
    Meaningless,
}

impl Conditioning {
    pub(super) fn new(error: f64, n: usize, condition: f64) -> Self {
        let digits = -error.log10();
        if !(digits >= 1.0 && n as f64 * f64::EPSILON * condition < 0.1) {
            Self::Meaningless
        } else if digits < 8.0 {
            Self::Poor { digits: digits as u32 }
        } else {
            Self::Good
        }
    }
}

/// The bound of [`Conditioning`] on |δK|, without the roundings of the sum; `x` is V⁻¹B.
pub(super) fn perturbation(
    form: &DiagonalForm,
    lu: &PartialPivLu<C64>,
    cv: &[C64],
    x: &Mat<C64>,
    residual: &[f64],
) -> f64 {
    let DiagonalForm { lambda, delta, len, .. } = form;
    let (n, growth, end) = (lambda.len(), growth(lambda), delta * *len as f64);

    // ‖C e^{(A − growth)kΔ}‖ at k = 0, 1, 2, 4, …, one row each.
    let powers = std::iter::successors(Some(1), |k| Some(2 * k));
    let k: Vec<usize> = std::iter::once(0).chain(powers).take_while(|k| k < len).collect();
    let rows = Mat::from_fn(k.len(), n, |row, i| {
        cv[i] * exp((lambda[i] - growth) * delta * k[row] as f64)
    });
    let c_exp_at = max(lu.rsolve(rows).row_iter().map(|row| row.norm_l2()));

    let weight = |j: usize| {
        let lifetime = end.min(1.0 / (growth - lambda[j].re));
        x[(j, 0)].norm() * (f64::EPSILON + residual[j] * lifetime)
    };
    delta * c_exp_at * (0..n).map(weight).sum::<f64>() * (growth * end).exp()
}

#[cfg(test)]
mod tests {
    use super::super::systems::{StateSpace, bidiagonal, errors, hippo, with_eigenvalues};
    use super::*;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    #[test]
    fn hippo_is_good_while_small_and_meaningless_when_large() {
        let rng = &mut ChaCha8Rng::seed_from_u64(1);
        let (a, b, form) = errors(&hippo(4, rng), 0.01, 200);
        assert!(a < 1e-9 && b < 1e-9, "{a:e} {b:e}");
        assert_eq!(form.conditioning, Conditioning::Good);
        let (a, _, form) = errors(&hippo(64, rng), 0.01, 200);
        assert!(a > 1e-6, "{a:e}");
        assert_eq!(form.conditioning, Conditioning::Meaningless);
        assert!(form.condition > 1e13 && form.cancellation > 1e10, "{form:?}");
    }

    /// What the verdict promises holds, and on HiPPO the estimate is not absurdly careful.
    #[test]
    fn verdict_is_honest() {
        let rng = &mut ChaCha8Rng::seed_from_u64(2);
        let largest_hippo = 24;
        let mut systems: Vec<StateSpace> = (1..=largest_hippo).map(|n| hippo(n, rng)).collect();
        for n in 2..=8 {
            systems.extend([1.0, 30.0, 1e3].map(|above| bidiagonal(n, above, rng)));
            // eigenvalues 10⁻ᵐ apart
            for gap in [1e-3, 1e-6, 1e-9] {
                let lambda: Vec<C64> = (0..n).map(|i| C64::new(-1.0, gap * i as f64)).collect();
                systems.push(with_eigenvalues(&lambda, rng));
            }
        }
        let mut seen = [0; 3];
        for (index, system) in systems.iter().enumerate() {
            for delta in [0.001, 0.01, 0.1] {
                let (a, b, form) = errors(system, delta, 100);
                let error = f64::max(a, b);
                let promise = match form.conditioning {
                    Conditioning::Good => 1e-8,
                    Conditioning::Poor { digits } => 0.1f64.powi(digits as i32),
                    Conditioning::Meaningless => f64::INFINITY,
                };
                seen[if promise == 1e-8 { 0 } else { 1 + usize::from(promise > 1.0) }] += 1;
                assert!(error <= promise, "{error:e} > {promise:e}: {form:?}");
                assert!(promise > 1.0 || error <= form.error + 1e-14, "{error:e}: {form:?}");
                let careful = form.error / (error + f64::EPSILON);
                assert!(index >= largest_hippo || careful < 1e6, "{careful:e}: {form:?}");
            }
        }
        assert!(seen.iter().all(|&count| count > 5), "{seen:?}");
    }
}
