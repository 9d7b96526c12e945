//! The normal law, the sigmoid and the exponential: what GELU(x) = x·Φ(x), its derivative Φ(x) + x·φ(x), the gated
//! unit and softmax need.
//!
//! The f32 forms are free of branches, so that loops over them become SIMD; Φ is right to 8e-7 of its value, for x > -5.

/// Single precision. `fuse` says whether the machine multiplies and adds in one step.
pub(crate) mod f32 {
    /// a·b + c
    #[inline(always)]
    fn fma(fuse: bool, a: f32, b: f32, c: f32) -> f32 {
        if fuse { a.mul_add(b, c) } else { a * b + c }
    }

    /// e^x for x ≤ 0, flushed to zero below -87.
    #[inline(always)]
    fn exp_negative(fuse: bool, x: f32) -> f32 {
        let x = x.max(-87.0);
        // e^x = 2^n·e^r with |r| ≤ ln(2)/2; ln 2 in two parts, the first with few digits.
        let n = (x * std::f32::consts::LOG2_E).round_ties_even();
        let r = fma(fuse, n, -0.693_359_4, x);
        let r = fma(fuse, n, 2.121_944_4e-4, r);
        // The Taylor polynomial of degree 7.
        let p = 1.0 / 5040.0;
        let p = fma(fuse, p, r, 1.0 / 720.0);
        let p = fma(fuse, p, r, 1.0 / 120.0);
        let p = fma(fuse, p, r, 1.0 / 24.0);
        let p = fma(fuse, p, r, 1.0 / 6.0);
        let p = fma(fuse, p, r, 0.5);
        let p = fma(fuse, p, r, 1.0);
        let p = fma(fuse, p, r, 1.0);
        // SAFETY: -126 ≤ n ≤ 0.
        let n = unsafe { n.to_int_unchecked::<i32>() };
        p * f32::from_bits(((n + 127) << 23) as u32)
    }

    /// (Φ(x), φ(x)). With a = |x|/√2, erfc(a) = e^{-a²}·t·P(t), t = 1/(1 + 0.37a): P fitted to e^{a²}·erfc(a) on [0, 8]
    /// in relative error (7.5e-9). The tails beyond 8 (6e-16) are 0: products with them would be denormal numbers, which
    /// are slow.
    #[inline(always)]
    pub(crate) fn normal(fuse: bool, x: f32) -> (f32, f32) {
        let e = exp_negative(fuse, -0.5 * x * x);
        let e = if x.abs() > 8.0 { 0.0 } else { e };
        let t = 1.0 / (1.0 + (0.37 * std::f32::consts::FRAC_1_SQRT_2) * x.abs());
        let p = 0.064_063_76;
        let p = fma(fuse, p, t, -0.313_772_37);
        let p = fma(fuse, p, t, 0.508_800_9);
        let p = fma(fuse, p, t, -0.310_846_18);
        let p = fma(fuse, p, t, 0.328_826_34);
        let p = fma(fuse, p, t, 0.098_624_155);
        let p = fma(fuse, p, t, 0.208_347_59);
        let p = fma(fuse, p, t, 0.207_123_02);
        let p = fma(fuse, p, t, 0.208_832_76);
        let upper = 0.5 * p * t * e;
        (if x < 0.0 { upper } else { 1.0 - upper }, e * 0.398_942_3)
    }

    /// e^x for x ≤ 0 and 1 above; 0 below -87, and NaN for NaN.
    #[inline(always)]
    pub(crate) fn exp_nonpositive(fuse: bool, x: f32) -> f32 {
        let e = exp_negative(fuse, x.min(0.0));
        let e = if x < -87.0 { 0.0 } else { e };
        if x.is_nan() { x } else { e }
    }

    /// 0 below -40 (4e-18), for the same reason.
    #[inline(always)]
    pub(crate) fn sigmoid(fuse: bool, x: f32) -> f32 {
        let e = exp_negative(fuse, -x.abs());
        let e = if x.abs() > 40.0 { 0.0 } else { e };
        let upper = 1.0 / (1.0 + e);
        let y = if x < 0.0 { e * upper } else { upper };
        if x.is_nan() { x } else { y }
    }
}

/// Double precision.
pub(crate) mod f64 {
    /// (Φ(x), φ(x))
    #[inline(always)]
    pub(crate) fn normal(_fuse: bool, x: f64) -> (f64, f64) {
        let density = (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
        (0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2), density)
    }

    #[inline(always)]
    pub(crate) fn sigmoid(_fuse: bool, x: f64) -> f64 {
        1.0 / (1.0 + (-x).exp())
    }

    /// e^x for x ≤ 0 and 1 above.
    #[inline(always)]
    pub(crate) fn exp_nonpositive(_fuse: bool, x: f64) -> f64 {
        if x > 0.0 { 1.0 } else { x.exp() }
    }
}

#[cfg(test)]
mod tests {
    /// NaN stays NaN, infinities go where they belong, the rest is within a few ulp of f64's answer.
    #[test]
    fn single_precision_is_close_to_double() {
        for fuse in [true, false] {
            check(fuse);
        }
    }

    fn check(fuse: bool) {
        for i in -100_000..=100_000 {
            let x = i as f32 * 1e-4;
            let ((cdf, pdf), (cdf64, pdf64)) =
                (super::f32::normal(fuse, x), super::f64::normal(fuse, x.into()));
            assert!((f64::from(cdf) - cdf64).abs() <= 2.5e-7, "Φ({x}) = {cdf}, not {cdf64}");
            assert!((f64::from(pdf) - pdf64).abs() <= 1e-7, "φ({x}) = {pdf}, not {pdf64}");
            if x > -5.0 {
                assert!((f64::from(cdf) - cdf64).abs() <= 1e-6 * cdf64, "Φ({x}) = {cdf}");
            }
            let sigmoid = super::f64::sigmoid(fuse, x.into());
            assert!((f64::from(super::f32::sigmoid(fuse, x)) - sigmoid).abs() <= 2e-7 * sigmoid);
            let (e, e64) =
                (super::f32::exp_nonpositive(fuse, 8.0 * x), (8.0 * f64::from(x)).min(0.0).exp());
            assert!((f64::from(e) - e64).abs() <= 3e-7 * e64, "exp({}) = {e}", 8.0 * x);
        }
        assert!(super::f32::normal(fuse, f32::NAN).0.is_nan());
        assert_eq!(super::f32::normal(fuse, f32::INFINITY).0, 1.0);
        assert_eq!(super::f32::normal(fuse, f32::NEG_INFINITY).0, 0.0);
        assert!(super::f32::sigmoid(fuse, f32::NAN).is_nan());
        assert_eq!(super::f32::sigmoid(fuse, f32::INFINITY), 1.0);
        assert_eq!(super::f32::sigmoid(fuse, f32::NEG_INFINITY), 0.0);
        assert!(super::f32::exp_nonpositive(fuse, f32::NAN).is_nan());
        assert_eq!(super::f32::exp_nonpositive(fuse, f32::INFINITY), 1.0);
        assert_eq!(super::f32::exp_nonpositive(fuse, -87.01), 0.0);
        assert_eq!(super::f32::exp_nonpositive(fuse, f32::NEG_INFINITY), 0.0);
        // What is left of the tails is far from denormal.
        assert!(
            super::f32::normal(fuse, -8.0).0 > 1e-16 && super::f32::normal(fuse, -8.01).0 == 0.0
        );
    }
}
