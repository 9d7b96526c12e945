//! The description of a model: its configuration, its input and output, the names and shapes of its tensors, its file,
//! and how input becomes numbers. No framework: training, inference and the browser all read models through this crate.
//!
//! | for | see |
//! |-----|-----|
//! | the settings of a model | [`ModelConfig`], and [`mixer`] for those of each mixer |
//! | input, output and training length | [`ModelIo`] |
//! | names, shapes and learning-rate groups of tensors | [`tensors`] |
//! | model files and their metadata | [`ModelFile`], [`CheckpointMeta`] |
//! | how files and streams become input | [`encoder`], [`feed`] |

pub mod atomic_write;
mod checksum;
mod config;
pub mod encoder;
mod error;
pub mod feed;
mod file;
pub mod flat;
mod io;
mod meta;
pub mod mixer;
mod range;
pub mod tensors;

pub use config::{Form, Gelu, ModelConfig, NormKind, Pool, Positions, fixed_position};
pub use error::{Error, Result};
pub use file::{Array, ModelFile, Numbers, Precision};
pub use io::{InputKind, ModelIo, OutputKind};
pub use meta::{CheckpointMeta, FORMAT};
pub use mixer::{MixerConfig, MixerContext};
pub use tensors::{ParamGroup, TensorSpec};
