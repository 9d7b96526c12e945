//! What tells a block where in the sequence a position is, and the extra first position of cls pooling.

use burn::module::Param;
use burn::tensor::{DType, Device, Tensor};

use crate::composed::constant;
use crate::linear::parameter;
use crate::random::{normal, stream};

/// `[1, L, H]`: PE\[t, 2i\] = sin(t·10000^(−2i/H)), PE\[t, 2i + 1\] = cos of the same.
pub(crate) fn fixed(l: usize, h: usize, device: &Device, dtype: DType) -> Tensor<3> {
    let values = (0..l).flat_map(|t| dss_format::fixed_position(t, h)).collect();
    constant(values, [1, l, h], device, dtype)
}

/// A learned table `[L, H]` ~ N(0, 0.02²).
pub(crate) fn learned(l: usize, h: usize, seed: u64, device: &Device) -> Param<Tensor<2>> {
    let values = normal(l * h, &mut stream(seed, "positions")).into_iter().map(|x| 0.02 * x);
    parameter(values.collect(), [l, h], device)
}

/// x `[B, L, H]` with the vector cls `[H]` in front: `[B, L + 1, H]`.
pub(crate) fn prepend(cls: Tensor<1>, x: Tensor<3>) -> Tensor<3> {
    let [batch, _, h] = x.dims();
    Tensor::cat(vec![cls.reshape([1, 1, h]).expand([batch, 1, h]), x], 1)
}
