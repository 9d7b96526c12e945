//! What linear attention and Performer share: attention of several heads whose weights are φ(q)·φ(k), so that sums over
//! keys, S = Σ φ(k)·vᵀ and z = Σ φ(k), serve all queries: y = Sᵀφ(q)/(z·φ(q) + ε).
//!
//! The formulas are in `dss_kernels::kernelised`, which the fused form runs. The composed form is the specification.

mod composed;
mod directions;
mod fused;
mod state;

use burn::tensor::Tensor;
use dss_format::MixerContext;
use dss_kernels::kernelised::FeatureMap;

use super::Pass;
use super::attention::Projection;
use super::state::MixerState;
use crate::dispatch;
use crate::error::{Error, Result};
use state::HeadStreams;

pub(super) use directions::orthogonal_directions;

/// How heads attend.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct KernelisedSpec {
    /// How many heads share the channels.
    pub heads: usize,
    /// Whether a position sees only those up to itself.
    pub causal: bool,
    /// φ.
    pub map: FeatureMap,
    /// What is added to a sum of weights before it divides.
    pub eps: f64,
}

/// A whole layer: heads and the maps around them.
#[derive(Debug, Clone)]
pub(super) struct Heads {
    /// Those of queries, keys, values and the output; `None`: all four are the identity.
    pub maps: Option<[Projection; 4]>,
    /// w `[m, d]` of FAVOR+.
    pub directions: Option<Tensor<2>>,
    pub spec: KernelisedSpec,
    pub context: MixerContext,
}

impl Heads {
    /// Queries, keys and values.
    fn qkv<const D: usize>(&self, u: Tensor<D>) -> [Tensor<D>; 3] {
        match &self.maps {
            Some([q, k, v, _]) => [q, k, v].map(|map| map.forward(u.clone())),
            None => [u.clone(), u.clone(), u],
        }
    }

    fn out<const D: usize>(&self, y: Tensor<D>) -> Tensor<D> {
        match &self.maps {
            Some([.., out]) => out.forward(y),
            None => y,
        }
    }

    /// Whole sequences: `[B, L, H]` -> `[B, L, H]`.
    pub(super) fn mix(&self, u: Tensor<3>, pass: &Pass) -> Tensor<3> {
        let lengths = pass.lengths.as_deref();
        let is_fused = dispatch::is_fused(self.context.form, &u);
        let attend = if is_fused { fused::attention } else { composed::attention };
        self.out(attend(self.qkv(u), self.directions.as_ref(), lengths, self.spec))
    }

    /// B streams before their first step.
    ///
    /// # Errors
    /// If the heads look ahead.
    pub(super) fn state(self, batch: usize) -> Result<MixerState> {
        if !self.spec.causal {
            let what =
                "the layer looks ahead (bidirectional): such a layer takes whole sequences only";
            return Err(Error::invalid("SequenceMixer::state", what));
        }
        let shape = [batch, self.context.h];
        Ok(MixerState::new(Box::new(HeadStreams::new(self, batch)), shape))
    }
}

/// The seam of a layer that has `heads()`.
macro_rules! kernelised_mixer {
    ($layer:ident, $kind:ident) => {
        impl crate::mixer::SequenceMixer for $layer {
            fn context(&self) -> &dss_format::MixerContext {
                &self.context
            }

            fn check_len(&self, l: usize) -> crate::error::Result<()> {
                crate::mixer::recurrent::check_len(l)
            }

            fn prepare(&self, l: usize) -> crate::error::Result<crate::prepared::Prepared> {
                crate::mixer::recurrent::check_len(l)?;
                Ok(crate::prepared::Prepared::default())
            }

            fn mix(
                &self,
                u: burn::tensor::Tensor<3>,
                _prepared: &crate::prepared::Prepared,
                pass: &crate::mixer::Pass,
            ) -> burn::tensor::Tensor<3> {
                self.heads().mix(u, pass)
            }

            fn state(&self, batch: usize) -> crate::error::Result<crate::mixer::MixerState> {
                self.heads().state(batch)
            }

            fn step(
                &self,
                state: &mut crate::mixer::MixerState,
                u: burn::tensor::Tensor<2>,
            ) -> crate::error::Result<burn::tensor::Tensor<2>> {
                state.step(u)
            }

            fn at_step(&self, r: f64) -> crate::error::Result<crate::mixer::Mixer> {
                dss_format::mixer::MixerSettings::at_step(&self.config, r)?;
                Ok(crate::mixer::Mixer::$kind(self.clone()))
            }

            fn past_end(&self) -> String {
                "attention does not depend on the length".to_owned()
            }
        }
    };
}
pub(super) use kernelised_mixer;
