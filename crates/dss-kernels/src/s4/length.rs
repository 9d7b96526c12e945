//! The length correction C̃ = C·(I − Ā^L) and its inverse: O(N³ log L) per feature, for making a model or streaming it.

use super::discrete::Discrete;
use super::modes::Shared;
use super::params::{KernelConfig, Params, complex_at, delta};
use super::powers::Powers;
use crate::error::{Error, Result};
use crate::par::{self, Disjoint};
use crate::real::Real;

/// C̃ = C·(I − Ā^L) for the C in `params.c` and L = `config.norm_len`: `[C, H, N/2, 2]`.
///
/// A new model draws C and stores C̃.
pub fn correct_length<T: Real>(config: &KernelConfig, params: &Params<T>) -> Result<Vec<T>> {
    let c = map("s4::correct_length", config, params, |powers, c| {
        powers.correct(config.norm_len, c);
        true
    })?;
    Ok(rounded(&c))
}

/// C for the C̃ in `params.c`: the inverse of [`correct_length`].
///
/// # Errors
/// [`Error::Singular`] where I − Ā^L has no inverse in f64, as for Δ·L → 0.
pub fn uncorrect_length<T: Real>(config: &KernelConfig, params: &Params<T>) -> Result<Vec<T>> {
    Ok(rounded(&uncorrected("s4::uncorrect_length", config, params)?))
}

/// C̃ for kernels of `len` taps of the same system, given the C̃ for `config.norm_len` in `params.c`.
///
/// # Errors
/// As [`uncorrect_length`]; [`Error::Invalid`] if `len` is 0.
pub fn change_length<T: Real>(
    config: &KernelConfig,
    params: &Params<T>,
    len: usize,
) -> Result<Vec<T>> {
    let op = "s4::change_length";
    if len == 0 {
        return Err(Error::Invalid { op, what: "the length must be at least 1".into() });
    }
    let c = map(op, config, params, |powers, c| {
        let solved = powers.uncorrect(config.norm_len, c);
        powers.correct(len, c);
        solved
    })?;
    Ok(rounded(&c))
}

/// C in f64 for the C̃ in `params.c`.
pub(super) fn uncorrected<T: Real>(
    op: &'static str,
    config: &KernelConfig,
    params: &Params<T>,
) -> Result<Vec<f64>> {
    map(op, config, params, |powers, c| powers.uncorrect(config.norm_len, c))
}

fn rounded<T: Real>(c: &[f64]) -> Vec<T> {
    c.iter().map(|&c| T::from_f64(c)).collect()
}

/// Changes C feature by feature: `change` sees the rows of one, `[C, N]`, as they act on (Re x, Im x), and says whether it
/// could.
fn map<T: Real>(
    op: &'static str,
    config: &KernelConfig,
    params: &Params<T>,
    change: impl Fn(&mut Powers, &mut [f64]) -> bool + Sync,
) -> Result<Vec<f64>> {
    config.validate(op)?;
    params.validate(op, config)?;
    let KernelConfig { channels, h: features, n, .. } = *config;
    let pairs = config.pairs();
    let mut shared = Shared::with_capacity(config);
    shared.set(params);
    let workers = par::workers().min(features);
    let mut scratch: Vec<_> =
        (0..workers).map(|_| (Powers::new(n), vec![0.0; channels * n])).collect();
    let mut out = vec![0.0; params.c.len()];
    let mut solved = vec![true; features];
    let (to, ok) = (Disjoint::new(&mut out), Disjoint::new(&mut solved));
    par::for_each(&mut scratch, features, |(powers, c), h| {
        powers.set(&Discrete::new(shared.of_feature(config, h), delta(params.delta_log[h])));
        let rows = || (0..channels).map(|channel| (channel * features + h) * pairs);
        // C·x = 2 Re Σ C_n x_n
        for (row, c) in rows().zip(c.chunks_exact_mut(n)) {
            for i in 0..pairs {
                let value = complex_at(params.c, row + i);
                (c[i], c[pairs + i]) = (2.0 * value.re, -2.0 * value.im);
            }
        }
        // SAFETY: rows of C, and the answers, belong to one feature h each.
        unsafe { ok.part(h, 1)[0] = change(powers, c) };
        for (row, c) in rows().zip(c.chunks_exact(n)) {
            // SAFETY: as above.
            let to = unsafe { to.part(2 * row, n) };
            for i in 0..pairs {
                (to[2 * i], to[2 * i + 1]) = (0.5 * c[i], -0.5 * c[pairs + i]);
            }
        }
    });
    match solved.iter().position(|&ok| !ok) {
        None => Ok(out),
        Some(h) => {
            let len = config.norm_len;
            let what =
                format!("feature {h}: I − Ā^L has no inverse at L = {len}, its Δ is too small");
            Err(Error::Singular { op, what })
        }
    }
}
