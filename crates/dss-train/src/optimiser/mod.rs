//! AdamW over the named parameters of a model, with the paper's parameter groups.

mod adamw;
mod gradients;
mod state_file;

pub use adamw::{AdamW, Rates, Update};
pub use gradients::{Bad, Gradients, first_bad};
