#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod checkpoint;
mod error;
pub mod export;
mod import;
mod msgpack;
mod nearby;
mod pickle;
mod safetensors_file;
mod settings;
mod torch;
mod zip;

pub use error::{Error, Result};
pub use import::{DeltaTransform, ImportOptions, Imported, Pooling, import};
pub use nearby::Nearby;
pub use safetensors_file::is_model_file;
pub use settings::Settings;
