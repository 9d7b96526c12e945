#![doc = include_str!("../README.md")]
//!
//! # How it is made
//!
//! A [`Model`] holds the numbers of a file: immutable, shared by any number of threads and streams. A [`State`] is all
//! that a stream remembers: a value that can be cloned, saved, sent elsewhere and resumed. The arithmetic is that of
//! [`dss_kernels`]; a step, many steps at once and many streams at once do the same operations in the same order and
//! give the same bits on the same instruction set.
//!
//! All mixers implement one trait, in `mixer/mod.rs`: a new mixer is a file there and a line in its
//! list.
#![forbid(unsafe_code)]

mod arrays;
mod error;
mod forward;
pub mod generate;
mod hash;
mod layer;
mod linear;
mod listener;
mod load;
mod mixer;
mod model;
mod positions;
mod side;
mod stage;
mod state;
mod stream;

pub use dss_format::{
    CheckpointMeta, InputKind, ModelConfig, ModelFile, ModelIo, OutputKind, Precision,
};
pub use error::{Error, Result};
pub use forward::Plan;
pub use listener::{Listener, Window};
pub use model::{Input, Model};
pub use state::State;
