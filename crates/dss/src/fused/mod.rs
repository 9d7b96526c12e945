//! The operations of [`crate::ops`] on the CPU backend Flex: one custom operation each over `dss-kernels`, with its
//! hand-derived backward.

mod block;
mod kernel;
mod norm;
mod op;
mod plans;
mod pool;
mod slices;

pub use block::block;
pub use kernel::kernel;
pub use norm::norm;
pub use pool::pool;
