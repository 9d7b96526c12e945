//! Tasks for long-sequence models: readers and generators of examples, splits and batches.
//!
//! A [`TaskConfig`] (the `[task]` table of a configuration file) is loaded into a [`Task`]: a [`TaskSpec`] that
//! describes input and target, and three [`Dataset`]s. A [`Loader`] turns a dataset and an order of examples into
//! [`Batch`]es on background threads.
//!
//! ```
//! use dss_data::{Loader, Padding, TaskConfig, epoch_order};
//!
//! # fn main() -> dss_data::Result<()> {
//! let config = TaskConfig::default_for("adding").unwrap();
//! let task = config.load(None, &|_| {})?;
//! let order = epoch_order(task.train.len(), 1112, 0);
//! let batches = Loader::new(task.train, task.spec, order, 32, true, Padding::Longest, 0);
//! for batch in batches.take(3) {
//!     let batch = batch?;
//!     assert_eq!((batch.rows, batch.l), (32, 1000));
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Everything random is a function of a seed and an index, so nothing depends on threads. To add a task, write a file
//! with its settings that implement [`config::TaskSource`], and add its line in `config.rs` and its entry in
//! `catalogue/entries.rs`; `dss-train` has a preset for each task.

pub mod adding;
pub mod audio;
mod batch;
pub mod catalogue;
pub mod characters;
pub mod check;
pub mod config;
pub mod delay;
pub mod delimited;
mod encoder;
mod error;
#[cfg(feature = "download")]
pub mod fetch;
pub mod files;
pub mod forecast;
mod hash;
pub mod idx;
pub mod image;
mod io;
mod limits;
pub mod listops;
pub mod lm;
mod loader;
pub mod make;
pub mod mnist;
mod note;
pub mod npy;
pub mod pathfinder;
mod random;
pub mod retrieval;
mod ridge;
mod skip;
mod source;
pub mod speech;
mod store;
mod subset;
mod synthetic;
mod table;
mod task;
pub mod text;
pub mod units;

pub use adding::AddingConfig;
pub use batch::{Batch, BatchInput, BatchTarget, Padding, collate};
pub use config::TaskConfig;
pub use delay::DelayConfig;
pub use dss_format::encoder::{Encoder, Vocabulary};
pub use encoder::{ReadFile, SequencePlace};
pub use error::{Error, Result};
pub use files::FilesConfig;
pub use forecast::ForecastConfig;
pub use image::ImageConfig;
pub use listops::ListopsConfig;
pub use lm::LmConfig;
pub use loader::{BatchPlan, Loader};
pub use mnist::MnistConfig;
pub use note::Note;
pub use pathfinder::PathfinderConfig;
pub use random::epoch_order;
pub use retrieval::RetrievalConfig;
pub use speech::SpeechConfig;
pub use task::{
    Baseline, Dataset, Example, Input, InputKind, Target, TargetKind, TargetScaling, Task, TaskSpec,
};
pub use text::TextConfig;
