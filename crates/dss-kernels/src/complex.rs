//! The few complex functions the paper needs, in f64 and safe over the whole range of finite arguments.

use num_complex::Complex;

/// The number type of what is made of the parameters once per call, O(H·N); loops over time run in the caller's precision.
pub type C64 = Complex<f64>;

/// exp(z) for Re z ≤ 0: modulus at most one, zero where it underflows.
pub(crate) fn exp(z: C64) -> C64 {
    let r = z.re.exp();
    if r == 0.0 {
        return C64::ZERO;
    }
    let (sin, cos) = z.im.sin_cos();
    C64::new(r * cos, r * sin)
}

/// exp(z) − 1 without cancellation near z = 0.
///
/// With a = Re z, b = Im z: Re = expm1(a)·cos b − 2 sin²(b/2), Im = exp(a)·sin b.
pub(crate) fn expm1(z: C64) -> C64 {
    let (sin, cos) = z.im.sin_cos();
    let half = (0.5 * z.im).sin();
    C64::new(z.re.exp_m1() * cos - 2.0 * half * half, z.re.exp() * sin)
}

/// conj(x) / (|x|² + ε): the paper's reciprocal_ε (§A.2), at most 1/(2√ε) in modulus.
///
/// Beyond |x| = 1e100 the ε is lost to rounding and the quotient is formed scaled, so that |x|² cannot overflow.
pub(crate) fn reciprocal_eps(x: C64, eps: f64) -> C64 {
    let size = x.re.abs().max(x.im.abs());
    if size > 1e100 {
        let unit = x.unscale(size);
        return unit.conj().unscale(unit.norm_sqr()).unscale(size);
    }
    x.conj().unscale(x.norm_sqr() + eps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expm1_keeps_its_digits_near_zero() {
        let z = C64::new(1e-12, -3e-12);
        let series = z + z * z / 2.0;
        assert!((expm1(z) - series).norm() < 1e-27);
        let far = C64::new(-1.5, 40.0);
        assert!((expm1(far) - (far.exp() - 1.0)).norm() < 1e-15);
    }

    #[test]
    fn reciprocal_is_bounded_and_right() {
        let eps = 1e-7;
        for (re, im) in [(0.0, 0.0), (1e-4, 2e-4), (3.0, -4.0), (1e90, 1e90), (1e200, -1e300)] {
            let x = C64::new(re, im);
            let r = reciprocal_eps(x, eps);
            assert!(r.is_finite() && r.norm() <= 0.5 / eps.sqrt() * (1.0 + 1e-12));
            if x.norm() > 1e3 {
                assert!((r * x - 1.0).norm() < 1e-12);
            }
        }
    }
}
