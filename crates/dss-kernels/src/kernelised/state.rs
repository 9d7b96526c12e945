//! Causal attention one position at a time: S += φ(k)·vᵀ, z += φ(k), then y. The state has a fixed size.

use super::{FeatureMap, KernelisedConfig};
use crate::error::{Error, Result, check_finite, check_len};
use crate::real::Real;
use std::sync::Arc;

/// S and z of one stream, in f64: all terms of z are positive, and in f32 new ones would be lost after some 10⁶ steps.
///
/// ```
/// use dss_kernels::kernelised::{FeatureMap, KernelisedConfig, KernelisedState};
/// let config = KernelisedConfig {
///     batch: 1, len: 1, heads: 1, head_dim: 1, causal: true, map: FeatureMap::EluPlusOne, eps: 0.0,
/// };
/// let mut state = KernelisedState::new::<f64>(&config, &[])?;
/// let mut y = [0.0];
/// state.step(&[1.0], &[0.0], &[8.0], &mut y)?;
/// state.step(&[1.0], &[2.0], &[4.0], &mut y)?; // weights 1/4 and 3/4
/// assert!((y[0] - 5.0_f64).abs() < 1e-12);
/// # Ok::<(), dss_kernels::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct KernelisedState {
    heads: usize,
    d: usize,
    m: usize,
    eps: f64,
    map: StepMap,
    /// S `[heads, m, d]`, then z `[heads, m]`.
    sums: Vec<f64>,
    /// φ of a query and a key: [m] each.
    phi: [Vec<f64>; 2],
    /// Sᵀφ of a query: [d].
    row: Vec<f64>,
}

/// φ in f64.
#[derive(Debug, Clone)]
enum StepMap {
    EluPlusOne,
    Relu(f64),
    /// w/d^¼ [m, d], c of keys, and ε.
    Favor(Arc<[f64]>, f64, f64),
}

/// Equal sums.
impl PartialEq for KernelisedState {
    fn eq(&self, other: &Self) -> bool {
        self.sums == other.sums
    }
}

impl KernelisedState {
    /// A stream before its first position; w `[m, d]` are the directions of FAVOR+. B and L of the sizes do not matter.
    ///
    /// # Errors
    /// If the attention is not causal, or w does not fit.
    pub fn new<T: Real>(config: &KernelisedConfig, w: &[T]) -> Result<Self> {
        let op = "KernelisedState::new";
        let config = KernelisedConfig { batch: 1, len: 1, ..*config };
        config.check(op)?;
        if !config.causal {
            let what = "attention that is not causal has no steps".to_owned();
            return Err(Error::Invalid { op, what });
        }
        check_len(op, "w", "[m, d] of FAVOR+, or none", config.directions_len(), w.len())?;
        check_finite(op, "w", w)?;
        let KernelisedConfig { heads, head_dim: d, eps, .. } = config;
        let m = config.features();
        let map = match config.map {
            FeatureMap::EluPlusOne => StepMap::EluPlusOne,
            FeatureMap::Relu { eps } => StepMap::Relu(eps),
            FeatureMap::Favor { eps, .. } => {
                let half_square = |w: &[T]| w.iter().map(|w| w.to_f64().powi(2)).sum::<f64>() / 2.0;
                let bound = w.chunks_exact(d).map(half_square).fold(0.0, f64::max);
                let scale = (d as f64).powf(-0.25);
                StepMap::Favor(w.iter().map(|w| scale * w.to_f64()).collect(), bound, eps)
            }
        };
        let sums = vec![0.0; heads * m * (d + 1)];
        let phi = [vec![0.0; m], vec![0.0; m]];
        Ok(Self { heads, d, m, eps, map, sums, phi, row: vec![0.0; d] })
    }

    /// As before the first position.
    pub fn reset(&mut self) {
        self.sums.fill(0.0);
    }

    /// S `[heads, m, d]`, then z `[heads, m]`.
    pub fn sums(&self) -> &[f64] {
        &self.sums
    }

    /// Replaces the sums.
    pub fn set_sums(&mut self, sums: &[f64]) -> Result<()> {
        check_len(
            "KernelisedState::set_sums",
            "sums",
            "[heads, m, d + 1]",
            self.sums.len(),
            sums.len(),
        )?;
        self.sums.copy_from_slice(sums);
        Ok(())
    }

    /// One or more positions in their order; each sees itself and those before it. The same bits, whether they come in
    /// one call or in many.
    ///
    /// # Shapes
    /// q, k, v, y: `[n, Q]`.
    pub fn step<T: Real>(&mut self, q: &[T], k: &[T], v: &[T], y: &mut [T]) -> Result<()> {
        let op = "KernelisedState::step";
        let width = self.heads * self.d;
        check_len(op, "q", "whole rows of Q", q.len() / width * width, q.len())?;
        for (name, len) in [("k", k.len()), ("v", v.len()), ("y", y.len())] {
            check_len(op, name, "[n, Q]", q.len(), len)?;
        }
        let Self { heads, d, m, eps, ref map, ref mut sums, ref mut phi, ref mut row } = *self;
        let (s, z) = sums.split_at_mut(heads * m * d);
        let [phi_q, phi_k] = phi;
        // Slices of d channels: head after head, position after position.
        let rows = q.chunks_exact(d).zip(k.chunks_exact(d)).zip(v.chunks_exact(d));
        for (i, (((q, k), v), y)) in rows.zip(y.chunks_exact_mut(d)).enumerate() {
            let head = i % heads;
            map.apply(q, false, phi_q);
            map.apply(k, true, phi_k);
            let s = &mut s[head * m * d..][..m * d];
            let z = &mut z[head * m..][..m];
            let mut denominator = eps;
            for ((z, &k), &q) in z.iter_mut().zip(&*phi_k).zip(&*phi_q) {
                *z += k;
                denominator += q * *z;
            }
            row.fill(0.0);
            for ((s, &k), &q) in s.chunks_exact_mut(d).zip(&*phi_k).zip(&*phi_q) {
                for ((s, v), row) in s.iter_mut().zip(v).zip(&mut *row) {
                    *s += k * v.to_f64();
                    *row += q * *s;
                }
            }
            y.iter_mut().zip(&*row).for_each(|(y, row)| *y = T::rounded(row / denominator));
        }
        Ok(())
    }
}

impl StepMap {
    /// φ of one row; `key`: with the constant of keys, else with that of a query.
    fn apply<T: Real>(&self, x: &[T], key: bool, phi: &mut [f64]) {
        match self {
            Self::EluPlusOne => phi.iter_mut().zip(x).for_each(|(phi, x)| {
                let x = x.to_f64();
                *phi = if x > 0.0 { x + 1.0 } else { x.exp() };
            }),
            Self::Relu(eps) => phi.iter_mut().zip(x).for_each(|(phi, x)| {
                *phi = x.to_f64().max(0.0) + eps;
            }),
            Self::Favor(w, bound, eps) => {
                let d = x.len();
                for (p, w) in phi.iter_mut().zip(w.chunks_exact(d)) {
                    *p = w.iter().zip(x).map(|(w, x)| w * x.to_f64()).sum();
                }
                let largest = || phi.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let c = if key { *bound } else { largest() };
                let square = x.iter().map(|x| x.to_f64().powi(2)).sum::<f64>();
                let half = square / (2.0 * (d as f64).sqrt());
                let size = 1.0 / (phi.len() as f64).sqrt();
                phi.iter_mut().for_each(|p| *p = ((*p - half - c).min(0.0).exp() + eps) * size);
            }
        }
    }
}
