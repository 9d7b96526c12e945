//! Grids of runs.
#![allow(missing_docs)]

extern crate burn_core as burn;

#[allow(dead_code, reason = "shared with the tests of dss-train")]
mod common;
mod repro;
