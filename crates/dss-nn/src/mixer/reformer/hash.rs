//! The buckets of a locality-sensitive hash: argmax of [x·G, −x·G].

use burn::tensor::{DType, Tensor};
use dss_kernels::attention::gathered::hash_buckets;

use super::ChunkSpec;
use crate::fused::Float;
use crate::mixer::heads::split;

/// The buckets `[B, heads, R, L]` of x `[B, L, Q]` with rotations G `[heads, d, R, n/2]`, or 1 for the heads.
pub(super) fn buckets(
    x: &Tensor<3>,
    rotations: Tensor<4>,
    spec: &ChunkSpec,
    fused: bool,
) -> Vec<u32> {
    match (fused, x.dtype()) {
        (false, _) => composed(x, rotations, spec),
        (true, DType::F64) => on_host::<f64>(x, &rotations, spec),
        (true, _) => on_host::<f32>(x, &rotations, spec),
    }
}

/// By the kernels, without the products of all positions.
fn on_host<T: Float>(x: &Tensor<3>, rotations: &Tensor<4>, spec: &ChunkSpec) -> Vec<u32> {
    let numbers = |data: burn::tensor::TensorData| -> Vec<T> { data.iter::<T>().collect() };
    let [_, l, width] = x.dims();
    let sizes = [l, spec.heads, width / spec.heads];
    hash_buckets(&numbers(x.to_data()), sizes, &numbers(rotations.to_data()), &spec.sizes)
}

/// On any backend.
fn composed(x: &Tensor<3>, rotations: Tensor<4>, spec: &ChunkSpec) -> Vec<u32> {
    let [batch, l, _] = x.dims();
    let ([copies, d, rounds, half], heads) = (rotations.dims(), spec.heads);
    let rotations = rotations.reshape([1, copies, d, rounds * half]);
    let rotations = rotations.expand([batch, heads, d, rounds * half]);
    let products = split(x.clone(), heads).matmul(rotations); // [B, heads, L, R·n/2]
    let products = products.reshape([batch * heads, l, rounds, half]).swap_dims(1, 2);
    let both = Tensor::cat(vec![products.clone(), products.neg()], 3);
    both.argmax(3).to_data().iter::<i64>().map(|bucket| bucket as u32).collect()
}
