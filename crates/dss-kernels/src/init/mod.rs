//! Initial values of the parameters (§3.3): Λ, Δ_log and W.
//!
//! Λ is deterministic ([`skew_hippo()`]) or, in the ablation of §4.1, random ([`random_lambda`]);
//! Δ_log and W are random. S4 starts from [`nplr_legs`], S4D from [`s4d_lambda`]. Every random law
//! draws from the generator it is given and from nothing else, so that one seed gives one model.

mod laws;
mod nplr;
mod s4d;
mod skew_hippo;

pub use laws::{DT_MAX, DT_MIN, delta_log, random_lambda, random_lambda_left, w};
pub use nplr::{Nplr, nplr_legs};
pub use s4d::{S4dInit, s4_c, s4d_lambda};
pub use skew_hippo::{MAX_N, skew_hippo};
