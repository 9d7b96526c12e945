//! The feed-forward part of a block: W₂·GELU(W₁·z + b₁) + b₂ at every position.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use dss_format::{Form, Gelu};

use crate::dispatch;
use crate::linear::{Linear, parameter};
use crate::ops::FeedForwardParams;
use crate::random::{normal, stream, uniform};

/// Two linear maps around a GELU. Matrices start Xavier-uniform, biases ~ N(0, 10⁻¹²) (as the Long Range Arena's).
#[derive(Module, Debug)]
pub struct FeedForward {
    /// `[F, H]`.
    pub hidden: Linear,
    /// `[H, F]`.
    pub out: Linear,
    #[module(skip)]
    gelu: Gelu,
}

impl FeedForward {
    pub(crate) fn new(
        h: usize,
        width: usize,
        gelu: Gelu,
        seed: u64,
        name: &str,
        device: &Device,
    ) -> Self {
        let map = |part: &str, inputs: usize, outputs: usize| {
            let stream = |tensor: &str| stream(seed, &format!("{name}.{part}.{tensor}"));
            let bias = normal(outputs, &mut stream("bias")).into_iter().map(|x| 1e-6 * x).collect();
            Linear {
                weight: xavier(inputs, outputs, &mut stream("weight"), device),
                bias: parameter(bias, [outputs], device),
            }
        };
        Self { hidden: map("hidden", h, width), out: map("out", width, h), gelu }
    }

    /// `[B, L, H]` -> `[B, L, H]`; `mask` `[B, F]` drops hidden channels.
    pub(crate) fn forward(&self, form: Form, x: Tensor<3>, mask: Option<Tensor<2>>) -> Tensor<3> {
        let maps = [&self.hidden, &self.out].map(|map| (map.weight.val(), map.bias.val()));
        dispatch::feed_forward(form, x, &FeedForwardParams { maps, gelu: self.gelu, mask })
    }
}

/// A weight `[out, in]` ~ U(±√(6/(in + out))).
pub(crate) fn xavier(
    inputs: usize,
    outputs: usize,
    rng: &mut rand_chacha::ChaCha8Rng,
    device: &Device,
) -> burn::module::Param<Tensor<2>> {
    let bound = (6.0 / (inputs + outputs) as f64).sqrt();
    parameter(uniform(outputs * inputs, bound, rng), [outputs, inputs], device)
}
