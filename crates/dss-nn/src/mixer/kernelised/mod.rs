//! What linear attention and Performer share: attention of several heads whose weights are φ(q)·φ(k), so that sums over
//! keys, S = Σ φ(k)·vᵀ and z = Σ φ(k), serve all queries: y = Sᵀφ(q)/(z·φ(q) + ε).
//!
//! The formulas are in `dss_kernels::kernelised`, which the fused form runs. The composed form is the specification.

mod composed;
mod directions;
mod state;

use std::sync::Arc;

use burn::tensor::Tensor;
use dss_format::MixerContext;
use dss_kernels::kernelised::{FeatureMap, KernelisedConfig};

use super::attention::Projection;
use super::fused_attention::{self, AttentionOp};
use super::state::MixerState;
use super::{Pass, Portrait, check_forwards};
use crate::dispatch;
use crate::error::Result;
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
            Some([q, k, v, _]) => [q, k, v].map(|map| map.forward(self.context.form, u.clone())),
            None => [u.clone(), u.clone(), u],
        }
    }

    fn out<const D: usize>(&self, y: Tensor<D>) -> Tensor<D> {
        match &self.maps {
            Some([.., out]) => out.forward(self.context.form, y),
            None => y,
        }
    }

    /// Whole sequences: `[B, L, H]` -> `[B, L, H]`.
    pub(super) fn mix(&self, u: Tensor<3>, pass: &Pass) -> Tensor<3> {
        self.out(self.attend(self.qkv(u), pass.lengths.as_ref()))
    }

    /// The heads' answers `[B, L, Q]` to q, k, v `[B, L, Q]`.
    fn attend(&self, qkv: [Tensor<3>; 3], lengths: Option<&Arc<[usize]>>) -> Tensor<3> {
        let directions = self.directions.as_ref();
        if !dispatch::is_fused(self.context.form, &qkv[0]) {
            let lengths = lengths.map(|lengths| &**lengths);
            return composed::attention(qkv, directions, lengths, self.spec);
        }
        let [batch, len, width] = qkv[0].dims();
        let KernelisedSpec { heads, causal, map, eps } = self.spec;
        let head_dim = width / heads;
        let config = KernelisedConfig { batch, len, heads, head_dim, causal, map, eps };
        let op = AttentionOp::Kernelised(config, lengths.cloned());
        fused_attention::attention(op, &qkv, directions)
    }

    /// φ(q)·φ(k), divided by their sums.
    pub(super) fn portraits(&self, u: Tensor<3>) -> Vec<Portrait> {
        let [q, k, _] = self.qkv(u);
        let attend = |v| self.attend([q.clone(), k.clone(), v], None);
        vec![Portrait::attention_of(&q, self.spec.heads, attend)]
    }

    /// B streams before their first step.
    ///
    /// # Errors
    /// If the heads look ahead.
    pub(super) fn state(self, batch: usize) -> Result<MixerState> {
        check_forwards(&self.context)?;
        let shape = [batch, self.context.h];
        Ok(MixerState::new(Box::new(HeadStreams::new(self, batch)), shape))
    }
}

/// The seam of a layer that has `heads()`.
macro_rules! kernelised_mixer {
    ($layer:ident) => {
        impl crate::mixer::SequenceMixer for $layer {
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

            fn portraits(
                &self,
                u: burn::tensor::Tensor<3>,
                _side: Option<&burn::tensor::Tensor<3>>,
            ) -> Vec<crate::mixer::Portrait> {
                self.heads().portraits(u)
            }

            fn past_end(&self) -> String {
                "attention does not depend on the length".to_owned()
            }
        }
    };
}
pub(super) use kernelised_mixer;
