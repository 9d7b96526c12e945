//! Softmax attention with several heads (Vaswani et al. 2017, Eq. 1): softmax(q·kᵀ/√d)·v per head, between linear maps.
//!
//! In the fused form memory is O(L·Q): no `[L, L]` matrix is kept. The composed form is the specification.

mod composed;
mod state;

use std::sync::Arc;

use burn::module::{Module, Param};
use burn::tensor::Tensor;
use dss_format::mixer::AttentionConfig;
use dss_format::{Form, MixerContext};
use dss_kernels::attention;

use super::fused_attention::{self, AttentionOp};
use super::state::MixerState;
use super::{Init, Pass, Portrait, SequenceMixer, check_forwards};
use crate::dispatch;
use crate::error::Result;
use crate::feed_forward::xavier;
use crate::linear::{at_positions, parameter};
use crate::prepared::Prepared;
use state::AttentionState;

pub(super) use composed::weights;

/// An attention layer.
#[derive(Module, Debug)]
pub struct AttentionLayer {
    /// Queries: `[Q, H]`.
    pub q: Projection,
    /// Keys: `[Q, H]`.
    pub k: Projection,
    /// Values: `[Q, H]`.
    pub v: Projection,
    /// The output: `[H, Q]`.
    pub out: Projection,
    #[module(skip)]
    config: AttentionConfig,
    #[module(skip)]
    pub(super) context: MixerContext,
}

/// A linear map, with a bias or without.
#[derive(Module, Debug)]
pub struct Projection {
    /// `[out, in]`, Xavier-uniform.
    pub weight: Param<Tensor<2>>,
    /// `[out]`, 0 at first.
    pub bias: Option<Param<Tensor<1>>>,
}

/// How heads attend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttentionSpec {
    /// How many heads share the channels.
    pub heads: usize,
    /// Whether a position sees only those up to itself.
    pub causal: bool,
}

impl Projection {
    pub(super) fn init(name: &str, inputs: usize, outputs: usize, bias: bool, init: &Init) -> Self {
        let weight =
            xavier(inputs, outputs, &mut init.stream(&format!("{name}.weight")), init.device);
        let bias = bias.then(|| parameter(vec![0.0; outputs], [outputs], init.device));
        Self { weight, bias }
    }

    /// Those of queries, keys, values and the output around heads of `width` channels.
    pub(super) fn around_heads(h: usize, width: usize, bias: bool, init: &Init) -> [Self; 4] {
        let maps = [("q", h, width), ("k", h, width), ("v", h, width), ("out", width, h)];
        maps.map(|(name, inputs, outputs)| Self::init(name, inputs, outputs, bias, init))
    }

    /// `[.., in]` -> `[.., out]`.
    pub(super) fn forward<const D: usize>(&self, form: Form, x: Tensor<D>) -> Tensor<D> {
        at_positions(form, x, self.weight.val(), self.bias.as_ref().map(Param::val))
    }
}

impl AttentionLayer {
    pub(super) fn init(
        config: &AttentionConfig,
        context: MixerContext,
        init: &Init,
    ) -> Result<Self> {
        let width = config.width_in(context.h);
        let [q, k, v, out] = Projection::around_heads(context.h, width, config.bias, init);
        Ok(Self { q, k, v, out, config: *config, context })
    }

    fn spec(&self) -> AttentionSpec {
        AttentionSpec { heads: self.config.heads, causal: !self.context.bidirectional }
    }
}

/// softmax(q·kᵀ/√d)·v of q `[B, M, Q]`, k and v `[B, L, Q]`, per head, with the true numbers of queries and keys of each
/// sequence.
pub(super) fn attend(
    form: Form,
    qkv: [Tensor<3>; 3],
    lengths: [Option<Arc<[usize]>>; 2],
    spec: AttentionSpec,
) -> Tensor<3> {
    if !dispatch::is_fused(form, &qkv[0]) {
        return composed::attention(qkv, lengths.each_ref().map(Option::as_deref), spec);
    }
    let ([batch, queries, width], [_, keys, _]) = (qkv[0].dims(), qkv[1].dims());
    let AttentionSpec { heads, causal } = spec;
    let head_dim = width / heads;
    let sizes = attention::AttentionConfig { batch, queries, keys, heads, head_dim, causal };
    fused_attention::attention(AttentionOp::Softmax(sizes, lengths), &qkv, None)
}

impl SequenceMixer for AttentionLayer {
    fn mix(&self, u: Tensor<3>, _prepared: &Prepared, pass: &Pass) -> Tensor<3> {
        let form = self.context.form;
        let qkv = [&self.q, &self.k, &self.v].map(|map| map.forward(form, u.clone()));
        let lengths = [pass.lengths.clone(), pass.lengths.clone()];
        self.out.forward(form, attend(form, qkv, lengths, self.spec()))
    }

    fn state(&self, batch: usize) -> Result<MixerState> {
        check_forwards(&self.context)?;
        let state = AttentionState::new(self.clone(), batch);
        Ok(MixerState::new(Box::new(state), [batch, self.context.h]))
    }

    fn portraits(&self, u: Tensor<3>, _side: Option<&Tensor<3>>) -> Vec<Portrait> {
        let maps = [&self.q, &self.k].map(|map| map.forward(self.context.form, u.clone()));
        vec![Portrait::attention("attention", weights(maps, None, self.spec()))]
    }

    fn past_end(&self) -> String {
        "attention does not depend on the length".to_owned()
    }
}
