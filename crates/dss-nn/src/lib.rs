//! Diagonal State Space models as Burn modules: the layer, the block, whole models, safetensors checkpoints; and S4 and
//! S4D, to compare with.
//!
//! The mathematics is that of *Diagonal State Spaces are as Effective as Structured State Spaces* (Gupta, Gu, Berant
//! 2022), cited here by section and equation; the numerics are those of `dss-kernels`.
//!
//! | for | take |
//! |-----|------|
//! | a layer in a model of your own | [`SsmLayer`]: DSS, S4 or S4D; or [`Block`] with norm, dropout and residual |
//! | a whole classifier or regressor | [`Model`], from a [`ModelConfig`] and an [`Io`] |
//! | reading and writing models | [`checkpoint`] |
//! | the bare operations | [`ops`], [`composed`], [`fused`] |
//!
//! # A layer in a model of your own
//!
//! ```
//! use burn::module::Module;
//! use burn::nn::{Linear, LinearConfig};
//! use burn::tensor::{Device, Tensor};
//! use dss_nn::{SsmLayer, SsmLayerConfig, SequenceMixer};
//!
//! #[derive(Module, Debug)]
//! struct Tagger {
//!     mixer: SsmLayer,
//!     out: Linear,
//! }
//!
//! impl Tagger {
//!     fn new(device: &Device) -> dss_nn::Result<Self> {
//!         let mixer = SsmLayerConfig::new(16, 32, 1000).init(device)?; // H, N, L
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
//! assert!(model.mixer.d.val().grad(&gradients).is_some());
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
pub mod config;
mod dropout;
mod encoder;
mod error;
mod form;
pub mod fused;
mod head;
mod kernels;
pub mod layer;
mod linear;
mod mixer;
mod model;
pub mod named;
mod norm;
pub mod ops;
mod random;
pub mod ssm;
mod state;

pub use block::{Block, BlockConfig, Mode};
pub use carry::Carry;
pub use checkpoint::{CheckpointMeta, load, save};
pub use config::{
    Delta, Discretisation, Form, InputKind, Io, LambdaInit, MixerKind, ModelConfig, NormKind,
    OutputKind, Pool, S4dInit, Variant,
};
pub use dropout::DropoutKey;
pub use encoder::{Embedding, Encoder, Input};
pub use error::{Error, Result};
pub use head::{Head, PairHead};
pub use kernels::Kernels;
pub use layer::{SsmLayer, SsmLayerConfig};
pub use linear::Linear;
pub use mixer::SequenceMixer;
pub use model::{Model, Output};
pub use named::{ParamGroup, Parameter};
pub use norm::{MOMENTUM, Norm};
pub use ssm::Ssm;
pub use state::SsmState;

/// The examples of the README compile and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
