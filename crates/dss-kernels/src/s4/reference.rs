//! The definition literally, in f64 with dense matrices: the oracle of the fast kernel. O(N²L) per channel.

use super::params::{KernelConfig, Params, complex_at, delta, lambda};
use crate::complex::C64;

/// K: `[C, H, L]` for the **uncorrected** C in `params.c`: K_l = C Ā^l B̄ with the N×N matrices of the full system, both
/// halves of every conjugate pair written out, and Ā by Gaussian elimination.
///
/// # Panics
/// If a slice does not fit `config`.
pub fn kernel_dense(config: &KernelConfig, params: &Params<f64>) -> Vec<f64> {
    params.validate("kernel_dense", config).expect("parameters fit the configuration");
    let (n, pairs) = (config.n, config.pairs());
    let full = |z: &dyn Fn(usize) -> C64| -> Vec<C64> {
        (0..pairs).map(z).chain((0..pairs).map(|i| z(i).conj())).collect()
    };
    let mut k = vec![0.0; config.channels * config.h * config.len];
    for (at, k) in k.chunks_exact_mut(config.len).enumerate() {
        let delta = delta(params.delta_log[at % config.h]);
        let first = at % config.h % config.systems * pairs;
        let lambda = full(&|i| lambda(params.lambda_re[first + i], params.lambda_im[first + i]));
        let p = full(&|i| complex_at(params.p, first + i));
        let b = full(&|i| complex_at(params.b, first + i));
        // I ∓ ΔA/2
        let matrix = |sign: f64| -> Vec<C64> {
            let entry = |i: usize, j: usize| {
                let (one, diagonal) =
                    if i == j { (C64::ONE, lambda[i]) } else { (C64::ZERO, C64::ZERO) };
                one + (diagonal - p[i] * p[j].conj()) * (0.5 * sign * delta)
            };
            (0..n * n).map(|at| entry(at / n, at % n)).collect()
        };
        // Ā and B̄ side by side: [N, N + 1]
        let plus = matrix(1.0);
        let right: Vec<C64> =
            (0..n).flat_map(|i| plus[i * n..][..n].iter().copied().chain([b[i] * delta])).collect();
        let solved = solve(matrix(-1.0), right, n);
        let c = full(&|i| complex_at(params.c, at * pairs + i));
        let mut x: Vec<C64> = (0..n).map(|i| solved[i * (n + 1) + n]).collect();
        for k in k {
            *k = c.iter().zip(&x).map(|(c, x)| c * x).sum::<C64>().re;
            let row = |i: usize| &solved[i * (n + 1)..][..n];
            x = (0..n).map(|i| row(i).iter().zip(&x).map(|(a, x)| a * x).sum()).collect();
        }
    }
    k
}

/// M⁻¹·R for M `[N, N]` and R `[N, N + 1]`, by elimination with partial pivoting.
fn solve(mut m: Vec<C64>, mut r: Vec<C64>, n: usize) -> Vec<C64> {
    let wide = n + 1;
    for i in 0..n {
        let size = |row: &usize| m[row * n + i].norm_sqr();
        let pivot = (i..n).max_by(|a, b| size(a).total_cmp(&size(b))).expect("a row is left");
        (0..n).for_each(|j| m.swap(i * n + j, pivot * n + j));
        (0..wide).for_each(|j| r.swap(i * wide + j, pivot * wide + j));
        for row in (0..n).filter(|&row| row != i) {
            let factor = m[row * n + i] / m[i * n + i];
            for j in i..n {
                let above = m[i * n + j];
                m[row * n + j] -= factor * above;
            }
            for j in 0..wide {
                let above = r[i * wide + j];
                r[row * wide + j] -= factor * above;
            }
        }
    }
    for i in 0..n {
        let pivot = m[i * n + i];
        r[i * wide..][..wide].iter_mut().for_each(|x| *x /= pivot);
    }
    r
}
