//! Change of sampling rate: the same continuous system, read with another Δ.
//!
//! A model trained at one rate runs at another by Δ' = r·Δ, where r is the old rate over the new one: at half the rate
//! each step covers twice the time, r = 2. Then (softmax and exp, up to the regularisation)
//!
//! K(2Δ, L/2)_k = K(Δ, L)_{2k} + K(Δ, L)_{2k+1}
//!
//! since both hold a constant input over the doubled interval. Exp-no-scale lacks the factor that makes a kernel an
//! integral over its interval: there K(2Δ, L/2)_k = K(Δ, L)_{2k}.

use crate::error::{Error, Result};
use crate::kernel::KernelConfig;
use crate::real::Real;

/// Configuration and Δ_log of the same kernels for Δ' = r·Δ: lengths become L/r, rounded up.
///
/// Where r does not divide the softmax's L, its normaliser covers a little more time than before, and the identity above
/// holds only nearly.
pub fn change_rate<T: Real>(
    config: &KernelConfig,
    delta_log: &[T],
    r: f64,
) -> Result<(KernelConfig, Vec<T>)> {
    let op = "change_rate";
    if !(r.is_finite() && r > 0.0) {
        let what = format!("the ratio of the rates must be positive and finite, but is {r}");
        return Err(Error::Invalid { op, what });
    }
    let scaled = |len: usize| ((len as f64 / r).ceil() as usize).max(1);
    let config =
        KernelConfig { len: scaled(config.len), norm_len: scaled(config.norm_len), ..*config };
    let delta_log = delta_log.iter().map(|d| T::from_f64(d.to_f64() + r.ln())).collect();
    Ok((config, delta_log))
}
