//! The feed-forward part of a block: W₂·GELU(W₁·z + b₁) + b₂ at every position.

use burn::module::Module;
use burn::tensor::activation::tanh;
use burn::tensor::{Device, Tensor};
use dss_format::Gelu;

use crate::composed::gelu;
use crate::linear::{Linear, parameter};
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
    pub(crate) fn forward(&self, x: Tensor<3>, mask: Option<Tensor<2>>) -> Tensor<3> {
        let [batch, l, h] = x.dims();
        let hidden = self.hidden.forward(x.reshape([batch * l, h]));
        let mut hidden = match self.gelu {
            Gelu::Erf => gelu(hidden),
            Gelu::Tanh => gelu_tanh(hidden),
        };
        if let Some(mask) = mask {
            let width = hidden.dims()[1];
            let dropped = hidden.reshape([batch, l, width]) * mask.unsqueeze_dim(1);
            hidden = dropped.reshape([batch * l, width]);
        }
        self.out.forward(hidden).reshape([batch, l, h])
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

/// ½x·(1 + tanh(√(2/π)·(x + 0.044715·x³))).
fn gelu_tanh(x: Tensor<2>) -> Tensor<2> {
    let cube = x.clone() * x.clone() * x.clone();
    let inner = (x.clone() + cube * 0.044715) * (2.0 / std::f64::consts::PI).sqrt();
    x * (tanh(inner) + 1.0) * 0.5
}
