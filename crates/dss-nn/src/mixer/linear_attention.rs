//! Linear attention (Katharopoulos et al. 2020, Eq. 7): weights φ(q)·φ(k) with φ = elu + 1, between linear maps.

use burn::module::Module;
use dss_format::MixerContext;
use dss_format::mixer::LinearAttentionConfig;
use dss_kernels::kernelised::FeatureMap;

use super::Init;
use super::attention::Projection;
use super::kernelised::{Heads, KernelisedSpec, kernelised_mixer};
use crate::error::Result;

/// A layer of linear attention.
#[derive(Module, Debug)]
pub struct LinearAttentionLayer {
    /// Queries: `[Q, H]`.
    pub q: Projection,
    /// Keys: `[Q, H]`.
    pub k: Projection,
    /// Values: `[Q, H]`.
    pub v: Projection,
    /// The output: `[H, Q]`.
    pub out: Projection,
    #[module(skip)]
    config: LinearAttentionConfig,
    #[module(skip)]
    pub(super) context: MixerContext,
}

impl LinearAttentionLayer {
    pub(super) fn init(
        config: &LinearAttentionConfig,
        context: MixerContext,
        init: &Init,
    ) -> Result<Self> {
        let width = config.frame().width_in(context.h);
        let [q, k, v, out] = Projection::around_heads(context.h, width, config.bias, init);
        Ok(Self { q, k, v, out, config: *config, context })
    }

    fn heads(&self) -> Heads {
        Heads {
            maps: Some([&self.q, &self.k, &self.v, &self.out].map(Clone::clone)),
            directions: None,
            spec: KernelisedSpec {
                heads: self.config.heads,
                causal: !self.context.bidirectional,
                map: FeatureMap::EluPlusOne,
                eps: LinearAttentionConfig::EPS,
            },
            context: self.context,
        }
    }
}

kernelised_mixer!(LinearAttentionLayer);
