//! From activations to what the model says.

use burn::module::Module;
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor};
use dss_format::{ModelConfig, OutputKind};

use crate::composed::gelu;
use crate::dispatch;
use crate::linear::Linear;

/// The last layer of a model.
#[derive(Module, Debug)]
pub enum Head {
    /// One output per sequence, from the pooled activations.
    Sequence(Readout),
    /// One output per position.
    Position(Readout),
    /// One output per pair of sequences: a GELU network on \[a, b, a − b, a·b\] of their pooled activations a and b.
    Pair(TwoLayers),
}

/// The map to outputs.
#[derive(Module, Debug)]
pub enum Readout {
    /// `[O, H]`.
    Linear(Linear),
    /// With a hidden relu layer.
    Hidden(TwoLayers),
}

/// Two linear maps with something between them.
#[derive(Module, Debug)]
pub struct TwoLayers {
    /// The first, `[F, in]`.
    pub hidden: Linear,
    /// The second, `[O, F]`.
    pub out: Linear,
}

impl TwoLayers {
    fn new(inputs: usize, width: usize, outputs: usize, seed: u64, device: &Device) -> Self {
        Self {
            hidden: Linear::new(inputs, width, seed, "head.hidden", device),
            out: Linear::new(width, outputs, seed, "head.out", device),
        }
    }

    fn forward(&self, x: Tensor<2>, between: fn(Tensor<2>) -> Tensor<2>) -> Tensor<2> {
        self.out.forward(between(self.hidden.forward(x)))
    }
}

impl Readout {
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        match self {
            Self::Linear(linear) => linear.forward(x),
            Self::Hidden(layers) => layers.forward(x, relu),
        }
    }
}

impl Head {
    /// A new head of this kind of output.
    pub fn new(config: &ModelConfig, kind: OutputKind, seed: u64, device: &Device) -> Self {
        Self::of_features(config.h, config, kind, seed, device)
    }

    /// The same for sequences that are vectors of so many numbers.
    pub(crate) fn of_features(
        features: usize,
        config: &ModelConfig,
        kind: OutputKind,
        seed: u64,
        device: &Device,
    ) -> Self {
        let ModelConfig { head_hidden, .. } = *config;
        let readout = |outputs| match head_hidden {
            0 => Readout::Linear(Linear::new(features, outputs, seed, "head", device)),
            width => Readout::Hidden(TwoLayers::new(features, width, outputs, seed, device)),
        };
        match kind {
            OutputKind::Sequence { outputs } => Self::Sequence(readout(outputs)),
            OutputKind::Position { outputs } => Self::Position(readout(outputs)),
            OutputKind::Pair { outputs } => {
                Self::Pair(TwoLayers::new(4 * features, config.pair_width(), outputs, seed, device))
            }
        }
    }

    /// `[B, L, H]` -> `[B, O]`; per position `[B·L, O]`; per pair `[B/2, O]`, where the first half of the batch are the
    /// first sequences of the pairs.
    ///
    /// # Panics
    /// If pairs are asked of an odd batch.
    pub fn forward(&self, x: Tensor<3>, config: &ModelConfig, lengths: &[usize]) -> Tensor<2> {
        match self {
            Self::Position(readout) => {
                let [batch, l, h] = x.dims();
                readout.forward(x.reshape([batch * l, h]))
            }
            _ => self.of_vectors(dispatch::pool(config.form, x, config.pool, lengths)),
        }
    }

    /// The answers about sequences that are vectors `[B, F]`.
    ///
    /// # Panics
    /// As [`Self::forward`].
    pub(crate) fn of_vectors(&self, x: Tensor<2>) -> Tensor<2> {
        match self {
            Self::Sequence(readout) | Self::Position(readout) => readout.forward(x),
            Self::Pair(layers) => {
                let [batch, _] = x.dims();
                assert!(batch % 2 == 0, "pairs need an even batch, but it has {batch} sequences");
                let (a, b) = (x.clone().narrow(0, 0, batch / 2), x.narrow(0, batch / 2, batch / 2));
                let features = vec![a.clone(), b.clone(), a.clone() - b.clone(), a * b];
                layers.forward(Tensor::cat(features, 1), gelu)
            }
        }
    }
}
