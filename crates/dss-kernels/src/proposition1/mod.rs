//! Proposition 1 as a computation: from any diagonalisable state space (A, B, C) to a diagonal one
//! with the same kernel.
//!
//! Eq. (4) defines the kernel, K_k = C e^{AkΔ} (e^{AΔ} − I) A⁻¹ B for 0 ≤ k < L
//! ([`state_space_kernel`]). With A = VΛV⁻¹ and w̃ = (CV)ᵀ ∗ (V⁻¹B), §A.1 turns it into
//!
//! ```text
//! (a)  K = w̃ · Λ⁻¹ (e^{ΛΔ} − I) · exp(P),    P_ik = λ_i kΔ,
//! (b)  K = w · Λ⁻¹ · row-softmax(P),         w_i = w̃_i (e^{Lλ_iΔ} − 1),
//! ```
//!
//! which need every λ_i ≠ 0 and, for (b), every e^{Lλ_iΔ} ≠ 1.
//!
//! In floating point the theorem can be true and useless: V may be so badly conditioned that w̃ is
//! huge and K is the small difference of large terms. The HiPPO matrix is such a case (footnote to
//! Prop. 1): the error is 1e-15 of the kernel at N = 4, 1e-11 at N = 8, 1e-6 at N = 16, and 1 %
//! or more from N = 24 on. [`DiagonalForm::conditioning`] says so.

mod conditioning;
mod eigenbasis;
mod state_space_kernel;
#[cfg(test)]
mod systems;

use faer::Mat;
use faer::linalg::solvers::Solve;

use crate::complex::{C64, expm1};
use crate::error::{Error, Result, check_len};
use crate::ssm_softmax::{exp_multiple, expm1_multiple, ssm_softmax_direct};
use conditioning::perturbation;
use eigenbasis::{Eigenbasis, check_eigenvalues, eigenbasis};

pub use conditioning::Conditioning;
pub use state_space_kernel::state_space_kernel;

const OP: &str = "diagonal_form";

/// The diagonal state spaces of Proposition 1, and how far to trust them.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DiagonalForm {
    /// Λ: `[N]`, the eigenvalues of A, in no particular order.
    pub lambda: Vec<C64>,
    /// w̃ of part (a): `[N]`.
    pub w_tilde: Vec<C64>,
    /// w of part (b): `[N]`; [`Error::Singular`] if some e^{LλΔ} = 1, [`Error::Invalid`] if w overflows.
    /// Part (a) holds either way.
    pub w: Result<Vec<C64>>,
    /// Δ, the sample time.
    pub delta: f64,
    /// L, the length of the kernel.
    pub len: usize,
    /// κ(V) in the 2-norm, the columns of V having norm one. Above about 1/ε it is a lower bound.
    pub condition: f64,
    /// max_k Σ_i |term i of K_k| / max_k |K_k| in part (a): how much larger the terms are than their sum.
    pub cancellation: f64,
    /// Estimate of max_k |error of K_k| / max_k |K_k|, to first order in ε (see [`Conditioning`]).
    pub error: f64,
    /// The estimate as a verdict.
    pub conditioning: Conditioning,
}

impl DiagonalForm {
    /// Part (a): K = w̃ · Λ⁻¹ (e^{ΛΔ} − I) · exp(P). Returns K: `[L]`.
    pub fn kernel_a(&self) -> Vec<C64> {
        let mut k = vec![C64::ZERO; self.len];
        self.for_each_term(|position, term| k[position] += term);
        k
    }

    /// Part (b): K = w · Λ⁻¹ · row-softmax(P). Returns K: `[L]`.
    ///
    /// # Errors
    /// That of [`w`](Self::w), or of [`ssm_softmax_direct`].
    pub fn kernel_b(&self) -> Result<Vec<C64>> {
        let mut k = vec![C64::ZERO; self.len];
        for (lambda, w) in self.lambda.iter().zip(self.w.as_ref().map_err(Clone::clone)?) {
            let softmax = ssm_softmax_direct(lambda * self.delta, self.len)?;
            for (k, s) in k.iter_mut().zip(softmax) {
                *k += w / lambda * s;
            }
        }
        Ok(k)
    }

    /// Gives every term w̃_i (e^{λ_iΔ} − 1)/λ_i · e^{λ_i kΔ} with its k.
    fn for_each_term(&self, mut give: impl FnMut(usize, C64)) {
        for (lambda, w_tilde) in self.lambda.iter().zip(&self.w_tilde) {
            let z = lambda * self.delta;
            let factor = w_tilde * (expm1(z) / lambda);
            for k in 0..self.len {
                give(k, factor * exp_multiple(z, k));
            }
        }
    }
}

/// Proposition 1: the diagonal form of a state space with complex A, B, C.
///
/// # Shapes
/// A: `[N, N]`, row by row; B: `[N]`; C: `[N]`; N is the length of B.
///
/// # Errors
/// - [`Error::Shape`], [`Error::NonFinite`] or [`Error::Invalid`] on bad arguments (N = 0, L = 0,
///   Δ ≤ 0, max |A| beyond 10^±100), and where e^{Re λ ΔL} overflows.
/// - [`Error::Singular`] if an eigenvalue is zero to within 4Nε‖A‖, or if A is not diagonalisable:
///   two eigenvalues coincide to within 4Nε‖A‖ and V is singular to working precision. A defective
///   matrix whose eigenvalues are split by rounding passes, with a large κ(V) and an honest
///   [`Conditioning`].
///
/// # Examples
/// ```
/// # fn main() -> dss_kernels::Result<()> {
/// use dss_kernels::proposition1::{Conditioning, diagonal_form_real};
/// let form = diagonal_form_real(&[-1.0, 4.0, -4.0, -1.0], &[1.0, 0.0], &[1.0, 1.0], 0.1, 100)?;
/// assert_eq!(form.conditioning, Conditioning::Good);
/// let (a, b) = (form.kernel_a(), form.kernel_b()?);
/// assert!(a.iter().zip(&b).all(|(a, b)| (a - b).norm() < 1e-14));
/// # Ok(())
/// # }
/// ```
pub fn diagonal_form(
    a: &[C64],
    b: &[C64],
    c: &[C64],
    delta: f64,
    len: usize,
) -> Result<DiagonalForm> {
    check(OP, a, b, c, delta, len)?;
    let n = b.len();
    let Eigenbasis { lambda, v, residual, norm_a } = eigenbasis(a, n)?;
    let condition = match v.singular_values() {
        Ok(sigma) => sigma[0] / sigma[n - 1],
        Err(_) => f64::INFINITY,
    };
    let rounding = 4.0 * n as f64 * f64::EPSILON * norm_a;
    check_eigenvalues(&lambda, condition, rounding, delta * len as f64)?;

    let lu = v.partial_piv_lu();
    let cv: Vec<C64> = (0..n).map(|j| (0..n).map(|i| c[i] * v[(i, j)]).sum()).collect();
    let x = lu.solve(Mat::from_fn(n, 1, |i, _| b[i])); // V⁻¹B
    let w_tilde: Vec<C64> = (0..n).map(|i| cv[i] * x[(i, 0)]).collect();
    let w = part_b(&lambda, &w_tilde, delta, len, rounding);

    let (cancellation, error, conditioning) = (0.0, 0.0, Conditioning::Meaningless);
    let mut form = DiagonalForm {
        lambda,
        w_tilde,
        w,
        delta,
        len,
        condition,
        cancellation,
        error,
        conditioning,
    };
    let (mut k, mut sizes) = (vec![C64::ZERO; len], vec![0.0; len]);
    form.for_each_term(|position, term| {
        k[position] += term;
        sizes[position] += term.norm();
    });
    let (largest, size) = (max(k.iter().map(|z| z.norm())), max(sizes));
    if !size.is_finite() {
        return Err(Error::Invalid { op: OP, what: "the kernel overflows".into() });
    }
    form.cancellation = quotient(size, largest);
    let perturbation = perturbation(&form, &lu, &cv, &x, &residual);
    form.error = 4.0 * (quotient(perturbation, largest) + f64::EPSILON * form.cancellation);
    form.conditioning = Conditioning::new(form.error, n, condition);
    Ok(form)
}

/// [`diagonal_form`] of a real state space: to rounding, Λ and w̃ come in conjugate pairs and K is real.
///
/// # Shapes
/// A: `[N, N]`, row by row; B: `[N]`; C: `[N]`.
///
/// # Errors
/// As [`diagonal_form`].
pub fn diagonal_form_real(
    a: &[f64],
    b: &[f64],
    c: &[f64],
    delta: f64,
    len: usize,
) -> Result<DiagonalForm> {
    let [a, b, c] = [a, b, c].map(|x| x.iter().copied().map(C64::from).collect::<Vec<_>>());
    diagonal_form(&a, &b, &c, delta, len)
}

/// w_i = w̃_i (e^{Lλ_iΔ} − 1), unless the factor vanishes for a λ within `rounding` of λ_i.
fn part_b(
    lambda: &[C64],
    w_tilde: &[C64],
    delta: f64,
    len: usize,
    rounding: f64,
) -> Result<Vec<C64>> {
    let element = |(i, (lambda, w_tilde)): (usize, (&C64, &C64))| {
        let factor = expm1_multiple(lambda * delta, len);
        if factor.norm() <= rounding * delta * len as f64 {
            let one = format!("λ[{i}] = {lambda:e} makes it 1");
            return Err(singular(format!("Prop. 1(b) needs every e^(LλΔ) ≠ 1, but {one}")));
        }
        let w = w_tilde * factor;
        let overflow = || Error::Invalid { op: OP, what: format!("w[{i}] overflows") };
        w.is_finite().then_some(w).ok_or_else(overflow)
    };
    lambda.iter().zip(w_tilde).enumerate().map(element).collect()
}

fn singular(what: String) -> Error {
    Error::Singular { op: OP, what }
}

/// The largest of non-negative numbers; NaN if one is NaN.
fn max(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().fold(0.0, |a, b| if b <= a || a.is_nan() { a } else { b })
}

/// a/b, with 0/0 = 0: nothing is lost from a kernel that is zero.
fn quotient(a: f64, b: f64) -> f64 {
    if a == 0.0 { 0.0 } else { a / b }
}

fn check(op: &'static str, a: &[C64], b: &[C64], c: &[C64], delta: f64, len: usize) -> Result<()> {
    let n = b.len();
    if n == 0 {
        return Err(Error::Invalid { op, what: "N, the length of `b`, must be at least 1".into() });
    }
    if len == 0 {
        return Err(Error::Invalid { op, what: "L must be at least 1".into() });
    }
    if !(delta > 0.0 && delta.is_finite()) {
        let what = format!("Δ must be positive and finite, but is {delta}");
        return Err(Error::Invalid { op, what });
    }
    check_len(op, "a", "[N, N]", n * n, a.len())?;
    check_len(op, "c", "[N]", n, c.len())?;
    for (name, values) in [("a", a), ("b", b), ("c", c)] {
        if let Some(index) = values.iter().position(|z| !z.is_finite()) {
            let z = values[index];
            let value = if z.re.is_finite() { z.im } else { z.re };
            return Err(Error::NonFinite { op, name, index, value });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::systems::{errors, is_singular, real, relative_error, with_eigenvalues};
    use super::*;
    use crate::init::{random_lambda, random_lambda_left};
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;
    use std::f64::consts::TAU;

    #[test]
    fn three_kernels_are_one() {
        for seed in 0..60 {
            let rng = &mut ChaCha8Rng::seed_from_u64(seed);
            let n = 1 + seed as usize % 10;
            let lambda: Vec<C64> = random_lambda_left(n, rng).iter().map(|z| 10.0 * z).collect();
            let (a, b, form) = errors(&with_eigenvalues(&lambda, rng), 0.05, 150);
            assert!(a < 1e-10 && b < 1e-10, "seed {seed}: {a:e} {b:e}");
            assert_eq!(form.conditioning, Conditioning::Good, "seed {seed}");
            for z in lambda {
                let nearest = form.lambda.iter().map(|x| (x - z).norm()).fold(f64::MAX, f64::min);
                assert!(nearest < 1e-9, "seed {seed}: {z} is {nearest:e} away");
            }
        }
    }

    #[test]
    fn real_state_space_has_a_real_kernel() {
        for seed in 0..20 {
            let rng = &mut ChaCha8Rng::seed_from_u64(seed);
            let n = 2 + seed as usize % 8;
            let parts = |z: Vec<C64>| z.iter().map(|z| z.re).collect::<Vec<f64>>();
            let mut a = parts(random_lambda(n * n, rng));
            (0..n).for_each(|i| a[i * n + i] -= 2.0);
            let (b, c) = (parts(random_lambda(n, rng)), parts(random_lambda(n, rng)));
            let form = diagonal_form_real(&a, &b, &c, 0.1, 100).unwrap();
            let reference = state_space_kernel(&real(&a), &real(&b), &real(&c), 0.1, 100).unwrap();
            for k in [form.kernel_a(), form.kernel_b().unwrap()] {
                let error = relative_error(&k, &reference);
                assert!(error < 1e-10, "seed {seed}: {error:e}");
            }
            for z in &form.lambda {
                assert!(form.lambda.iter().any(|x| (x - z.conj()).norm() < 1e-10), "{z}");
            }
        }
    }

    #[test]
    fn growing_modes() {
        let rng = &mut ChaCha8Rng::seed_from_u64(3);
        let lambda = [C64::new(30.0, 4.0), C64::new(-2.0, 9.0), C64::new(1.0, -50.0)];
        let system = with_eigenvalues(&lambda, rng);
        let (a, b, form) = errors(&system, 0.1, 100); // up to e³⁰⁰
        assert!(a < 1e-10 && b < 1e-10, "{a:e} {b:e}");
        assert_eq!(form.conditioning, Conditioning::Good);
        // w̃ = 10⁹: w = e⁶⁹⁰ w̃ overflows, w/λ would not.
        let form = diagonal_form_real(&[69.0], &[1e9], &[1.0], 0.1, 100).unwrap();
        assert!(form.kernel_a().iter().all(|k| k.is_finite()), "{form:?}");
        assert!(matches!(form.kernel_b(), Err(Error::Invalid { .. })), "{form:?}");
        let [a, b, c] = &system;
        let too_long = diagonal_form(a, b, c, 0.1, 300);
        assert!(matches!(too_long, Err(Error::Invalid { .. })), "{too_long:?}");
        let too_long = state_space_kernel(a, b, c, 0.1, 300);
        assert!(matches!(too_long, Err(Error::Invalid { .. })), "{too_long:?}");
    }

    /// e^{LλΔ} = 1: part (a) holds, part (b) does not.
    #[test]
    fn whole_turns_leave_part_a() {
        let (delta, len) = (0.01, 100);
        for turns in [1.0, -3.0, 100.0] {
            let lambda = [C64::new(0.0, turns * TAU / (delta * len as f64)), C64::new(-1.0, 2.0)];
            let [a, b, c] = with_eigenvalues(&lambda, &mut ChaCha8Rng::seed_from_u64(5));
            let form = diagonal_form(&a, &b, &c, delta, len).unwrap();
            let reference = state_space_kernel(&a, &b, &c, delta, len).unwrap();
            assert!(relative_error(&form.kernel_a(), &reference) < 1e-10);
            assert!(is_singular(&form.w, "≠ 1") && is_singular(&form.kernel_b(), "≠ 1"));
        }
        let near = [C64::new(-1e-7, TAU)];
        let (a, b, _) =
            errors(&with_eigenvalues(&near, &mut ChaCha8Rng::seed_from_u64(5)), delta, len);
        assert!(a < 1e-12 && b < 1e-12, "{a:e} {b:e}");
    }

    #[test]
    fn zero_kernel() {
        let form =
            diagonal_form_real(&[-1.0, 0.5, 0.0, -2.0], &[0.0; 2], &[1.0; 2], 0.1, 5).unwrap();
        assert_eq!(form.conditioning, Conditioning::Good);
        assert_eq!(form.kernel_b().unwrap(), [C64::ZERO; 5]);
    }

    #[test]
    fn bad_arguments() {
        let (a, b, c) = (real(&[-1.0, 0.0, 0.0, -2.0]), real(&[1.0, 1.0]), real(&[1.0, 1.0]));
        let both = |a: &[C64], b: &[C64], c: &[C64], delta: f64, len: usize| {
            let one = diagonal_form(a, b, c, delta, len).map(drop).unwrap_err();
            let two = state_space_kernel(a, b, c, delta, len).map(drop).unwrap_err();
            [one, two]
        };
        for e in both(&a[..3], &b, &c, 0.1, 4).iter().chain(&both(&a, &b, &c[..1], 0.1, 4)) {
            assert!(matches!(e, Error::Shape { .. }), "{e}");
        }
        let nan = [C64::ONE, C64::new(0.0, f64::NAN)];
        for e in both(&a, &nan, &c, 0.1, 4) {
            assert!(matches!(e, Error::NonFinite { name: "b", index: 1, .. }), "{e}");
        }
        let invalid = [(0.0, 4), (-1.0, 4), (f64::NAN, 4), (f64::INFINITY, 4), (0.1, 0)];
        for (delta, len) in invalid {
            for e in both(&a, &b, &c, delta, len) {
                assert!(matches!(e, Error::Invalid { .. }), "{e}");
            }
        }
        for e in both(&[], &[], &[], 0.1, 4) {
            assert!(matches!(e, Error::Invalid { .. }), "{e}");
        }
    }
}
