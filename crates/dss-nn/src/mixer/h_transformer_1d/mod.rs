//! H-Transformer-1D (Zhu & Soricut 2021): softmax attention whose matrix is hierarchical. Neighbouring blocks see each
//! other position by position; blocks further apart through means of 2, 4, 8, … positions. Time and memory are linear in
//! the length.

mod levels;

use burn::module::Module;
use burn::tensor::Tensor;
use dss_format::MixerContext;
use dss_format::mixer::{HTransformer1dConfig, MixerSettings};

use super::attention::Projection;
use super::recurrent::check_len;
use super::state::MixerState;
use super::{Init, Mixer, Pass, SequenceMixer};
use crate::error::{Error, Result};
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
    context: MixerContext,
}

impl HTransformer1dLayer {
    pub(super) fn init(
        config: &HTransformer1dConfig,
        context: MixerContext,
        init: &Init,
    ) -> Result<Self> {
        let (h, width) = (context.h, config.width_in(context.h));
        let map =
            |name, inputs, outputs| Projection::init(name, inputs, outputs, config.bias, init);
        Ok(Self {
            q: map("q", h, width),
            k: map("k", h, width),
            v: map("v", h, width),
            out: map("out", width, h),
            config: *config,
            context,
        })
    }
}

impl SequenceMixer for HTransformer1dLayer {
    fn context(&self) -> &MixerContext {
        &self.context
    }

    fn check_len(&self, l: usize) -> Result<()> {
        check_len(l)
    }

    fn prepare(&self, l: usize) -> Result<Prepared> {
        self.check_len(l)?;
        Ok(Prepared::default())
    }

    fn mix(&self, u: Tensor<3>, _prepared: &Prepared, pass: &Pass) -> Tensor<3> {
        let HTransformer1dConfig { heads, block, .. } = self.config;
        let qkv = [&self.q, &self.k, &self.v].map(|map| map.forward(u.clone()));
        let spec = LevelSpec { heads, block, causal: !self.context.bidirectional };
        self.out.forward(levels::hierarchical(qkv, pass.lengths.as_deref(), spec))
    }

    fn state(&self, _batch: usize) -> Result<MixerState> {
        let what = "the coarser levels of H-Transformer-1D are made of whole blocks: such a layer takes whole \
                    sequences only";
        Err(Error::invalid("SequenceMixer::state", what))
    }

    fn step(&self, state: &mut MixerState, u: Tensor<2>) -> Result<Tensor<2>> {
        state.step(u)
    }

    fn at_step(&self, r: f64) -> Result<Mixer> {
        self.config.at_step(r)?;
        Ok(Mixer::HTransformer1d(self.clone()))
    }

    fn past_end(&self) -> String {
        "H-Transformer-1D does not depend on the length".to_owned()
    }
}
