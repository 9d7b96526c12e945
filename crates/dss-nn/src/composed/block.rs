//! The layer and the block around it (§3.2).

use burn::tensor::Tensor;
use burn::tensor::activation::{sigmoid, tanh};
use dss_format::Gelu;

use super::{conv, norm, position_mask};
use crate::ops::{BatchStats, BlockParams, BlockSpec};

/// One block: `[B, L, H]` -> `[B, L, H]`, and what a BatchNorm in training saw.
///
/// Pre-norm x + f(norm(x)), post-norm norm(x + f(x)), with f(u) = drop(Out(drop(GELU(K * u + D·u)))).
///
/// # Panics
/// If the shapes do not fit together.
pub fn block(
    x: Tensor<3>,
    params: &BlockParams,
    spec: &BlockSpec,
) -> (Tensor<3>, Option<BatchStats>) {
    let norm = |x| norm(x, params.gamma.clone(), params.beta.clone(), &spec.norm);
    if spec.prenorm {
        let (u, stats) = norm(x.clone());
        (x + layer(u, params, spec), stats)
    } else {
        norm(x.clone() + layer(x, params, spec))
    }
}

/// f(u): `[B, L, H]` -> `[B, L, H]`.
fn layer(u: Tensor<3>, params: &BlockParams, spec: &BlockSpec) -> Tensor<3> {
    let u = match &spec.lengths {
        Some(lengths) => {
            let mask = position_mask(lengths, u.dims()[1], &u.device(), u.dtype());
            u * mask
        }
        None => u,
    };
    let (k, d, past) = (params.k.clone(), params.d.clone(), params.past.clone());
    let y = activated(mix(u, k, d, past, spec.bidirectional), spec.gelu);
    let y = dropped(y, spec, 0);
    let y = project(y, params.out_weight.clone(), params.out_bias.clone(), spec.glu);
    dropped(y, spec, 1)
}

/// K * u + D·u + past: `[B, L, H]` -> `[B, L, H]`.
pub(crate) fn mix(
    u: Tensor<3>,
    k: Tensor<3>,
    d: Tensor<1>,
    past: Option<Tensor<3>>,
    bidirectional: bool,
) -> Tensor<3> {
    let skip = u.clone() * d.unsqueeze();
    let y = conv(u, k, bidirectional) + skip;
    match past {
        Some(past) => y + past,
        None => y,
    }
}

/// GELU of one form or the other.
pub(crate) fn activated<const D: usize>(x: Tensor<D>, form: Gelu) -> Tensor<D> {
    match form {
        Gelu::Erf => gelu(x),
        Gelu::Tanh => gelu_tanh(x),
    }
}

/// x·Φ(x) with the error function itself, differentiated as such on every backend.
pub(crate) fn gelu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    let cdf = ((x.clone() * std::f64::consts::FRAC_1_SQRT_2).erf() + 1.0) * 0.5;
    x * cdf
}

/// ½x·(1 + tanh(√(2/π)·(x + 0.044715·x³))).
fn gelu_tanh<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    let cube = x.clone() * x.clone() * x.clone();
    let inner = (x.clone() + cube * 0.044715) * (2.0 / std::f64::consts::PI).sqrt();
    x * (tanh(inner) + 1.0) * 0.5
}

/// The output projection, with GLU a·sigmoid(b) of its two halves (a, b): `[.., H]` -> `[.., H]`.
pub(crate) fn project<const D: usize>(
    y: Tensor<D>,
    weight: Tensor<2>,
    bias: Tensor<1>,
    glu: bool,
) -> Tensor<D> {
    let shape = y.dims();
    let h = shape[D - 1];
    let y = y.reshape([-1, h as i64]).matmul(weight.transpose()) + bias.unsqueeze::<2>();
    let y = if glu { y.clone().narrow(1, 0, h) * sigmoid(y.narrow(1, h, h)) } else { y };
    y.reshape(shape)
}

/// x with the channels that mask `i` says dropped.
fn dropped(x: Tensor<3>, spec: &BlockSpec, i: usize) -> Tensor<3> {
    match &spec.masks {
        Some(masks) => x * masks[i].clone().unsqueeze_dim(1),
        None => x,
    }
}
