//! How the parameters start out (§3.3): Λ, Δ_log and W.
//!
//! Λ is deterministic ([`skew_hippo()`]) or, in the ablation of §4.1, random ([`random_lambda`]);
//! Δ_log and W are random. Every random law draws from the generator it is given and from nothing
//! else, so that one seed gives one model.

mod laws;
mod skew_hippo;

pub use laws::{DT_MAX, DT_MIN, delta_log, random_lambda, random_lambda_left, w};
pub use skew_hippo::{MAX_N, skew_hippo};
