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

use faer::linalg::solvers::{PartialPivLu, Solve};
use faer::{Mat, Scale};

use crate::complex::{C64, exp, expm1};
use crate::error::{Error, Result, check_len};
use crate::ssm_softmax::{exp_multiple, expm1_multiple, ssm_softmax_direct};

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
    /// Part (a) stands either way.
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
    fn new(error: f64, n: usize, condition: f64) -> Self {
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

/// Eq. (4) as it stands: K_k = C Āᵏ B̄ with Ā = e^{AΔ}, B̄ = (Ā − I)A⁻¹B, by dense matrices in O(N³ + LN²).
///
/// With b = 2‖B‖₁, Ā and B̄/bΔ are blocks of exp([[AΔ, B/b], [0, 0]]): A may be singular or defective.
/// This is the reference for [`diagonal_form`].
///
/// # Shapes
/// A: `[N, N]`, row by row; B: `[N]`; C: `[N]`. Returns K: `[L]`.
///
/// # Errors
/// [`Error::Shape`], [`Error::NonFinite`] or [`Error::Invalid`] on bad arguments (N = 0, L = 0,
/// Δ ≤ 0), and where K overflows.
pub fn state_space_kernel(
    a: &[C64],
    b: &[C64],
    c: &[C64],
    delta: f64,
    len: usize,
) -> Result<Vec<C64>> {
    let op = "state_space_kernel";
    check(op, a, b, c, delta, len)?;
    let n = b.len();
    let size = 2.0 * b.iter().map(|z| z.norm()).sum::<f64>();
    let augmented = Mat::from_fn(n + 1, n + 1, |i, j| match (i < n, j < n) {
        (true, true) => a[i * n + j] * delta,
        (true, false) if size > 0.0 => b[i] / size,
        _ => C64::ZERO,
    });
    let e = matrix_exp(&augmented);
    let a_bar = e.get(..n, ..n);
    let mut x = e.get(..n, n..) * scale(size * delta);
    let mut k = Vec::with_capacity(len);
    for position in 0..len {
        k.push((0..n).map(|i| c[i] * x[(i, 0)]).sum::<C64>());
        if !k[position].is_finite() {
            return Err(Error::Invalid { op, what: format!("K overflows at k = {position}") });
        }
        x = a_bar * x;
    }
    Ok(k)
}

/// e^X by scaling and squaring: the Taylor polynomial of degree 18 at X/2ˢ, ‖X/2ˢ‖₁ ≤ ½, squared s times.
fn matrix_exp(x: &Mat<C64>) -> Mat<C64> {
    let norm = x.col_iter().map(|col| col.norm_l1()).fold(0.0, f64::max);
    if !norm.is_finite() {
        return Mat::full(x.nrows(), x.ncols(), C64::from(f64::NAN));
    }
    let squarings = (2.0 * norm).log2().ceil().max(0.0) as i32;
    let x = x * scale(0.5f64.powi(squarings));
    let identity = Mat::<C64>::identity(x.nrows(), x.ncols());
    let mut e = identity.clone();
    for degree in (1..=18).rev() {
        e = &identity + &x * e * scale(1.0 / f64::from(degree));
    }
    for _ in 0..squarings {
        e = &e * &e;
    }
    e
}

fn scale(by: f64) -> Scale<C64> {
    Scale(C64::from(by))
}

/// A = VΛV⁻¹ as far as the eigensolver got it.
struct Eigenbasis {
    /// Λ
    lambda: Vec<C64>,
    /// V, its columns of norm one.
    v: Mat<C64>,
    /// ‖A v_j − λ_j v_j‖, or ε‖A‖ if that is more.
    residual: Vec<f64>,
    /// ‖A‖_F
    norm_a: f64,
}

/// The eigensolver is given A/2ᵐ with entries about one, as it is not indifferent to scale.
fn eigenbasis(a: &[C64], n: usize) -> Result<Eigenbasis> {
    let size = max(a.iter().map(|z| z.norm()));
    if size != 0.0 && !(1e-100..1e100).contains(&size) {
        let what = format!("max |A| must be between 1e-100 and 1e100, but is {size:e}");
        return Err(Error::Invalid { op: OP, what });
    }
    let power = if size == 0.0 { 1.0 } else { size.log2().floor().exp2() };
    let a = Mat::from_fn(n, n, |i, j| a[i * n + j] / power);
    let eigen = a.eigen().map_err(|_| singular("the eigensolver did not converge".into()))?;

    let mut v = eigen.U().to_owned();
    for column in v.col_iter_mut() {
        let norm = column.norm_l2();
        column.iter_mut().for_each(|x| *x /= norm);
    }
    let lambda = eigen.S();
    let residual = &a * &v - &v * lambda;
    if !residual.is_all_finite() {
        return Err(singular("the eigensolver failed".into()));
    }
    let rounding = f64::EPSILON * a.norm_l2();
    Ok(Eigenbasis {
        lambda: lambda.column_vector().iter().map(|z| z * power).collect(),
        residual: residual.col_iter().map(|r| power * r.norm_l2().max(rounding)).collect(),
        norm_a: power * a.norm_l2(),
        v,
    })
}

/// What Proposition 1 asks of Λ, and that nothing overflows.
fn check_eigenvalues(lambda: &[C64], condition: f64, rounding: f64, end: f64) -> Result<()> {
    let n = lambda.len();
    if let Some(i) = (0..n).find(|&i| lambda[i].norm() <= rounding) {
        let zero = format!("λ[{i}] = {:e} is zero to rounding", lambda[i]);
        return Err(singular(format!("Prop. 1 needs every λ ≠ 0, but {zero}")));
    }
    let mut pairs = (0..n).flat_map(|j| (0..j).map(move |i| (i, j)));
    let coincide = |&(i, j): &(usize, usize)| (lambda[i] - lambda[j]).norm() <= rounding;
    if n as f64 * f64::EPSILON * condition >= 1.0
        && let Some((i, j)) = pairs.find(coincide)
    {
        let double = format!("λ[{i}] = λ[{j}] = {:e} without a second eigenvector", lambda[i]);
        return Err(singular(format!("A is not diagonalisable: {double}")));
    }
    let growth = growth(lambda);
    if growth * end > 700.0 {
        let what = format!("exp(Re λ ΔL) overflows: Re λ = {growth:e}, ΔL = {end:e}");
        return Err(Error::Invalid { op: OP, what });
    }
    Ok(())
}

/// The bound of [`Conditioning`] on |δK|, without the roundings of the sum; `x` is V⁻¹B.
fn perturbation(
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

/// max(0, Re λ): the rate at which the kernel may grow.
fn growth(lambda: &[C64]) -> f64 {
    max(lambda.iter().map(|z| z.re))
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
    use super::*;
    use crate::init::{random_lambda, random_lambda_left};
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;
    use std::f64::consts::TAU;

    /// (A, B, C)
    type StateSpace = [Vec<C64>; 3];

    fn real(x: &[f64]) -> Vec<C64> {
        x.iter().copied().map(C64::from).collect()
    }

    /// A = V diag(λ) V⁻¹ with normal V; normal B and C.
    fn with_eigenvalues(lambda: &[C64], rng: &mut ChaCha8Rng) -> StateSpace {
        let n = lambda.len();
        let v = random_lambda(n * n, rng);
        let v = Mat::from_fn(n, n, |i, j| v[i * n + j]);
        let scaled = Mat::from_fn(n, n, |i, j| v[(i, j)] * lambda[j]);
        let a = v.partial_piv_lu().rsolve(scaled);
        let a = (0..n * n).map(|k| a[(k / n, k % n)]).collect();
        [a, random_lambda(n, rng), random_lambda(n, rng)]
    }

    /// HiPPO-LegS: A_nk = −√(2n+1)√(2k+1) below the diagonal, −(n+1) on it; B_n = √(2n+1).
    fn hippo(n: usize, rng: &mut ChaCha8Rng) -> StateSpace {
        let root = |i: usize| ((2 * i + 1) as f64).sqrt();
        let entry = |i: usize, k: usize| match i.cmp(&k) {
            std::cmp::Ordering::Greater => -root(i) * root(k),
            std::cmp::Ordering::Equal => -(i as f64 + 1.0),
            std::cmp::Ordering::Less => 0.0,
        };
        let a: Vec<f64> = (0..n * n).map(|t| entry(t / n, t % n)).collect();
        let b: Vec<f64> = (0..n).map(root).collect();
        let c: Vec<f64> = random_lambda(n, rng).iter().map(|z| z.re).collect();
        [real(&a), real(&b), real(&c)]
    }

    /// diag(−1, −2, …) with `above` on the first superdiagonal: far from normal.
    fn bidiagonal(n: usize, above: f64, rng: &mut ChaCha8Rng) -> StateSpace {
        let a = (0..n * n).map(|t| match (t / n, t % n) {
            (i, j) if i == j => C64::from(-1.0 - i as f64),
            (i, j) if i + 1 == j => C64::from(above),
            _ => C64::ZERO,
        });
        [a.collect(), random_lambda(n, rng), random_lambda(n, rng)]
    }

    fn relative_error(k: &[C64], reference: &[C64]) -> f64 {
        assert_eq!(k.len(), reference.len());
        let error = max(k.iter().zip(reference).map(|(x, y)| (x - y).norm()));
        error / max(reference.iter().map(|z| z.norm()))
    }

    /// The errors of parts (a) and (b) against Eq. (4), and the form.
    fn errors([a, b, c]: &StateSpace, delta: f64, len: usize) -> (f64, f64, DiagonalForm) {
        let reference = state_space_kernel(a, b, c, delta, len).unwrap();
        let form = diagonal_form(a, b, c, delta, len).unwrap();
        let part_a = relative_error(&form.kernel_a(), &reference);
        let part_b = relative_error(&form.kernel_b().unwrap(), &reference);
        (part_a, part_b, form)
    }

    fn is_singular<T>(result: &Result<T>, about: &str) -> bool {
        matches!(result, Err(Error::Singular { what, .. }) if what.contains(about))
    }

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

    #[test]
    fn zero_eigenvalue() {
        let [b, c] = [real(&[1.0, 2.0]), real(&[1.0, 1.0])];
        for a in [[0.0, 1.0, 0.0, -1.0], [1.0, 2.0, 2.0, 4.0], [0.0; 4]] {
            let form = diagonal_form(&real(&a), &b, &c, 0.1, 10);
            assert!(is_singular(&form, "λ ≠ 0"), "{a:?}: {form:?}");
        }
        let rng = &mut ChaCha8Rng::seed_from_u64(4);
        let [a, b, c] = with_eigenvalues(&real(&[0.0, -1.0, -3.0]), rng);
        assert!(is_singular(&diagonal_form(&a, &b, &c, 0.1, 10), "λ ≠ 0"));
    }

    #[test]
    fn not_diagonalisable() {
        let ones = real(&[1.0; 3]);
        for a in [[1.0, 1.0, 0.0, 1.0], [-2.0, 0.0, 5.0, -2.0]] {
            let form = diagonal_form(&real(&a), &ones[..2], &ones[..2], 0.1, 10);
            assert!(is_singular(&form, "not diagonalisable"), "{a:?}: {form:?}");
        }
        let block = real(&[-1.0, 1.0, 0.0, 0.0, -1.0, 1.0, 0.0, 0.0, -1.0]);
        assert!(is_singular(&diagonal_form(&block, &ones, &ones, 0.1, 10), "not diagonalisable"));

        // Equal eigenvalues alone do no harm.
        let diagonal = real(&[-1.0, 0.0, 0.0, 0.0, -1.0, 0.0, 0.0, 0.0, -2.0]);
        let (a, b, form) = errors(&[diagonal, ones.clone(), ones], 0.1, 10);
        assert!(a < 1e-14 && b < 1e-14);
        assert_eq!(form.conditioning, Conditioning::Good);
    }

    /// e^{LλΔ} = 1: part (a) stands, part (b) does not.
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

    /// Eq. (4) where its limit is known: one state, and integrators (A singular and defective).
    #[test]
    fn reference_kernel_in_closed_form() {
        let (delta, len) = (0.3, 20);
        let lambda = C64::new(-0.7, 5.0);
        let k = state_space_kernel(&[lambda], &[C64::ONE], &[C64::I], delta, len).unwrap();
        for (k, position) in k.iter().zip(0..) {
            let exact = C64::I
                * (lambda * delta * f64::from(position)).exp()
                * ((lambda * delta).exp() - 1.0)
                / lambda;
            assert!((k - exact).norm() < 1e-14);
        }
        // x₀' = x₁, x₁' = u, y = x₀: K_k = ∫ t dt from kΔ to (k+1)Δ
        let [a, b, c] = [&[0.0, 1.0, 0.0, 0.0][..], &[0.0, 1.0], &[1.0, 0.0]].map(real);
        let k = state_space_kernel(&a, &b, &c, delta, len).unwrap();
        for (k, position) in k.iter().zip(0..) {
            let exact = delta * delta * (f64::from(position) + 0.5);
            assert!((k - exact).norm() < 1e-14 * exact.max(1.0), "{k} {exact}");
        }
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
