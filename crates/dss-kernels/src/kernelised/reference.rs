//! The formula in f64 with all weights: the oracle of the fast form.

use super::{FeatureMap, KernelisedConfig, KernelisedInput};

/// y: `[B, L, Q]` = Σ_j a_ij·v_j / (Σ_j a_ij + ε), a_ij = φ(q_i)·φ(k_j), head by head.
///
/// # Panics
/// If a slice does not fit `config`.
pub fn kernelised_reference(
    config: &KernelisedConfig,
    input: &KernelisedInput<'_, f64>,
) -> Vec<f64> {
    let KernelisedConfig { batch, len, heads, head_dim: d, causal, .. } = *config;
    let mut y = vec![0.0; input.q.len()];
    for b in 0..batch {
        let visible = input.lengths.map_or(len, |lengths| lengths[b]);
        for head in 0..heads {
            let at = |t: usize| (b * len + t) * heads * d + head * d;
            let rows = |x: &[f64]| -> Vec<Vec<f64>> {
                (0..visible).map(|t| x[at(t)..][..d].to_vec()).collect()
            };
            let [phi_q, phi_k] = features(config, [rows(input.q), rows(input.k)], input.w);
            for i in 0..visible {
                let end = if causal { i + 1 } else { visible };
                let weight = |k: &Vec<f64>| phi_q[i].iter().zip(k).map(|(q, k)| q * k).sum::<f64>();
                let a: Vec<f64> = phi_k[..end].iter().map(weight).collect();
                let sum = a.iter().sum::<f64>() + config.eps;
                for c in 0..d {
                    let values = a.iter().enumerate().map(|(j, a)| a * input.v[at(j) + c]);
                    y[at(i) + c] = values.sum::<f64>() / sum;
                }
            }
        }
    }
    y
}

/// φ of the queries and keys of one head.
fn features(
    config: &KernelisedConfig,
    queries_and_keys: [Vec<Vec<f64>>; 2],
    w: &[f64],
) -> [Vec<Vec<f64>>; 2] {
    let pointwise = |f: fn(f64, f64) -> f64, eps: f64| {
        queries_and_keys.clone().map(|rows| {
            rows.iter().map(|x| x.iter().map(|&x| f(x, eps)).collect()).collect::<Vec<Vec<_>>>()
        })
    };
    let (m, eps) = match config.map {
        FeatureMap::EluPlusOne => {
            return pointwise(|x, _| if x > 0.0 { x + 1.0 } else { x.exp() }, 0.0);
        }
        FeatureMap::Relu { eps } => return pointwise(|x, eps| x.max(0.0) + eps, eps),
        FeatureMap::Favor { features, eps } => (features as f64, eps),
    };
    let d = config.head_dim;
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let scaled = |x: &[f64]| x.iter().map(|x| x * (d as f64).powf(-0.25)).collect::<Vec<_>>();
    let products = |x: &[f64]| w.chunks(d).map(|w| dot(w, x)).collect::<Vec<_>>();
    let largest = |x: &[f64]| x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let [queries, keys] = queries_and_keys.map(|rows| {
        rows.iter()
            .map(|x| scaled(x))
            .map(|x| (products(&x), dot(&x, &x) / 2.0))
            .collect::<Vec<_>>()
    });
    let c_keys = match config.causal {
        true => largest(&w.chunks(d).map(|w| dot(w, w) / 2.0).collect::<Vec<_>>()),
        false => largest(&keys.iter().map(|(p, _)| largest(p)).collect::<Vec<_>>()),
    };
    let row = |(p, half): &(Vec<f64>, f64), c: f64| -> Vec<f64> {
        p.iter().map(|p| ((p - half - c).exp() + eps) / m.sqrt()).collect()
    };
    [
        queries.iter().map(|x| row(x, largest(&x.0))).collect(),
        keys.iter().map(|x| row(x, c_keys)).collect(),
    ]
}
