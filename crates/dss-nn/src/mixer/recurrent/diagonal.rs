//! What LRU and S5 share: a diagonal recurrence in ℂᴺ between two real matrices, the shortcut D, GELU and the output
//! projection. A complex vector is its real parts, then its imaginary parts.

use burn::module::Param;
use burn::tensor::Tensor;

use crate::composed;
use crate::linear::Linear;
use crate::mixer::Pass;

/// x' = λ·x + z of rows z, x `[B, 2N]`, λ `[1, 2N]`.
pub(crate) fn diagonal_step(lambda: &Tensor<2>, z: Tensor<2>, x: Tensor<2>) -> Tensor<2> {
    let n = x.dims()[1] / 2;
    let part = |x: &Tensor<2>, i: usize| x.clone().narrow(1, i * n, n);
    let (re, im) = (part(lambda, 0), part(lambda, 1));
    let (x_re, x_im) = (part(&x, 0), part(&x, 1));
    let next_re = re.clone() * x_re.clone() - im.clone() * x_im.clone();
    let next_im = re * x_im + im * x_re;
    Tensor::cat(vec![next_re, next_im], 1) + z
}

/// λ = e^ζ as a row `[1, 2N]`, of the real and imaginary parts `[N]` of ζ.
pub(crate) fn exponential_row(re: Tensor<1>, im: Tensor<1>) -> Tensor<2> {
    let size = re.exp();
    Tensor::cat(vec![size.clone() * im.clone().cos(), size * im.sin()], 0).unsqueeze()
}

/// Out(GELU(y + D·u)).
pub(crate) fn readout(
    y: Tensor<3>,
    u: Tensor<3>,
    d: &Param<Tensor<1>>,
    (out, glu): (&Linear, bool),
    pass: &Pass,
) -> Tensor<3> {
    let y = pass.dropped(composed::gelu(y + u * d.val().unsqueeze()), 0);
    composed::project(y, out.weight.val(), out.bias.val(), glu)
}
