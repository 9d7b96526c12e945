//! Diagonal State Space models as Burn modules: the layer, the block, whole models, safetensors checkpoints; and S4,
//! attention, recurrent nets and convolutions, to compare with.
//!
//! The mathematics is that of *Diagonal State Spaces are as Effective as Structured State Spaces* (Gupta, Gu, Berant
//! 2022), cited here by section and equation; the numerics are those of `dss-kernels`.
//!
//! | for | take |
//! |-----|------|
//! | a layer in a model of your own | [`Mixer`]: DSS or any other; or [`Block`] with norm, dropout and residual |
//! | a whole classifier or regressor | [`Model`], of a [`ModelConfig`] and a [`ModelIo`] |
//! | reading and writing models | [`checkpoint`] |
//! | the bare operations | [`ops`], [`composed`], [`fused`] |
//!
//! # A layer in a model of your own
//!
//! ```
//! use burn::module::Module;
//! use burn::nn::{Linear, LinearConfig};
//! use burn::tensor::{Device, Tensor};
//! use dss_nn::{Mixer, ModelConfig};
//!
//! #[derive(Module, Debug)]
//! struct Tagger {
//!     mixer: Mixer,
//!     out: Linear,
//! }
//!
//! impl Tagger {
//!     fn new(device: &Device) -> dss_nn::Result<Self> {
//!         let config = ModelConfig { h: 16, ..ModelConfig::default() };
//!         let mixer = Mixer::new(&config, 1000, 0, device)?; // sequences of up to 1000, seed 0
//!         Ok(Self { mixer, out: LinearConfig::new(16, 2).init(device) })
//!     }
//!
//!     fn forward(&self, u: Tensor<3>) -> Tensor<3> {
//!         self.out.forward(self.mixer.forward(u)) // [B, L, 16] -> [B, L, 2]
//!     }
//! }
//!
//! # fn main() -> dss_nn::Result<()> {
//! let device = Device::flex().autodiff();
//! let model = Tagger::new(&device)?;
//! let y = model.forward(Tensor::zeros([1, 1000, 16], &device));
//! let gradients = y.sum().backward();
//! assert!(model.out.weight.val().grad(&gradients).is_some());
//! # Ok(())
//! # }
//! ```
//!
//! # Two forms
//!
//! Each operation exists twice: *composed* from Burn tensor operations, for any backend, and *fused* for the CPU
//! backend Flex, one custom operation with a hand-derived backward. They agree in values and all gradients.
//! [`Form::Auto`] takes the fused one where it exists.
//!
//! # Glossary
//!
//! | letter | meaning |
//! |--------|---------|
//! | B, L, H | batch, length, channels; activations are `[B, L, H]` |
//! | N | states per channel |
//! | C | kernels per channel: 1, or 2 when bidirectional |
//! | Λ, λ | eigenvalues of the state matrix: `[N]` complex, stored as `[N, 2]` |
//! | Δ, Δ_log | sample time and its logarithm: `[H]`, or `[H, 2]` for the real and the imaginary part of Λ |
//! | W | output weights: `[C, H, N]` complex, stored as `[C, H, N, 2]` |
//! | P, B, C̃ | of S4: the low-rank part of A = Λ − PP*, the input weights, and the output weights C·(I − Ā^L) |
//! | D | weight of the input itself in a layer's output: `[H]` |
//! | K | convolution kernels: `[C, H, L]` |

// Under the name that its macros and most programs use.
extern crate burn_core as burn;

pub mod block;
pub mod carry;
pub mod checkpoint;
pub mod composed;
mod dispatch;
mod dropout;
mod encoder;
mod error;
mod feed_forward;
pub mod fused;
mod head;
mod linear;
pub mod mixer;
mod model;
pub mod named;
mod norm;
pub mod ops;
mod portraits;
mod positions;
mod prepared;
mod random;
mod side;
pub mod stage;

pub use block::{Block, Mode};
pub use carry::Carry;
pub use checkpoint::{CheckpointMeta, load, save};
pub use dropout::{DropoutKey, LayerKey};
pub use dss_format::{
    Form, InputKind, MixerConfig, ModelConfig, ModelIo, NormKind, OutputKind, ParamGroup, Pool,
};
pub use encoder::{Embedding, Encoder, Input, RawValues};
pub use error::{Error, Result};
pub use feed_forward::FeedForward;
pub use head::{Head, Readout, TwoLayers};
pub use linear::Linear;
pub use mixer::{HasContext, Mixer, MixerState, ModeStep, Modes, SequenceMixer};
pub use model::{Model, Output};
pub use named::Parameter;
pub use norm::{MOMENTUM, Norm};
pub use prepared::{Prepared, PreparedModel};
pub use side::SideStream;
pub use stage::Stage;

/// The settings of a model: those of `dss_format`.
pub mod config {
    pub use dss_format::mixer::*;
    pub use dss_format::{
        Form, Gelu, InputKind, ModelConfig, ModelIo, NormKind, OutputKind, Pool, Positions,
    };
}

/// The examples of the README compile and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
