#![no_main]

#[path = "../../crates/dss-train/tests/suite/fuzz_targets.rs"]
#[allow(dead_code)]
mod targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::datasets(bytes));
