//! The O(L²) sum of Eq. (5) in f64: the oracle of the fast convolution.

/// y_k = Σ_{j ≤ k} K_j u_{k−j}, and with a second kernel also Σ_j K'_j u_{k+1+j}.
///
/// # Shapes
/// u: `[B, L, H]`, K: `[H, Lk]` or `[2, H, Lk]` -> y: `[B, L, H]`, with `taps` = Lk.
///
/// # Panics
/// If a slice does not have its shape, or a size is 0.
pub fn convolve_direct(
    u: &[f64],
    k: &[f64],
    b: usize,
    l: usize,
    h: usize,
    taps: usize,
) -> Vec<f64> {
    let halves = k.len() / (h * taps);
    assert!(u.len() == b * l * h && k.len() == halves * h * taps && (1..=2).contains(&halves));
    let mut y = vec![0.0; b * l * h];
    for sample in 0..b {
        for t in 0..l {
            for c in 0..h {
                let at = |t: usize| u[(sample * l + t) * h + c];
                let mut sum = 0.0;
                for j in 0..taps {
                    if j <= t {
                        sum += k[c * taps + j] * at(t - j);
                    }
                    if halves == 2 && t + 1 + j < l {
                        sum += k[(h + c) * taps + j] * at(t + 1 + j);
                    }
                }
                y[(sample * l + t) * h + c] = sum;
            }
        }
    }
    y
}
