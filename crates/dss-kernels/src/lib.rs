//! Diagonal State Space numerics on plain slices.
pub mod complex;
mod error;
mod lines;
mod par;
mod real;
pub mod conv;
pub mod kernel;
pub use conv::Conv;
pub use complex::C64;
pub use error::{Error, Result};
pub use real::{Real, simd_name};
