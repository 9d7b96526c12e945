//! BigBird (Zaheer et al. 2020): softmax attention in which a block of positions sees the first and the last block, its
//! neighbours, and a few blocks that are drawn for each head when the model is made and stored with it.
//!
//! Which block is the last one depends on the length that the model is made for, never on a batch.

mod composed;

use std::sync::Arc;

use burn::module::{Module, Param};
use burn::tensor::Tensor;
use dss_format::MixerContext;
use dss_format::mixer::BigbirdConfig;
use dss_kernels::attention::gathered::{BlockTiles, GatheredConfig};
use rand::RngExt;

use super::attention::{AttentionSpec, Projection, attend};
use super::fused_attention::{self, AttentionOp};
use super::state::MixerState;
use super::{Init, Pass, Portrait, SequenceMixer, fixed, up_to, whole_only};
use crate::dispatch;
use crate::error::Result;
use crate::prepared::Prepared;

/// A BigBird layer.
#[derive(Module, Debug)]
pub struct BigbirdLayer {
    /// Queries: `[Q, H]`.
    pub q: Projection,
    /// Keys: `[Q, H]`.
    pub k: Projection,
    /// Values: `[Q, H]`.
    pub v: Projection,
    /// The output: `[H, Q]`.
    pub out: Projection,
    /// The random blocks `[heads, n − 2, r]` of all blocks but the first and the last. Not trained.
    pub blocks: Option<Param<Tensor<3>>>,
    #[module(skip)]
    config: BigbirdConfig,
    #[module(skip)]
    pub(super) context: MixerContext,
}

/// Which blocks see which.
struct BlockSpec {
    heads: usize,
    /// Positions of a block.
    block: usize,
    /// Blocks n of the length that the layer is made for.
    blocks: usize,
    /// `[heads, n − 2, r]`
    random: Vec<u32>,
}

impl BigbirdLayer {
    pub(super) fn init(config: &BigbirdConfig, context: MixerContext, init: &Init) -> Result<Self> {
        let width = config.width_in(context.h);
        let [q, k, v, out] = Projection::around_heads(context.h, width, config.bias, init);
        let drawn = config.random_blocks;
        let blocks = config.blocks(context.len).filter(|_| drawn > 0).map(|blocks| {
            let numbers = draw(config.heads, blocks, drawn, init);
            fixed(numbers, [config.heads, blocks - 2, drawn], init.device)
        });
        Ok(Self { q, k, v, out, blocks, config: *config, context })
    }

    /// `None`: there are so few blocks that all see all.
    fn spec(&self) -> Option<BlockSpec> {
        let BigbirdConfig { heads, block, .. } = self.config;
        let blocks = self.config.blocks(self.context.len)?;
        let random = self.blocks.as_ref().map_or_else(Vec::new, |random| {
            random.val().to_data().iter::<f64>().map(|x| x as u32).collect()
        });
        Some(BlockSpec { heads, block, blocks, random })
    }

    /// The heads' answers `[B, L, Q]` to q, k, v `[B, L, Q]`.
    fn attend(&self, qkv: [Tensor<3>; 3], lengths: Option<&Arc<[usize]>>) -> Tensor<3> {
        let form = self.context.form;
        match self.spec() {
            None => {
                let spec = AttentionSpec { heads: self.config.heads, causal: false };
                attend(form, qkv, [lengths.cloned(), lengths.cloned()], spec)
            }
            Some(spec) if dispatch::is_fused(form, &qkv[0]) => {
                let [batch, len, width] = qkv[0].dims();
                let BlockSpec { heads, block, blocks, random } = spec;
                let head_dim = width / heads;
                let config = GatheredConfig {
                    batch,
                    len,
                    heads,
                    head_dim,
                    scale: 1.0 / (head_dim as f64).sqrt(),
                    causal: false,
                    self_last: false,
                };
                let lengths = lengths.map(|lengths| &**lengths);
                let tiles = BlockTiles::new(blocks, block, heads, &random, lengths, len);
                let op = AttentionOp::Gathered(config, Arc::new(tiles));
                fused_attention::attention(op, &qkv, None)
            }
            Some(spec) => composed::bigbird(qkv, lengths.map(|lengths| &**lengths), &spec),
        }
    }
}

/// Random blocks `[heads, n − 2, r]`, head by head and block by block: r of those that a block does not see anyway,
/// without replacement.
fn draw(heads: usize, blocks: usize, count: usize, init: &Init) -> Vec<f64> {
    let mut rng = init.stream("blocks");
    let mut all = Vec::new();
    for _ in 0..heads {
        for i in 1..blocks - 1 {
            let seen = |j: usize| j == 0 || j == blocks - 1 || j.abs_diff(i) <= 1;
            let mut others: Vec<usize> = (0..blocks).filter(|&j| !seen(j)).collect();
            for place in 0..count {
                let other = rng.random_range(place..others.len());
                others.swap(place, other);
                all.push(others[place] as f64);
            }
        }
    }
    all
}

impl SequenceMixer for BigbirdLayer {
    fn check_len(&self, l: usize) -> Result<()> {
        up_to("BigBird is", l, self.context.len)
    }

    fn mix(&self, u: Tensor<3>, _prepared: &Prepared, pass: &Pass) -> Tensor<3> {
        let form = self.context.form;
        let qkv = [&self.q, &self.k, &self.v].map(|map| map.forward(form, u.clone()));
        self.out.forward(form, self.attend(qkv, pass.lengths.as_ref()))
    }

    fn state(&self, _batch: usize) -> Result<MixerState> {
        whole_only("blocks of BigBird see the last block of the sequence")
    }

    fn portraits(&self, u: Tensor<3>, _side: Option<&Tensor<3>>) -> Vec<Portrait> {
        let [q, k] = [&self.q, &self.k].map(|map| map.forward(self.context.form, u.clone()));
        let attend = |v| self.attend([q.clone(), k.clone(), v], None);
        vec![Portrait::attention_of(&q, self.config.heads, attend)]
    }

    fn past_end(&self) -> String {
        "the last block is that of the training length".to_owned()
    }
}
