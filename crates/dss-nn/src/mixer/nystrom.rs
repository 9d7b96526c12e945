//! Nyströmformer (Xiong et al. 2021): softmax attention through m landmarks, the means q̃, k̃ of segments of queries and
//! keys,
//!
//! y = F·A⁺·(B·v) + conv(v), F = softmax(q·k̃ᵀ), A = softmax(q̃·k̃ᵀ), B = softmax(q̃·kᵀ),
//!
//! A⁺ by six iterations from Z₀ = Aᵀ/‖A‖₁: Z ← ¼·Z·(13 − AZ·(15 − AZ·(7 − AZ))). They do not converge: they are the
//! model. Queries and keys beyond a sequence are 0, and the segments are those of one length for all sequences, so that
//! an answer does not depend on the batch.

use burn::module::{Module, Param};
use burn::tensor::Tensor;
use burn::tensor::module::conv1d;
use burn::tensor::ops::ConvOptions;
use dss_format::MixerContext;
use dss_format::mixer::NystromConfig;

use super::heads::{join, split, weights};
use super::recurrent::at_positions;
use super::state::MixerState;
use super::{Init, Pass, Portrait, SequenceMixer, at_least_one, whole_only};
use crate::composed::position_mask;
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

    /// Queries, keys and values `[B, heads, L, d]`, 0 beyond the lengths; queries and keys times d^(−¼).
    fn projected(&self, u: Tensor<3>, lengths: Option<&[usize]>) -> [Tensor<4>; 3] {
        let ([_, l, h], heads) = (u.dims(), self.config.heads);
        let mask = lengths.map(|lengths| position_mask(lengths, l, &u.device(), u.dtype()));
        let scale = (h as f64 / heads as f64).powf(-0.25);
        [(&self.q, scale), (&self.k, scale), (&self.v, 1.0)].map(|(map, scale)| {
            let x = at_positions(map, u.clone());
            let x = if scale == 1.0 { x } else { x * scale };
            let x = match &mask {
                Some(mask) => x * mask.clone(),
                None => x,
            };
            split(x, heads)
        })
    }

    /// Means `[B, heads, m, d]` of the segments of x `[B, heads, L, d]`, which is 0 up to the padded length.
    fn landmarks(&self, x: Tensor<4>) -> Tensor<4> {
        let ([batch, heads, l, d], m) = (x.dims(), self.config.landmarks);
        let size = self.padded_len() / m;
        // Segments that lie wholly beyond L are 0.
        let filled = l.div_ceil(size);
        let zeros = |count| Tensor::zeros([batch, heads, count, d], (&x.device(), x.dtype()));
        let rest = zeros(filled * size - l);
        let whole = Tensor::cat(vec![x.clone(), rest], 2);
        let sums = whole.reshape([batch, heads * filled, size, d]).sum_dim(2);
        let means = sums.reshape([batch, heads, filled, d]) * (1.0 / size as f64);
        Tensor::cat(vec![means, zeros(m - filled)], 2)
    }

    /// The three matrices F `[B, heads, L, m]`, A⁺ `[B, heads, m, m]` and B `[B, heads, m, L]`.
    fn matrices(&self, q: Tensor<4>, k: Tensor<4>, lengths: Option<&[usize]>) -> [Tensor<4>; 3] {
        let (q_means, k_means) = (self.landmarks(q.clone()), self.landmarks(k.clone()));
        let f = weights(q, k_means.clone(), None);
        let a = weights(q_means.clone(), k_means, None);
        [f, pseudo_inverse(a), weights(q_means, k, lengths)]
    }

    /// Whether every position is a landmark.
    fn is_plain(&self) -> bool {
        self.padded_len() == self.config.landmarks
    }

    /// The heads' answers `[B, L, H]`, side by side, before the output projection.
    fn attend(&self, u: Tensor<3>, lengths: Option<&[usize]>) -> Tensor<3> {
        let [q, k, v] = self.projected(u, lengths);
        let mut y = if self.is_plain() {
            weights(q, k, lengths).matmul(v.clone())
        } else {
            let [f, a, b] = self.matrices(q, k, lengths);
            f.matmul(a.matmul(b.matmul(v.clone())))
        };
        if let Some(conv) = &self.conv {
            y = y + conv.forward(v);
        }
        join(y)
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
        Err(Error::invalid("NystromLayer", what))
    }

    fn mix(&self, u: Tensor<3>, _prepared: &Prepared, pass: &Pass) -> Tensor<3> {
        at_positions(&self.out, self.attend(u, pass.lengths.as_deref()))
    }

    fn state(&self, _batch: usize) -> Result<MixerState> {
        whole_only("the landmarks of Nyströmformer are means over the whole sequence")
    }

    /// F·A⁺·B: what the landmarks make of attention. Six iterations leave some of it below 0.
    fn portraits(&self, u: Tensor<3>, _side: Option<&Tensor<3>>) -> Vec<Portrait> {
        let [q, k, _] = self.projected(u, None);
        let weights = match self.is_plain() {
            true => weights(q, k, None),
            false => {
                let [f, a, b] = self.matrices(q, k, None);
                f.matmul(a.matmul(b))
            }
        };
        vec![Portrait::attention("attention", weights)]
    }

    fn past_end(&self) -> String {
        format!("its landmarks are spread over {} positions", self.padded_len())
    }
}
