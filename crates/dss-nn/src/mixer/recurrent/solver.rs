//! One step of an explicit rule for dh/dt = f(h), in Burn operations.

use burn::tensor::Tensor;
use dss_format::mixer::SolverKind;

/// h after a step; `times` multiplies by its duration Δ.
pub(crate) fn integrate(
    solver: SolverKind,
    h: Tensor<2>,
    times: impl Fn(Tensor<2>) -> Tensor<2>,
    f: impl Fn(Tensor<2>) -> Tensor<2>,
) -> Tensor<2> {
    let k1 = f(h.clone());
    match solver {
        SolverKind::Euler => h + times(k1),
        SolverKind::Midpoint => {
            let middle = h.clone() + times(k1 * 0.5);
            h + times(f(middle))
        }
        SolverKind::Rk4 => {
            let third = 1.0 / 3.0;
            let k2 = f(h.clone() + times(k1.clone() * third));
            let k3 = f(h.clone() + times(k2.clone() - k1.clone() * third));
            let k4 = f(h.clone() + times(k1.clone() - k2.clone() + k3.clone()));
            h + times((k1 + (k2 + k3) * 3.0 + k4) * 0.125)
        }
    }
}
