//! Training of DSS models: parameter groups, schedules, run directories.
//!
//! [`train`] takes a [`Config`] to a run directory; [`evaluate`](evaluate::evaluate) scores a model,
//! [`predict`](predict::predict) applies it. Everything random follows from the seed by counters (epoch, step,
//! micro-batch), and every sum is taken in a fixed order: the same seed gives the same bits, whatever the number of
//! threads, with any number of processes ([`group`]), and however often the run was killed and resumed.
//!
//! Letters: B batch, L length, H channels, N states, Λ, Δ, W, D, K as in the paper.

// Under the name that most programs use.
extern crate burn_core as burn;

pub mod answers;
pub mod bridge;
pub mod config;
pub mod environment;
pub mod error;
pub mod evaluate;
pub mod group;
pub mod loss;
pub mod memory;
pub mod optimiser;
pub mod predict;
pub mod pretext;
pub mod run_dir;
pub mod schedule;
pub mod scores;
pub mod text;
pub mod threads;
mod trainer;

pub use config::{Config, Objective, Schedule, TrainConfig};
pub use error::{Error, Result};
pub use scores::Scores;
pub use trainer::{
    Event, Observer, Split, StepGradients, Stopped, Summary, TrainOptions, epoch_batches,
    gradients, sharded_gradients, train,
};
