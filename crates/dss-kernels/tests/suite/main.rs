//! The numerics against golden tensors, definitions, differences and each other.
#![allow(missing_docs)]

mod accuracy;
mod allocations;
mod attention;
mod attention_allocations;
mod block;
mod common;
mod counting;
mod fourier;
mod gathered;
mod golden_kernels;
mod golden_recurrence;
mod gradients;
mod kernelised;
mod laws;
mod linear;
mod recurrent;
mod s4;
mod s4_allocations;
mod s4_golden;
mod s4d;
#[cfg(feature = "rayon")]
mod threads;
