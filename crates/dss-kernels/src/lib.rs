//! Diagonal State Space numerics on plain slices.
pub mod complex;
pub mod conv;
mod error;
pub mod init;
pub mod kernel;
mod lines;
mod par;
mod product;
#[cfg(feature = "dense")]
pub mod proposition1;
mod rate;
mod real;
mod recurrence;
mod scan;
pub mod ssm_softmax;
pub use complex::C64;
pub use conv::Conv;
pub use error::{Error, Result};
pub use rate::change_rate;
pub use real::{Real, simd_name};
pub use recurrence::{Recurrence, State};
pub use scan::{Scan, ScanState};
