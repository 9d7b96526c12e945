//! The operations of [`crate::ops`] on the CPU backend Flex: one custom operation each over `dss-kernels`, with its
//! hand-derived backward.

mod block;
mod embed;
mod encode;
mod kernel;
mod linear;
mod norm;
mod op;
mod pool;
mod s4;
mod s4d;
mod slices;

pub use block::block;
pub use embed::embed;
pub use encode::encode;
pub use kernel::kernel;
pub use linear::{feed_forward, linear};
pub use norm::norm;
pub(crate) use op::{Operation, SavedState, call};
pub use pool::pool;
pub use s4::s4_kernel;
pub use s4d::s4d_kernel;
pub(crate) use slices::{Float, pooled_tensor, slice};
