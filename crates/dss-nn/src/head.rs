//! From activations to what the model says.

use burn::module::Module;
use burn::tensor::{Device, Tensor};

use crate::composed::gelu;
use crate::config::{Form, OutputKind, Pool};
use crate::linear::Linear;

/// The last layer of a model.
#[derive(Module, Debug)]
pub enum Head {
    /// One output per sequence, from the pooled activations.
    Sequence(Linear),
    /// One output per position.
    Position(Linear),
    /// One output per pair of sequences.
    Pair(PairHead),
}

/// GELU network on \[a, b, a − b, a·b\] of the pooled activations a and b of two sequences.
#[derive(Module, Debug)]
pub struct PairHead {
    /// `[H, 4H]`.
    pub hidden: Linear,
    /// `[O, H]`.
    pub out: Linear,
}

impl Head {
    /// A new head on h channels.
    pub fn new(kind: OutputKind, h: usize, seed: u64, device: &Device) -> Self {
        match kind {
            OutputKind::Sequence { outputs } => {
                Self::Sequence(Linear::new(h, outputs, seed, "head", device))
            }
            OutputKind::Position { outputs } => {
                Self::Position(Linear::new(h, outputs, seed, "head", device))
            }
            OutputKind::Pair { outputs } => Self::Pair(PairHead {
                hidden: Linear::new(4 * h, h, seed, "head.hidden", device),
                out: Linear::new(h, outputs, seed, "head.out", device),
            }),
        }
    }

    /// `[B, L, H]` -> `[B, O]`; per position `[B·L, O]`; per pair `[B/2, O]`, where the first half of the batch are the
    /// first sequences of the pairs.
    ///
    /// # Panics
    /// If pairs are asked of an odd batch.
    pub fn forward(&self, x: Tensor<3>, pool: Pool, lengths: &[usize], form: Form) -> Tensor<2> {
        match self {
            Self::Sequence(linear) => linear.forward(form.pool(x, pool, lengths)),
            Self::Position(linear) => {
                let [batch, l, h] = x.dims();
                linear.forward(x.reshape([batch * l, h]))
            }
            Self::Pair(head) => {
                let x = form.pool(x, pool, lengths);
                let [batch, _] = x.dims();
                assert!(batch % 2 == 0, "pairs need an even batch, but it has {batch} sequences");
                let (a, b) = (x.clone().narrow(0, 0, batch / 2), x.narrow(0, batch / 2, batch / 2));
                let features = vec![a.clone(), b.clone(), a.clone() - b.clone(), a * b];
                head.out.forward(gelu(head.hidden.forward(Tensor::cat(features, 1))))
            }
        }
    }
}
