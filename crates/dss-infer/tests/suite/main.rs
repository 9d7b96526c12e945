//! Trained models as streams, generators and files.
#![allow(missing_docs)]

mod allocations;
mod allocator;
mod common;
mod generation;
mod hostile_files;
mod listening;
mod slim_files;
mod streams;
