//! What comes after a training: its [`report`], a look inside the model ([`inspect`]), and the paper's tables run again
//! ([`repro`]).
//!
//! Letters: B batch, L length, H channels, N states, Λ, Δ, W, D, K as in the paper.

extern crate burn_core as burn;

mod draw;
mod error;
pub mod inspect;
mod lengths;
pub mod report;
pub mod repro;
mod text;

pub use draw::Scene;
pub use error::{Error, Result};
pub use lengths::{LengthCurve, LengthPoint, lengths_picture};
pub use text::csv_text;
