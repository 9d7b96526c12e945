//! From an input to activations: a row per token, or a linear map of numbers.

use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor};
use dss_format::{Form, InputKind};

use crate::dispatch;
use crate::linear::{Linear, parameter};
use crate::random::{normal, stream};

/// A batch of sequences.
#[derive(Debug, Clone)]
pub enum Input {
    /// Token ids: `[B, L]`.
    Tokens(Tensor<2, Int>),
    /// Numbers: `[B, L, channels]`.
    Values(Tensor<3>),
}

impl Input {
    /// B and L.
    pub fn dims(&self) -> [usize; 2] {
        match self {
            Self::Tokens(x) => x.dims(),
            Self::Values(x) => {
                let [batch, l, _] = x.dims();
                [batch, l]
            }
        }
    }
}

/// The first layer of a model.
#[derive(Module, Debug)]
pub enum Encoder {
    /// One row per token.
    Tokens(Embedding),
    /// A linear map `[H, channels]`.
    Values(Linear),
    /// Numbers as they are: no parameters. For stacks whose first stage reads them itself.
    Raw(RawValues),
}

/// Sequences of numbers with this many channels.
#[derive(Module, Debug)]
pub struct RawValues {
    /// Numbers per position.
    #[module(skip)]
    pub channels: usize,
}

/// A table of rows.
#[derive(Module, Debug)]
pub struct Embedding {
    /// `[V, H]` ~ N(0, 1).
    pub weight: Param<Tensor<2>>,
}

impl Encoder {
    /// A new encoder to h channels.
    pub fn new(kind: InputKind, h: usize, seed: u64, device: &Device) -> Self {
        match kind {
            InputKind::Tokens { vocab } => {
                let values = normal(vocab * h, &mut stream(seed, "encoder.weight"));
                Self::Tokens(Embedding { weight: parameter(values, [vocab, h], device) })
            }
            InputKind::Values { channels } => {
                Self::Values(Linear::new(channels, h, seed, "encoder", device))
            }
        }
    }

    /// -> `[B, L, H]`.
    ///
    /// # Panics
    /// If the input is of another kind or size than the encoder's.
    pub fn forward(&self, input: Input, form: Form) -> Tensor<3> {
        match (self, input) {
            (Self::Tokens(table), Input::Tokens(x)) => dispatch::embed(form, x, table.weight.val()),
            (Self::Values(linear), Input::Values(x)) => {
                dispatch::encode(form, x, linear.weight.val(), linear.bias.val())
            }
            (Self::Raw(RawValues { channels }), Input::Values(x)) => {
                assert_eq!(x.dims()[2], *channels, "this model takes {channels} channels");
                x
            }
            (Self::Tokens(_), Input::Values(_)) => {
                panic!("this model takes token ids [B, L], but got numbers")
            }
            (Self::Values(_) | Self::Raw(_), Input::Tokens(_)) => {
                panic!("this model takes numbers [B, L, channels], but got token ids")
            }
        }
    }
}
