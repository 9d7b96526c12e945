//! The gated recurrent unit (Cho et al. 2014), with PyTorch's equations and initial numbers.

use burn::module::Module;
use burn::tensor::Tensor;
use burn::tensor::activation::{sigmoid, tanh};
use dss_format::MixerContext;
use dss_format::mixer::GruConfig;
use dss_kernels::recurrent::Gru;

use super::recurrent::{RecurrentNet, affine, recurrent_mixer, row};
use super::{Init, Portrait};
use crate::error::Result;
use crate::linear::Linear;

/// The gates of a GRU, in the order of their matrices.
pub(super) const GATES: [&str; 3] = ["reset gate", "update gate", "candidate"];

/// A GRU layer with a state of H units.
#[derive(Module, Debug)]
pub struct GruLayer {
    /// `[3H, H]`: what the gates r, z and the candidate get of the input, ~ U(±1/√H) as all parameters.
    pub input: Linear,
    /// `[3H, H]`: what they get of the state.
    pub hidden: Linear,
    #[module(skip)]
    pub(super) context: MixerContext,
}

impl GruLayer {
    pub(super) fn init(_config: &GruConfig, context: MixerContext, init: &Init) -> Result<Self> {
        let h = context.h;
        let map = |name| init.linear(name, h, 3 * h);
        Ok(Self { input: map("input"), hidden: map("hidden"), context })
    }
}

/// h' = (1 − g)·c + g·h with r = σ(z₁ + a₁), g = σ(z₂ + a₂), c = tanh(z₃ + r·a₃), a = W·h + b.
pub(super) fn gru_step([weight, bias]: [&Tensor<2>; 2], z: Tensor<2>, h: Tensor<2>) -> Tensor<2> {
    let n = h.dims()[1];
    let a = affine(h.clone(), weight, bias);
    let gate = |i: usize| z.clone().narrow(1, i * n, n) + a.clone().narrow(1, i * n, n);
    let (r, g) = (sigmoid(gate(0)), sigmoid(gate(1)));
    let c = tanh(z.clone().narrow(1, 2 * n, n) + r * a.clone().narrow(1, 2 * n, n));
    c.clone() + g * (h - c)
}

impl RecurrentNet for GruLayer {
    type Cell = Gru;

    fn cell(&self) -> Gru {
        Gru { n: self.context.h }
    }

    fn weights(&self) -> Vec<Tensor<2>> {
        vec![self.hidden.weight.val(), row(self.hidden.bias.val())]
    }

    fn input(&self, u: Tensor<3>, _first: bool) -> Tensor<3> {
        self.input.at_positions(self.context.form, u)
    }

    fn compose(&self, weights: &[Tensor<2>], z: Tensor<2>, h: Tensor<2>) -> Tensor<2> {
        gru_step([&weights[0], &weights[1]], z, h)
    }

    fn spectra(&self) -> Vec<Portrait> {
        Portrait::spectra_of_gates(&GATES, self.hidden.weight.val())
    }
}

recurrent_mixer!(GruLayer);
