//! Causal attention one position at a time: the keys and values of all positions so far are kept, O(t) per step.

use burn::tensor::Tensor;
use burn::tensor::activation::softmax;

use super::AttentionLayer;
use crate::error::Result;
use crate::mixer::state::Recurrent;

/// B streams through an attention layer.
#[derive(Debug, Clone)]
pub(super) struct AttentionState {
    layer: AttentionLayer,
    /// Keys and values `[B, heads, t, d]` each.
    cache: Option<[Tensor<4>; 2]>,
    batch: usize,
}

impl AttentionState {
    pub fn new(layer: AttentionLayer, batch: usize) -> Self {
        Self { layer, cache: None, batch }
    }
}

impl Recurrent for AttentionState {
    fn step(&mut self, _k: usize, u: Tensor<2>) -> Result<Tensor<2>> {
        let AttentionLayer { q, k, v, out, config, context } = &self.layer;
        let (heads, width) = (config.heads, q.weight.val().dims()[0]);
        let (batch, d) = (self.batch, width / heads);
        let [q, k, v] = [q, k, v]
            .map(|map| map.forward(context.form, u.clone()).detach().reshape([batch, heads, 1, d]));
        let [k, v] = match self.cache.take() {
            Some([keys, values]) => {
                [Tensor::cat(vec![keys, k], 2), Tensor::cat(vec![values, v], 2)]
            }
            None => [k, v],
        };
        let logits = (q * (1.0 / (d as f64).sqrt())).matmul(k.clone().swap_dims(2, 3));
        let y = softmax(logits, 3).matmul(v.clone()).reshape([batch, width]);
        self.cache = Some([k, v]);
        Ok(out.forward(context.form, y))
    }

    fn boxed_clone(&self) -> Box<dyn Recurrent> {
        Box::new(self.clone())
    }
}
