//! The engine of the page of `dss web`: [`dss_infer`] as a few WebAssembly functions.
//!
//! [`Engine`] is ordinary Rust and tested as such. [`abi`] exports it over linear memory: numbers and bytes go in through
//! one buffer, text and numbers come out through another, so no binding generator is needed and no pointer of the
//! caller is ever followed. Every error, a panic too, reaches the caller as text.

pub mod abi;
mod describe;
mod engine;
mod listen;
mod picture;

pub use engine::{Engine, Result};
pub use picture::Axis;
