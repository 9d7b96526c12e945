//! Checkpoints of others, with what they compute.

mod golden;
mod hostile;
mod mutations;
