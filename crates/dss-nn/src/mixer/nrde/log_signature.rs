//! Log-signatures of depth 1 to 3 of the windows of a path (Chen's formula for line segments).
//!
//! Level 1 of a window is its increment. Level 2, at the Lyndon words (a, b), a < b, is the signed area
//! ½∫(x_a dx_b − x_b dx_a) = ½ Σ_{j<k} (d_j^a d_k^b − d_j^b d_k^a) of the increments d. Level 3, at the Lyndon words
//! of three letters, is S₃ − ½(S₁⊗S₂ + S₂⊗S₁) + ⅓ S₁⊗S₁⊗S₁ of the levels S of the signature.

use burn::tensor::{Int, Tensor, TensorData};
use dss_format::mixer::NrdeConfig;

/// `[B, W, dim]` of the increments `[B, W·s, C]` in windows of s.
pub fn log_signatures(increments: Tensor<3>, window: usize, depth: usize) -> Tensor<3> {
    let [batch, steps, c] = increments.dims();
    let windows = steps / window;
    let d = increments.reshape([batch * windows, window, c]);
    let level1 = d.clone().sum_dim(1).reshape([batch, windows, c]);
    if depth == 1 || c == 1 {
        return level1;
    }
    let before = d.clone().cumsum(1) - d.clone();
    let product = before.clone().swap_dims(1, 2).matmul(d.clone()); // [B·W, C, C]
    let area = (product.clone() - product.swap_dims(1, 2)) * 0.5;
    let pairs = (0..c).flat_map(|a| (a + 1..c).map(move |b| a * c + b));
    let area = at_words(area.reshape([batch, windows, c * c]), pairs);
    if depth == 2 {
        return Tensor::cat(vec![level1, area], 2);
    }
    let level3 = level3(d, before).reshape([batch, windows, c * c * c]);
    let triples = NrdeConfig::triples(c).map(|[i, j, k]| (i * c + j) * c + k);
    Tensor::cat(vec![level1, area, at_words(level3, triples)], 2)
}

/// The third level `[N, C, C, C]` of the tensor logarithm, of the increments d `[N, s, C]` and their sums before each.
///
/// S₂ grows by S₁⊗d + ½ d⊗d in a step, S₃ by S₂⊗d + ½ S₁⊗d⊗d + ⅙ d⊗d⊗d.
fn level3(d: Tensor<3>, before: Tensor<3>) -> Tensor<4> {
    let [n, _, c] = d.dims();
    let steps2 = products(before.clone() + d.clone() * 0.5, d.clone());
    let before2 = steps2.clone().cumsum(1) - steps2.clone();
    let weights = before2 + products(before * 0.5 + d.clone() / 6.0, d.clone());
    let s1 = d.clone().sum_dim(1); // [N, 1, C]
    let s2 = steps2.sum_dim(1); // [N, 1, C²]
    let s3 = weights.swap_dims(1, 2).matmul(d).reshape([n, 1, c * c * c]);
    let both = products(s1.clone(), s2.clone()) + products(s2, s1.clone());
    let cube = products(products(s1.clone(), s1.clone()), s1);
    (s3 - both * 0.5 + cube / 3.0).reshape([n, c, c, c])
}

/// x⊗y `[N, s, A·B]` at each position of x `[N, s, A]` and y `[N, s, B]`.
fn products(x: Tensor<3>, y: Tensor<3>) -> Tensor<3> {
    let ([n, s, a], b) = (x.dims(), y.dims()[2]);
    (x.unsqueeze_dim::<4>(3) * y.unsqueeze_dim::<4>(2)).reshape([n, s, a * b])
}

/// The entries of x `[B, W, ·]` at these places.
fn at_words(x: Tensor<3>, words: impl Iterator<Item = usize>) -> Tensor<3> {
    let words: Vec<i64> = words.map(|word| word as i64).collect();
    let words = Tensor::<1, Int>::from_data(TensorData::from(&words[..]), &x.device());
    x.select(2, words)
}
