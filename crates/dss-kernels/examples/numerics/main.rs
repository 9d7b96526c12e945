//! The numerical questions that the paper leaves open, measured: the tables of docs/numerics.md.
//!
//! `numerics [CHECKPOINT]`: with a checkpoint of a DSS-softmax model, its kernels are measured at other lengths too.

#[allow(dead_code)] // The tests use the rest.
#[path = "../../tests/suite/common/mod.rs"]
mod common;
mod gradient;
mod length;
mod outlier;
mod phase;

use std::process::ExitCode;

fn main() -> ExitCode {
    gradient::run();
    phase::run();
    outlier::run();
    length::run();
    match std::env::args().nth(1).map(|path| length::trained(&path)) {
        Some(Err(error)) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

/// The cosine of the angle between two vectors.
fn cosine(a: &[f64], b: &[f64]) -> f64 {
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

/// The length of a vector.
fn norm(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The middle value and the largest.
fn median_and_worst(mut values: Vec<f64>) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    (values[values.len() / 2], values[values.len() - 1])
}
