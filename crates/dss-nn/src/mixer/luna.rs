//! Luna (Ma et al. 2021): two attentions around a second stream p of l positions, in place of one over all pairs,
//!
//! p' = Attn(W_pq·p, W_pk·u, W_pv·u), y = W_o·Attn(W_q·u, W_k·p', W_v·p'), p ← LayerNorm(p + p'),
//!
//! each with several heads and the scale 1/√d. The block around adds y to the sequence, as for every mixer. A sequence
//! of fewer than l positions uses as many rows of p as it has, so that padding changes nothing.

use std::sync::Arc;

use burn::module::Module;
use burn::tensor::Tensor;
use dss_format::mixer::LunaConfig;
use dss_format::{MixerContext, NormKind};

use super::attention::attend_across;
use super::heads::{split, weights};
use super::recurrent::at_positions;
use super::state::MixerState;
use super::{Init, Pass, Portrait, SequenceMixer, whole_only};
use crate::dispatch;
use crate::error::Result;
use crate::linear::{Linear, parameter};
use crate::norm::Norm;
use crate::positions;
use crate::prepared::Prepared;
use crate::random::uniform;

/// A Luna layer. Matrices start Xavier-uniform, those but the output's times 1/√2; biases are 0 at first.
#[derive(Module, Debug)]
pub struct LunaLayer {
    /// Queries of the sequence: `[H, H]`.
    pub q: Linear,
    /// Keys of the packed stream: `[H, H]`.
    pub k: Linear,
    /// Values of the packed stream: `[H, H]`.
    pub v: Linear,
    /// The output: `[H, H]`.
    pub out: Linear,
    /// Queries of p: `[H, H]`.
    pub pq: Linear,
    /// Keys of the sequence: `[H, H]`.
    pub pk: Linear,
    /// Values of the sequence: `[H, H]`.
    pub pv: Linear,
    /// LayerNorm of p.
    pub p_norm: Norm,
    #[module(skip)]
    config: LunaConfig,
    #[module(skip)]
    pub(super) context: MixerContext,
}

impl LunaLayer {
    pub(super) fn init(config: &LunaConfig, context: MixerContext, init: &Init) -> Result<Self> {
        let h = context.h;
        let map = |name: &str, gain: f64| {
            let bound = gain * (3.0 / h as f64).sqrt();
            let values = uniform(h * h, bound, &mut init.stream(&format!("{name}.weight")));
            Linear {
                weight: parameter(values, [h, h], init.device),
                bias: parameter(vec![0.0; h], [h], init.device),
            }
        };
        let gain = std::f64::consts::FRAC_1_SQRT_2;
        Ok(Self {
            q: map("q", gain),
            k: map("k", gain),
            v: map("v", gain),
            out: map("out", 1.0),
            pq: map("pq", gain),
            pk: map("pk", gain),
            pv: map("pv", gain),
            p_norm: Norm::new(NormKind::Layer, LunaConfig::NORM_EPS, h, init.device),
            config: *config,
            context,
        })
    }

    fn map(&self, map: &Linear, x: Tensor<3>) -> Tensor<3> {
        at_positions(map, x, self.context.form)
    }

    /// softmax(q·kᵀ/√d) `[B, heads, M, L]` of q `[B, M, H]` and k `[B, L, H]`.
    fn weights(&self, q: Tensor<3>, k: Tensor<3>) -> Tensor<4> {
        let heads = self.config.heads;
        let d = self.context.h as f64 / heads as f64;
        weights(split(q, heads) * (1.0 / d.sqrt()), split(k, heads), None)
    }

    /// p' `[B, l, H]` of u `[B, L, H]` and p `[B, l, H]`.
    fn packed(&self, u: Tensor<3>, p: Tensor<3>, lengths: Option<Arc<[usize]>>) -> Tensor<3> {
        let qkv = [(&self.pq, p), (&self.pk, u.clone()), (&self.pv, u)];
        let qkv = qkv.map(|(map, x)| self.map(map, x));
        attend_across(self.context.form, qkv, [None, lengths], self.config.heads)
    }

    /// y `[B, L, H]` and p' `[B, l, H]` of u and p, before residuals and norms.
    pub fn attend(
        &self,
        u: Tensor<3>,
        p: Tensor<3>,
        lengths: Option<Arc<[usize]>>,
    ) -> (Tensor<3>, Tensor<3>) {
        let ([batch, l, _], rows) = (u.dims(), self.config.packed);
        let packed = self.packed(u.clone(), p, lengths.clone());
        let used = |b: usize| lengths.as_ref().map_or(l, |lengths| lengths[b]).min(rows);
        let used: Arc<[usize]> = (0..batch).map(used).collect();
        let qkv = [(&self.q, u), (&self.k, packed.clone()), (&self.v, packed.clone())];
        let qkv = qkv.map(|(map, x)| self.map(map, x));
        let y = attend_across(self.context.form, qkv, [lengths, Some(used)], self.config.heads);
        (self.map(&self.out, y), packed)
    }

    /// p where nobody gives one: the fixed position vectors.
    fn lone_stream(&self, u: &Tensor<3>) -> Tensor<3> {
        let ([batch, _, h], l) = (u.dims(), self.config.packed);
        positions::fixed(l, h, &u.device(), u.dtype()).expand([batch, l, h])
    }
}

impl SequenceMixer for LunaLayer {
    /// With fixed position vectors as the second stream.
    fn mix(&self, u: Tensor<3>, _prepared: &Prepared, pass: &Pass) -> Tensor<3> {
        let p = self.lone_stream(&u);
        self.attend(u, p, pass.lengths.clone()).0
    }

    fn mix_beside(
        &self,
        u: Tensor<3>,
        side: &mut Option<Tensor<3>>,
        _prepared: &Prepared,
        pass: &Pass,
    ) -> Tensor<3> {
        let p = side.take().unwrap_or_else(|| self.lone_stream(&u));
        let (y, packed) = self.attend(u, p.clone(), pass.lengths.clone());
        let (gamma, beta) = (self.p_norm.gamma.val(), self.p_norm.beta.val());
        let mode = self.p_norm.mode(false, None);
        *side = Some(dispatch::norm(self.context.form, p + packed, gamma, beta, &mode).0);
        y
    }

    fn state(&self, _batch: usize) -> Result<MixerState> {
        whole_only("the second stream of Luna packs the whole sequence")
    }

    fn portraits(&self, u: Tensor<3>, side: Option<&Tensor<3>>) -> Vec<Portrait> {
        let p = side.cloned().unwrap_or_else(|| self.lone_stream(&u));
        // Rows of p that the sequence is too short for are not used.
        let used = self.config.packed.min(u.dims()[1]);
        let packed = self.packed(u.clone(), p.clone(), None).narrow(1, 0, used);
        let packing = self.weights(self.map(&self.pq, p), self.map(&self.pk, u.clone()));
        let packing = packing.narrow(2, 0, used);
        let unpacking = self.weights(self.map(&self.q, u), self.map(&self.k, packed));
        vec![
            Portrait::attention("p attends to the sequence", packing),
            Portrait::attention("the sequence attends to p", unpacking),
        ]
    }

    fn past_end(&self) -> String {
        "attention does not depend on the length".to_owned()
    }
}
