//! Training runs: what they learn, and that they survive anything.
#![allow(missing_docs)]

extern crate burn_core as burn;

mod accumulation;
mod bad_runs;
mod caches;
mod claims;
mod common;
mod evaluated_weights;
#[cfg(target_os = "linux")]
mod faults;
mod fuzz_corpus;
mod fuzz_targets;
mod golden_adamw;
mod language;
mod learns;
mod moved_data;
mod optimiser;
#[cfg(unix)]
mod rank_faults;
mod ranks;
mod resume;
mod rotten_runs;
mod stacks;
mod target_units;
mod threads;
mod transfer;
