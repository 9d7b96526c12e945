//! H-Transformer-1D (Zhu & Soricut 2021): softmax attention whose matrix is hierarchical. Neighbouring blocks see each
//! other position by position; blocks further apart through means of 2, 4, 8, … positions. Time and memory are linear in
//! the length.

mod levels;

use burn::module::Module;
use burn::tensor::Tensor;
use dss_format::MixerContext;
use dss_format::mixer::HTransformer1dConfig;

use super::attention::Projection;
use super::state::MixerState;
use super::{Init, Pass, Portrait, SequenceMixer, whole_only};
use crate::error::Result;
use crate::prepared::Prepared;
use levels::LevelSpec;

/// An H-Transformer-1D layer.
#[derive(Module, Debug)]
pub struct HTransformer1dLayer {
    /// Queries: `[Q, H]`.
    pub q: Projection,
    /// Keys: `[Q, H]`.
    pub k: Projection,
    /// Values: `[Q, H]`.
    pub v: Projection,
    /// The output: `[H, Q]`.
    pub out: Projection,
    #[module(skip)]
    config: HTransformer1dConfig,
    #[module(skip)]
    pub(super) context: MixerContext,
}

impl HTransformer1dLayer {
    pub(super) fn init(
        config: &HTransformer1dConfig,
        context: MixerContext,
        init: &Init,
    ) -> Result<Self> {
        let width = config.width_in(context.h);
        let [q, k, v, out] = Projection::around_heads(context.h, width, config.bias, init);
        Ok(Self { q, k, v, out, config: *config, context })
    }

    fn spec(&self) -> LevelSpec {
        let HTransformer1dConfig { heads, block, .. } = self.config;
        LevelSpec { heads, block, causal: !self.context.bidirectional }
    }
}

impl SequenceMixer for HTransformer1dLayer {
    fn mix(&self, u: Tensor<3>, _prepared: &Prepared, pass: &Pass) -> Tensor<3> {
        let form = self.context.form;
        let qkv = [&self.q, &self.k, &self.v].map(|map| map.forward(form, u.clone()));
        self.out.forward(form, levels::hierarchical(qkv, pass.lengths.as_deref(), self.spec()))
    }

    fn state(&self, _batch: usize) -> Result<MixerState> {
        whole_only("the coarser levels of H-Transformer-1D are made of whole blocks")
    }

    /// All levels as weights of positions: those of a coarse block are alike.
    fn portraits(&self, u: Tensor<3>, _side: Option<&Tensor<3>>) -> Vec<Portrait> {
        let [q, k] = [&self.q, &self.k].map(|map| map.forward(self.context.form, u.clone()));
        let attend = |v| levels::hierarchical([q.clone(), k.clone(), v], None, self.spec());
        vec![Portrait::attention_of(&q, self.config.heads, attend)]
    }

    fn past_end(&self) -> String {
        "H-Transformer-1D does not depend on the length".to_owned()
    }
}
