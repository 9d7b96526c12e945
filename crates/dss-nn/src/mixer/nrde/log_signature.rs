//! Log-signatures of depth 1 and 2 of the windows of a path (Chen's formula for line segments).
//!
//! Level 1 of a window is its increment. Level 2, at the Lyndon words (a, b), a < b, is the signed area
//! ½∫(x_a dx_b − x_b dx_a) = ½ Σ_{j<k} (d_j^a d_k^b − d_j^b d_k^a) of the increments d.

use burn::tensor::{Int, Tensor, TensorData};

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
    let product = before.swap_dims(1, 2).matmul(d); // [B·W, C, C]
    let area = (product.clone() - product.swap_dims(1, 2)) * 0.5;
    let words = (0..c).flat_map(|a| (a + 1..c).map(move |b| (a * c + b) as i64));
    let words: Vec<i64> = words.collect();
    let words = Tensor::<1, Int>::from_data(TensorData::from(&words[..]), &level1.device());
    let area = area.reshape([batch, windows, c * c]).select(2, words);
    Tensor::cat(vec![level1, area], 2)
}
