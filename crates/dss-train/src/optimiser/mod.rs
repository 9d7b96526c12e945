//! AdamW over the named parameters of a model, with the paper's parameter groups.

mod adamw;
mod depth;
mod flat;
mod gradients;
mod state_file;

pub use adamw::{AdamW, Rates, Update};
pub use depth::Depth;
pub(crate) use flat::Layout;
pub use gradients::{Gradients, NonFinite, first_bad};
