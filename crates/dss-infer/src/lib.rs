#![doc = include_str!("../README.md")]
//!
//! # How it is made
//!
//! A [`Model`] holds the numbers of a file: immutable, shared by any number of threads and streams. A [`State`] is all
//! that a stream remembers: a value that can be cloned, saved, sent elsewhere and gone on with. The arithmetic is that of
//! [`dss_kernels`]; a step, many steps at once and many streams at once do the same operations in the same order and
//! give the same bits on the same instruction set.
#![forbid(unsafe_code)]

pub mod config;
mod error;
mod file;
mod forward;
pub mod generate;
mod half;
mod hash;
mod layer;
mod load;
mod mixer;
mod model;
mod state;
mod stream;

pub use config::Meta;
pub use error::{Error, Result};
pub use file::{ModelFile, Precision};
pub use forward::Plan;
pub use model::{Input, Model};
pub use state::State;
