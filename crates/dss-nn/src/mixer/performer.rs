//! Performer (Choromanski et al. 2021): attention with weights φ(q)·φ(k), φ relu or the random features of the softmax,
//! between linear maps or on the input itself.

use burn::module::{Module, Param};
use burn::tensor::Tensor;
use dss_format::MixerContext;
use dss_format::mixer::{PerformerConfig, PerformerKernel};

use super::attention::Projection;
use super::kernelised::{Heads, KernelisedSpec, kernelised_mixer, orthogonal_directions};
use super::{Init, fixed};
use crate::error::Result;

/// A Performer layer.
#[derive(Module, Debug)]
pub struct PerformerLayer {
    /// Queries: `[Q, H]`; this and the other maps are there with `project`.
    pub q: Option<Projection>,
    /// Keys: `[Q, H]`.
    pub k: Option<Projection>,
    /// Values: `[Q, H]`.
    pub v: Option<Projection>,
    /// The output: `[H, Q]`.
    pub out: Option<Projection>,
    /// w `[m, d]`: the directions of FAVOR+, in orthogonal blocks. Not trained.
    pub features: Option<Param<Tensor<2>>>,
    #[module(skip)]
    config: PerformerConfig,
    #[module(skip)]
    pub(super) context: MixerContext,
}

impl PerformerLayer {
    pub(super) fn init(
        config: &PerformerConfig,
        context: MixerContext,
        init: &Init,
    ) -> Result<Self> {
        let width = config.frame().width_in(context.h);
        let maps = Projection::around_heads(context.h, width, config.bias, init);
        let [q, k, v, out] = maps.map(|map| config.project.then_some(map));
        let features = (config.kernel == PerformerKernel::Favor).then(|| {
            let d = width / config.heads;
            let m = config.features_in(d);
            let w = orthogonal_directions(m, d, &mut init.stream("features"));
            fixed(w, [m, d], init.device)
        });
        Ok(Self { q, k, v, out, features, config: *config, context })
    }

    fn heads(&self) -> Heads {
        let Self { q, k, v, out, features, config, context } = self;
        let maps = match [q, k, v, out] {
            [Some(q), Some(k), Some(v), Some(out)] => Some([q, k, v, out].map(Clone::clone)),
            _ => None,
        };
        let spec = KernelisedSpec {
            heads: config.heads,
            causal: !context.bidirectional,
            map: config.feature_map(context.h),
            eps: config.denominator_eps(),
        };
        let directions = features.as_ref().map(Param::val);
        Heads { maps, directions, spec, context: *context }
    }
}

kernelised_mixer!(PerformerLayer);
