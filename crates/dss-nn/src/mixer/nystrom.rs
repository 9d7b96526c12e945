//! Nyströmformer (Xiong et al. 2021): softmax attention through m landmarks, the means q̃, k̃ of segments of queries and
//! keys,
//!
//! y = F·A⁺·(B·v) + conv(v), F = softmax(q·k̃ᵀ/√d), A = softmax(q̃·k̃ᵀ/√d), B = softmax(q̃·kᵀ/√d),
//!
//! A⁺ by six iterations from Z₀ = Aᵀ/‖A‖₁: Z ← ¼·Z·(13 − AZ·(15 − AZ·(7 − AZ))). They do not converge: they are the
//! model. Queries and keys beyond a sequence are 0, and the segments are those of one length for all sequences, so that
//! an answer does not depend on the batch.

use std::sync::Arc;

use burn::module::{Module, Param};
use burn::tensor::Tensor;
use burn::tensor::module::conv1d;
use burn::tensor::ops::ConvOptions;
use dss_format::MixerContext;
use dss_format::mixer::NystromConfig;

use super::attention::{AttentionSpec, attend, weights};
use super::heads::{cut, join, padded, split};
use super::state::MixerState;
use super::{Init, Pass, Portrait, SequenceMixer, at_least_one, whole_only};
use crate::error::{Error, Result};
use crate::linear::{Linear, parameter};
use crate::prepared::Prepared;
use crate::random::uniform;

/// A Nyströmformer layer.
#[derive(Module, Debug)]
pub struct NystromLayer {
    /// Queries: `[H, H]`.
    pub q: Linear,
    /// Keys: `[H, H]`.
    pub k: Linear,
    /// Values: `[H, H]`.
    pub v: Linear,
    /// The output: `[H, H]`.
    pub out: Linear,
    /// The convolution of the values, if there is one.
    pub conv: Option<HeadConvolution>,
    #[module(skip)]
    config: NystromConfig,
    #[module(skip)]
    pub(super) context: MixerContext,
}

/// One kernel per head over the length.
#[derive(Module, Debug)]
pub struct HeadConvolution {
    /// `[heads, taps]` ~ U(±1/√taps).
    pub weight: Param<Tensor<2>>,
}

impl HeadConvolution {
    fn init(heads: usize, taps: usize, init: &Init) -> Self {
        let bound = 1.0 / (taps as f64).sqrt();
        let values = uniform(heads * taps, bound, &mut init.stream("conv.weight"));
        Self { weight: parameter(values, [heads, taps], init.device) }
    }

    /// y_t = Σ_j w_j·v_{t + j − taps/2} for v `[B, heads, L, d]`, 0 beyond both ends.
    fn forward(&self, v: Tensor<4>) -> Tensor<4> {
        let ([batch, heads, l, d], [_, taps]) = (v.dims(), self.weight.val().dims());
        let rows = v.permute([0, 3, 1, 2]).reshape([batch * d, heads, l]);
        let weight = self.weight.val().reshape([heads, 1, taps]);
        let y = conv1d(rows, weight, None, ConvOptions::new([1], [taps / 2], [1], heads));
        y.reshape([batch, d, heads, l]).permute([0, 2, 3, 1])
    }
}

/// The six iterations for A⁺ `[B, heads, m, m]`, scaled per sequence and head.
pub fn pseudo_inverse(a: Tensor<4>) -> Tensor<4> {
    let [_, _, m, _] = a.dims();
    let eye = Tensor::<2>::eye(m, &a.device()).cast(a.dtype()).unsqueeze::<4>();
    let less = |c: f64, x: Tensor<4>| eye.clone() * c - x;
    let largest = a.clone().sum_dim(2).max_dim(3);
    let mut z = a.clone().swap_dims(2, 3) * largest.recip();
    for _ in 0..NystromConfig::ITERATIONS {
        let az = a.clone().matmul(z.clone());
        let inner = less(15.0, az.clone().matmul(less(7.0, az.clone())));
        z = z.matmul(less(13.0, az.matmul(inner))) * 0.25;
    }
    z
}

impl NystromLayer {
    pub(super) fn init(config: &NystromConfig, context: MixerContext, init: &Init) -> Result<Self> {
        let map = |name| init.linear(name, context.h, context.h);
        let conv = || HeadConvolution::init(config.heads, config.conv, init);
        Ok(Self {
            q: map("q"),
            k: map("k"),
            v: map("v"),
            out: map("out"),
            conv: (config.conv > 0).then(conv),
            config: *config,
            context,
        })
    }

    fn padded_len(&self) -> usize {
        self.config.length(self.context.len)
    }

    /// Queries, keys and values `[B, L, H]`, 0 beyond the lengths.
    fn projected(&self, u: Tensor<3>, lengths: Option<&[usize]>) -> [Tensor<3>; 3] {
        [&self.q, &self.k, &self.v]
            .map(|map| cut(map.at_positions(self.context.form, u.clone()), lengths))
    }

    /// Means `[B, m, H]` of the segments of x `[B, L, H]`, which is 0 up to the padded length.
    fn landmarks(&self, x: Tensor<3>) -> Tensor<3> {
        let ([batch, l, h], m) = (x.dims(), self.config.landmarks);
        let size = self.padded_len() / m;
        // Segments that lie wholly beyond L are 0.
        let filled = l.div_ceil(size);
        let whole = padded(x, filled * size).reshape([batch * filled, size, h]);
        let means = whole.sum_dim(1).reshape([batch, filled, h]) * (1.0 / size as f64);
        padded(means, m)
    }

    /// softmax(q·kᵀ/√d) `[B, heads, M, L]` of q `[B, M, H]` and k `[B, L, H]`.
    fn weights(&self, q: Tensor<3>, k: Tensor<3>) -> Tensor<4> {
        weights([q, k], None, self.spec())
    }

    fn spec(&self) -> AttentionSpec {
        AttentionSpec { heads: self.config.heads, causal: false }
    }

    /// Whether every position is a landmark.
    fn is_plain(&self) -> bool {
        self.padded_len() == self.config.landmarks
    }

    /// The heads' answers `[B, L, H]`, side by side, before the output projection.
    fn attend(&self, u: Tensor<3>, lengths: Option<Arc<[usize]>>) -> Tensor<3> {
        let [q, k, v] = self.projected(u, lengths.as_deref());
        let (form, heads) = (self.context.form, self.config.heads);
        let across = |qkv, keys| attend(form, qkv, [None, keys], self.spec());
        let y = if self.is_plain() {
            across([q, k, v.clone()], lengths)
        } else {
            let (q_means, k_means) = (self.landmarks(q.clone()), self.landmarks(k.clone()));
            let seen = across([q_means.clone(), k, v.clone()], lengths);
            let inverse = pseudo_inverse(self.weights(q_means, k_means.clone()));
            across([q, k_means, join(inverse.matmul(split(seen, heads)))], None)
        };
        match &self.conv {
            Some(conv) => y + join(conv.forward(split(v, heads))),
            None => y,
        }
    }
}

impl SequenceMixer for NystromLayer {
    fn check_len(&self, l: usize) -> Result<()> {
        at_least_one(l)?;
        let len = self.padded_len();
        if l <= len {
            return Ok(());
        }
        let what = format!(
            "the landmarks of Nyströmformer are spread over {len} positions, but the sequence has {l}; shorten it, or \
             train with a larger model.mixer.padded_len"
        );
        Err(Error::refused(what))
    }

    fn mix(&self, u: Tensor<3>, _prepared: &Prepared, pass: &Pass) -> Tensor<3> {
        self.out.at_positions(self.context.form, self.attend(u, pass.lengths.clone()))
    }

    fn state(&self, _batch: usize) -> Result<MixerState> {
        whole_only("the landmarks of Nyströmformer are means over the whole sequence")
    }

    /// F·A⁺·B: what the landmarks make of attention. Six iterations leave some of it below 0.
    fn portraits(&self, u: Tensor<3>, _side: Option<&Tensor<3>>) -> Vec<Portrait> {
        let [q, k, _] = self.projected(u, None);
        let weights = if self.is_plain() {
            self.weights(q, k)
        } else {
            let (q_means, k_means) = (self.landmarks(q.clone()), self.landmarks(k.clone()));
            let inverse = pseudo_inverse(self.weights(q_means.clone(), k_means.clone()));
            self.weights(q, k_means).matmul(inverse.matmul(self.weights(q_means, k)))
        };
        vec![Portrait::attention("attention", weights)]
    }

    fn past_end(&self) -> String {
        format!("its landmarks are spread over {} positions", self.padded_len())
    }
}
