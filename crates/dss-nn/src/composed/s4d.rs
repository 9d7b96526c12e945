//! K `[C, H, L]` of S4D: the sum of exponentials of `kernel.rs` with the exponents and coefficients
//!
//! | | ζ | c |
//! |-|---|---|
//! | zero-order hold | Δλ | 2C·(e^ζ − 1)/λ |
//! | bilinear | ln(1 + Δλ/2) − ln(1 − Δλ/2) | 2C·Δ/(1 − Δλ/2) |

use burn::tensor::Tensor;
use dss_kernels::kernel::DELTA_LOG_LIMIT;

use super::complex::Complex;
use super::kernel::{Modes, exponential_sums, per_channel};
use super::work_dtype;
use crate::ops::{S4dParams, S4dSpec};
use dss_format::mixer::Discretisation;

/// Least |1 + Δλ/2|²: 0 has no logarithm.
const SMALL: f64 = 1e-40;

/// K: `[C, H, taps]` of S4D.
///
/// # Panics
/// If the shapes do not fit together.
pub fn s4d_kernel(params: &S4dParams, spec: &S4dSpec) -> Tensor<3> {
    let Modes { zeta, c, .. } = s4d_modes(params, spec.discretisation);
    exponential_sums(&zeta, c, spec.taps, params.c.dtype())
}

/// The modes of the table above, in f64 where the device has it.
pub(crate) fn s4d_modes(params: &S4dParams, discretisation: Discretisation) -> Modes {
    let work = work_dtype(&params.c);
    let [channels, h, pairs, _] = params.c.dims();
    let exp = |x: &Tensor<1>| x.clone().cast(work).clamp(-DELTA_LOG_LIMIT, DELTA_LOG_LIMIT).exp();
    let delta = exp(&params.delta_log).reshape([h, 1]);
    let lambda = Complex::new(-exp(&params.lambda_re), params.lambda_im.clone().cast(work));
    let lambda = lambda.map(|x| per_channel(x.unsqueeze(), h, pairs)); // [1 or H, N/2]
    let z = lambda.clone().scale(delta.clone()); // [H, N/2]
    let (zeta, q) = match discretisation {
        Discretisation::Zoh => (z.clone(), z.expm1().mul(lambda.reciprocal())),
        Discretisation::Bilinear => {
            let half = z.map(|x| x * 0.5);
            let above = Complex::new(half.re.clone() + 1.0, half.im.clone());
            let below = Complex::new(-half.re + 1.0, -half.im);
            (ln(above).sub(ln(below.clone())), below.reciprocal().scale(delta))
        }
    };
    let c = Complex::pairs(params.c.clone().cast(work)).reshape([channels, h, pairs]);
    let c = c.mul(q.reshape([1, h, pairs])).map(|x| x * 2.0);
    let decaying = Tensor::ones([1, pairs], (&params.c.device(), work));
    Modes { zeta, c, decaying }
}

/// ln x on the main branch.
fn ln(x: Complex<2>) -> Complex<2> {
    let re = x.norm_sqr().clamp_min(SMALL).log() * 0.5;
    Complex::new(re, x.im.atan2(x.re))
}
