//! Grids of runs.
#![allow(missing_docs)]

extern crate burn_core as burn;

#[path = "../../../dss-train/tests/suite/common/mod.rs"]
mod common;
mod repro;
