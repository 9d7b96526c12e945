//! Reformer (Kitaev et al. 2020): each position attends to those whose queries fall into the same bucket of a random
//! hash, in several rounds; queries are keys too. Or the form that the Long Range Arena ran, which is another model.
//!
//! Positions are sorted by (bucket, position) and cut into chunks; a chunk sees itself and the one before it, the first
//! chunk of a round the last one of the round before. Sequences count as padded to the length that the model is made
//! for, so that chunks never depend on a batch. Gradients flow through logits and values, not through the hashes.
//!
//! In the causal form a position sees no later one. But which of the earlier ones it sees depends on the chunks, and
//! later positions take part in cutting them.

mod composed;
mod hash;

use std::sync::Arc;

use burn::module::{Module, Param};
use burn::tensor::Tensor;
use dss_format::MixerContext;
use dss_format::mixer::{ReformerConfig, ReformerVariant};
use dss_kernels::attention::gathered::{ChunkTiles, GatheredConfig, HashSizes, sorted_positions};

use super::attention::Projection;
use super::fused_attention::{self, AttentionOp};
use super::heads::{cut, padded};
use super::state::MixerState;
use super::{Init, Pass, Portrait, SequenceMixer, fixed, up_to, whole_only};
use crate::composed::constant;
use crate::dispatch;
use crate::error::Result;
use crate::prepared::Prepared;
use crate::random::{normal, stream};

/// The stream of a training pass's rotations.
const ROTATIONS: u64 = 8;

/// A Reformer layer.
#[derive(Module, Debug)]
pub struct ReformerLayer {
    /// Queries, which are keys too: `[Q, H]`.
    pub qk: Projection,
    /// Values: `[Q, H]`.
    pub v: Projection,
    /// The output: `[H, Q]`; none in the Long Range Arena's form.
    pub out: Option<Projection>,
    /// What hashes in evaluation: `[heads, d, R, buckets/2]` ~ N(0, 1), with 1 for the heads in the Long Range Arena's
    /// form, which has the same in all layers and in training. Not trained.
    pub rotations: Param<Tensor<4>>,
    #[module(skip)]
    config: ReformerConfig,
    #[module(skip)]
    pub(super) context: MixerContext,
}

/// Whose logits, and who sees whom.
struct ChunkSpec {
    heads: usize,
    sizes: HashSizes,
    /// What the logits are multiplied by.
    scale: f64,
    causal: bool,
    /// A position sees itself only if it sees nothing else.
    self_last: bool,
}

impl ReformerLayer {
    pub(super) fn init(
        config: &ReformerConfig,
        context: MixerContext,
        init: &Init,
    ) -> Result<Self> {
        let (h, width) = (context.h, config.width_in(context.h));
        let map = |name, inputs, outputs| Projection::init(name, inputs, outputs, false, init);
        let (d, sizes) = (width / config.heads, config.sizes(context.len));
        let (heads, mut rng) = match config.variant {
            ReformerVariant::Paper => (config.heads, init.stream("rotations")),
            ReformerVariant::Lra => (1, stream(init.seed, "mixer.rotations")),
        };
        let shape = [heads, d, sizes.rounds, sizes.buckets / 2];
        let rotations = normal(shape.iter().product(), &mut rng);
        Ok(Self {
            qk: map("qk", h, width),
            v: map("v", h, width),
            out: (config.variant == ReformerVariant::Paper).then(|| map("out", width, h)),
            rotations: fixed(rotations, shape, init.device),
            config: *config,
            context,
        })
    }

    fn is_lra(&self) -> bool {
        self.config.variant == ReformerVariant::Lra
    }

    fn spec(&self) -> ChunkSpec {
        let d = self.config.width_in(self.context.h) / self.config.heads;
        ChunkSpec {
            heads: self.config.heads,
            sizes: self.config.sizes(self.context.len).into(),
            scale: if self.is_lra() { (d as f64).sqrt() } else { 1.0 },
            causal: !self.context.bidirectional,
            self_last: !self.is_lra(),
        }
    }

    /// The rotations of this pass.
    fn rotations(&self, pass: &Pass) -> Tensor<4> {
        let fixed = self.rotations.val();
        match pass.key {
            Some(key) if !self.is_lra() => {
                let (shape, device) = (fixed.dims(), fixed.device());
                let numbers = normal(shape.iter().product(), &mut key.stream(ROTATIONS));
                constant(numbers, shape, &device, fixed.dtype())
            }
            _ => fixed,
        }
    }

    /// The positions of x `[B, L, Q]` in the order of their buckets: `[B, heads, R, L]`. Those beyond the lengths are
    /// last, or as the zeros that they are.
    fn order(&self, x: &Tensor<3>, length: impl Fn(usize) -> usize, pass: &Pass) -> Vec<u32> {
        let (spec, l) = (self.spec(), x.dims()[1]);
        let fused = dispatch::is_fused(self.context.form, x);
        let mut buckets = hash::buckets(x, self.rotations(pass), &spec, fused);
        let beyond = if self.is_lra() { 0 } else { spec.sizes.buckets as u32 };
        let per_sequence = spec.heads * spec.sizes.rounds;
        for (row, buckets) in buckets.chunks_exact_mut(l).enumerate() {
            buckets[length(row / per_sequence)..].fill(beyond);
        }
        sorted_positions(&buckets, l)
    }

    /// The answers `[B, L, Q]` of the heads to q and v `[B, L, Q]`, whose positions are in this order.
    fn attend(
        &self,
        q: Tensor<3>,
        v: Tensor<3>,
        order: Vec<u32>,
        lengths: Option<&[usize]>,
    ) -> Tensor<3> {
        let spec = self.spec();
        let k = if self.is_lra() { q.clone() } else { unit(q.clone(), spec.heads) };
        if !dispatch::is_fused(self.context.form, &q) {
            return composed::reformer([q, k, v], &order, lengths, &spec);
        }
        let [batch, len, width] = q.dims();
        let config = GatheredConfig {
            batch,
            len,
            heads: spec.heads,
            head_dim: width / spec.heads,
            scale: spec.scale,
            causal: spec.causal,
            self_last: spec.self_last,
        };
        let tiles = ChunkTiles::new(spec.sizes, [len, spec.heads], order, lengths);
        let op = AttentionOp::Gathered(config, Arc::new(tiles));
        fused_attention::attention(op, &[q, k, v], None)
    }

    /// u with the padding that takes part: that of the Long Range Arena's form, as zeros.
    fn with_padding(&self, u: Tensor<3>, lengths: Option<&[usize]>) -> Tensor<3> {
        let HashSizes { chunks, chunk, .. } = self.spec().sizes;
        if self.is_lra() { padded(cut(u, lengths), chunks * chunk) } else { u }
    }
}

/// x/√(Σx² + 10⁻⁶·d) of each head: keys of unit length.
fn unit(x: Tensor<3>, heads: usize) -> Tensor<3> {
    let [batch, l, width] = x.dims();
    let d = width / heads;
    let x = x.reshape([batch, l, heads, d]);
    let square = x.clone().square().sum_dim(3) + 1e-6 * d as f64;
    (x * square.sqrt().recip()).reshape([batch, l, width])
}

impl SequenceMixer for ReformerLayer {
    fn check_len(&self, l: usize) -> Result<()> {
        up_to("Reformer is", l, self.context.len)
    }

    fn mix(&self, u: Tensor<3>, _prepared: &Prepared, pass: &Pass) -> Tensor<3> {
        let (l, true_lengths) = (u.dims()[1], pass.lengths.as_deref());
        let u = self.with_padding(u, true_lengths);
        let lengths = if self.is_lra() { None } else { true_lengths };
        let form = self.context.form;
        let (q, v) = (self.qk.forward(form, u.clone()), self.v.forward(form, u));
        let length = |b: usize| true_lengths.map_or(l, |lengths| lengths[b]);
        let order = self.order(&q.clone().detach(), length, pass);
        let y = self.attend(q, v, order, lengths);
        let y = cut(y.narrow(1, 0, l), true_lengths);
        match &self.out {
            Some(out) => out.forward(form, y),
            None => y,
        }
    }

    fn state(&self, _batch: usize) -> Result<MixerState> {
        whole_only("Reformer sorts the positions of the whole sequence")
    }

    /// With the rotations of evaluation.
    fn portraits(&self, u: Tensor<3>, _side: Option<&Tensor<3>>) -> Vec<Portrait> {
        let l = u.dims()[1];
        let q = self.qk.forward(self.context.form, self.with_padding(u, None));
        let order = self.order(&q, |_| l, &Pass::default());
        let attend = |v| {
            let v = padded(v, q.dims()[1]);
            self.attend(q.clone(), v, order.clone(), None).narrow(1, 0, l)
        };
        vec![Portrait::attention_of(&q.clone().narrow(1, 0, l), self.config.heads, attend)]
    }

    fn past_end(&self) -> String {
        "the chunks are those of the training length".to_owned()
    }
}
