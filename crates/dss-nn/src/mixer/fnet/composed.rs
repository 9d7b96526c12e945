//! Fourier mixing by matrix products.

use std::f64::consts::TAU;

use burn::tensor::Tensor;

use crate::composed::{constant, dft::Dft};
use crate::mixer::heads::cut;

/// y = Re(F_N·u·F_H) of u `[B, L, H]`, L ≤ n; u counts as 0 from a length on, and so does y.
pub(super) fn fourier(u: Tensor<3>, n: usize, lengths: Option<&[usize]>) -> Tensor<3> {
    let [batch, l, h] = u.dims();
    let (device, dtype) = (u.device(), u.dtype());
    let table = |f: fn(f64) -> f64| -> Tensor<2> {
        let angle = |i: usize| -TAU * (i / h * (i % h) % h) as f64 / h as f64;
        constant((0..h * h).map(|i| f(angle(i))).collect(), [h, h], &device, dtype)
    };
    let rows = cut(u, lengths).reshape([batch * l, h]);
    let over_positions = Dft::exact(n, &device, dtype);
    // The transform of real columns [B, H, N], followed by zeros.
    let transform = |x: Tensor<2>| {
        let x = x.reshape([batch, l, h]).swap_dims(1, 2);
        let mut parts = vec![x];
        if l < n {
            parts.push(Tensor::zeros([batch, h, n - l], (&device, dtype)));
        }
        over_positions.forward(Tensor::cat(parts, 2).reshape([batch * h, n]))
    };
    let re = transform(rows.clone().matmul(table(f64::cos))).re;
    let im = transform(rows.matmul(table(f64::sin))).im;
    // Frequency k₁ + m₁·k₂ is at [k₁, k₂].
    let y = (re - im).swap_dims(1, 2).reshape([batch, h, n]);
    cut(y.narrow(2, 0, l).swap_dims(1, 2), lengths)
}
