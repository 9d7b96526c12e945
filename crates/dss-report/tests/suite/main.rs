//! Grids of runs.
#![allow(missing_docs)]

extern crate burn_core as burn;

mod common;
mod repro;
