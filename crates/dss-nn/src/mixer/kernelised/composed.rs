//! Kernelised attention out of Burn tensor operations: the specification, for any backend.

use burn::tensor::Tensor;
use burn::tensor::activation::relu;
use dss_kernels::kernelised::FeatureMap;

use super::KernelisedSpec;
use crate::composed::{constant, position_mask};
use crate::mixer::heads::{cut, flags, join, split};

/// Positions whose weights are made together in causal attention: what is before them is in their sums.
const CHUNK: usize = 64;

/// y of q, k, v `[B, L, Q]`, per head; hidden keys have weight 0, positions beyond a length give 0.
pub(super) fn attention(
    [q, k, v]: [Tensor<3>; 3],
    directions: Option<&Tensor<2>>,
    lengths: Option<&[usize]>,
    spec: KernelisedSpec,
) -> Tensor<3> {
    let [batch, l, width] = q.dims();
    let (heads, d) = (spec.heads, width / spec.heads);
    let (device, dtype) = (q.device(), q.dtype());
    let phi_q = query_features(split(q, heads), directions, spec);
    let mut phi_k = key_features(split(k, heads), directions, lengths, spec);
    if let Some(lengths) = lengths {
        phi_k = phi_k * position_mask(lengths, l, &device, dtype).unsqueeze_dim::<4>(1);
    }
    // A value of 1 beside the others: its sum is that of the weights.
    let ones = Tensor::ones([batch, heads, l, 1], (&device, dtype));
    let v = Tensor::cat(vec![split(v, heads), ones], 3);
    let sums = match spec.causal {
        true => causal_sums(phi_q, phi_k, v),
        false => phi_q.matmul(phi_k.swap_dims(2, 3).matmul(v)),
    };
    let inverse = (sums.clone().narrow(3, d, 1) + spec.eps).recip();
    cut(join(sums.narrow(3, 0, d) * inverse), lengths)
}

/// Σ_{j ≤ i} φ(q_i)·φ(k_j)·v_j `[B, h, L, e]`: within chunks by their weights, before them by S of the chunks so far.
fn causal_sums(phi_q: Tensor<4>, phi_k: Tensor<4>, v: Tensor<4>) -> Tensor<4> {
    let [batch, heads, l, e] = v.dims();
    let (device, dtype) = (v.device(), v.dtype());
    let chunks = l.div_ceil(CHUNK);
    let cut = |x: Tensor<4>| -> Tensor<5> {
        let (width, missing) = (x.dims()[3], chunks * CHUNK - l);
        let mut parts = vec![x];
        if missing > 0 {
            parts.push(Tensor::zeros([batch, heads, missing, width], (&device, dtype)));
        }
        Tensor::cat(parts, 2).reshape([batch, heads, chunks, CHUNK, width])
    };
    let (phi_q, phi_k, v) = (cut(phi_q), cut(phi_k), cut(v));
    let s = phi_k.clone().swap_dims(3, 4).matmul(v.clone());
    let m = s.dims()[3];
    let mut before = vec![Tensor::zeros([batch, heads, 1, m, e], (&device, dtype))];
    if chunks > 1 {
        before.push(s.narrow(2, 0, chunks - 1).cumsum(2));
    }
    let s = Tensor::cat(before, 2);
    let seen = (0..CHUNK * CHUNK).map(|i| f64::from(i % CHUNK <= i / CHUNK)).collect();
    let seen: Tensor<5> = constant(seen, [1, 1, 1, CHUNK, CHUNK], &device, dtype);
    let weights = phi_q.clone().matmul(phi_k.swap_dims(3, 4)) * seen;
    let sums = phi_q.matmul(s) + weights.matmul(v);
    sums.reshape([batch, heads, chunks * CHUNK, e]).narrow(2, 0, l)
}

/// φ of queries `[B, h, L, d]` -> `[B, h, L, m]`.
pub(super) fn query_features(
    x: Tensor<4>,
    directions: Option<&Tensor<2>>,
    spec: KernelisedSpec,
) -> Tensor<4> {
    match spec.map {
        FeatureMap::EluPlusOne => elu_plus_one(x),
        FeatureMap::Relu { eps } => relu(x) + eps,
        FeatureMap::Favor { eps, .. } => {
            let (p, half_square) = products(x, directions);
            let largest = p.clone().max_dim(3);
            exponentials(p - half_square - largest, eps)
        }
    }
}

/// φ of keys; those at and beyond the lengths have no say in the others'.
pub(super) fn key_features(
    x: Tensor<4>,
    directions: Option<&Tensor<2>>,
    lengths: Option<&[usize]>,
    spec: KernelisedSpec,
) -> Tensor<4> {
    match spec.map {
        FeatureMap::EluPlusOne => elu_plus_one(x),
        FeatureMap::Relu { eps } => relu(x) + eps,
        FeatureMap::Favor { eps, .. } => {
            let [batch, heads, l, _] = x.dims();
            let (mut p, half_square) = products(x, directions);
            let m = p.dims()[3];
            if let Some(lengths) = lengths {
                let hidden = lengths.iter().flat_map(|&len| (0..l).map(move |t| t >= len));
                let hidden = flags(hidden.collect(), [batch, 1, l, 1], p.dims(), &p.device());
                p = p.mask_fill(hidden, f64::NEG_INFINITY);
            }
            let c: Tensor<4> = match spec.causal {
                // An upper bound of all exponents: the maximum would look ahead.
                true => {
                    let w = directions.expect("directions of FAVOR+").clone().detach();
                    (w.square().sum_dim(1).max() * 0.5).reshape([1, 1, 1, 1])
                }
                false => p.clone().reshape([batch, heads, 1, l * m]).max_dim(3),
            };
            exponentials(p - half_square - c, eps)
        }
    }
}

/// max(x, 0) + e^min(x, 0).
fn elu_plus_one(x: Tensor<4>) -> Tensor<4> {
    let positive = x.clone().greater_scalar(0.0);
    let below = x.clone().mask_fill(positive.clone(), 0.0).exp();
    below.mask_where(positive, x + 1.0)
}

/// w·x̂ `[B, h, L, m]` and |x̂|²/2 `[B, h, L, 1]`, x̂ = x/d^¼.
fn products(x: Tensor<4>, directions: Option<&Tensor<2>>) -> (Tensor<4>, Tensor<4>) {
    let d = x.dims()[3];
    let x = x * (d as f64).powf(-0.25);
    let w = directions.expect("directions of FAVOR+").clone();
    let half_square = x.clone().square().sum_dim(3) * 0.5;
    (x.matmul(w.transpose().unsqueeze::<4>()), half_square)
}

/// (e^x + ε)/√m.
fn exponentials(x: Tensor<4>, eps: f64) -> Tensor<4> {
    let m = x.dims()[3] as f64;
    (x.exp() + eps) * (1.0 / m.sqrt())
}
