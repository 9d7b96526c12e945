//! Checkpoints of others, with what they compute.

mod export;
mod golden;
mod hostile;
mod memory;
mod mutations;
