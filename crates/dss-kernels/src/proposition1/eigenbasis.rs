//! A = VΛV⁻¹, and what Proposition 1 asks of Λ.

use faer::Mat;

use super::{OP, max, singular};
use crate::complex::C64;
use crate::error::{Error, Result};

/// A = VΛV⁻¹ as far as the eigensolver got it.
pub(super) struct Eigenbasis {
    /// Λ
    pub(super) lambda: Vec<C64>,
    /// V, its columns of norm one.
    pub(super) v: Mat<C64>,
    /// ‖A v_j − λ_j v_j‖, or ε‖A‖ if that is more.
    pub(super) residual: Vec<f64>,
    /// ‖A‖_F
    pub(super) norm_a: f64,
}

/// The eigensolver is given A/2ᵐ with entries about one, as it is not indifferent to scale.
pub(super) fn eigenbasis(a: &[C64], n: usize) -> Result<Eigenbasis> {
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
pub(super) fn check_eigenvalues(
    lambda: &[C64],
    condition: f64,
    rounding: f64,
    end: f64,
) -> Result<()> {
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

/// max(0, Re λ): the rate at which the kernel may grow.
pub(super) fn growth(lambda: &[C64]) -> f64 {
    max(lambda.iter().map(|z| z.re))
}

#[cfg(test)]
mod tests {
    use super::super::systems::{errors, is_singular, real, with_eigenvalues};
    use super::super::{Conditioning, diagonal_form};
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

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
}
