//! One vector per sequence: `[B, L, H]` -> `[B, H]`.

use burn::tensor::{Int, Tensor, TensorData};
use dss_format::Pool;

use super::constant;

/// The mean over the first lengths\[b\] positions of sequence b, its position lengths\[b\] − 1, or its first one.
///
/// # Panics
/// If there is not one length per sequence, each from 1 to L.
pub fn pool(x: Tensor<3>, pool: Pool, lengths: &[usize]) -> Tensor<2> {
    let [batch, l, h] = x.dims();
    assert_eq!(lengths.len(), batch, "pool: one length per sequence");
    assert!(lengths.iter().all(|len| (1..=l).contains(len)), "pool: lengths from 1 to L = {l}");
    match pool {
        Pool::Mean => {
            let weights = lengths
                .iter()
                .flat_map(|&len| (0..l).map(move |t| if t < len { 1.0 / len as f64 } else { 0.0 }));
            let weights = constant(weights.collect(), [batch, 1, l], &x.device(), x.dtype());
            weights.matmul(x).reshape([batch, h])
        }
        Pool::Last => {
            let rows = lengths.iter().enumerate().map(|(b, &len)| (b * l + len - 1) as i64);
            let rows = TensorData::new(rows.collect::<Vec<_>>(), [batch]);
            let rows = Tensor::<1, Int>::from_data(rows, &x.device());
            x.reshape([batch * l, h]).select(0, rows)
        }
        Pool::Cls => x.narrow(1, 0, 1).squeeze_dim(1),
    }
}
