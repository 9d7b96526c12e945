//! Long short-term memory (Hochreiter & Schmidhuber 1997), with PyTorch's equations and initial numbers.

use burn::module::Module;
use burn::tensor::Tensor;
use burn::tensor::activation::{sigmoid, tanh};
use dss_format::MixerContext;
use dss_format::mixer::LstmConfig;
use dss_kernels::recurrent::Lstm;

use super::recurrent::{RecurrentNet, recurrent_mixer};
use super::{Init, Portrait};
use crate::error::Result;
use crate::linear::{Linear, at_positions};

/// An LSTM layer with a state of H units and H cells.
#[derive(Module, Debug)]
pub struct LstmLayer {
    /// `[4H, H]`: what the gates i, f, g and o get of the input, ~ U(±1/√H) as all parameters.
    pub input: Linear,
    /// `[4H, H]`: what they get of the state.
    pub hidden: Linear,
    #[module(skip)]
    pub(super) context: MixerContext,
}

impl LstmLayer {
    pub(super) fn init(_config: &LstmConfig, context: MixerContext, init: &Init) -> Result<Self> {
        let h = context.h;
        let map = |name| init.linear(name, h, 4 * h);
        Ok(Self { input: map("input"), hidden: map("hidden"), context })
    }
}

impl RecurrentNet for LstmLayer {
    type Cell = Lstm;

    fn cell(&self) -> Lstm {
        Lstm { n: self.context.h }
    }

    fn weights(&self) -> Vec<Tensor<2>> {
        vec![self.hidden.weight.val()]
    }

    fn input(&self, u: Tensor<3>, _first: bool) -> Tensor<3> {
        let bias = self.input.bias.val() + self.hidden.bias.val();
        at_positions(self.context.form, u, self.input.weight.val(), Some(bias))
    }

    fn state_width(&self) -> usize {
        2 * self.context.h
    }

    /// c' = f·c + i·g, h' = o·tanh(c').
    fn compose(&self, weights: &[Tensor<2>], z: Tensor<2>, state: Tensor<2>) -> Tensor<2> {
        let n = self.context.h;
        let part = |x: &Tensor<2>, i: usize| x.clone().narrow(1, i * n, n);
        let a = z + part(&state, 0).matmul(weights[0].clone().transpose());
        let gate = |i: usize| sigmoid(part(&a, i));
        let c = gate(1) * part(&state, 1) + gate(0) * tanh(part(&a, 2));
        Tensor::cat(vec![gate(3) * tanh(c.clone()), c], 1)
    }

    fn spectra(&self) -> Vec<Portrait> {
        let gates = ["input gate", "forget gate", "cell", "output gate"];
        Portrait::spectra_of_gates(&gates, self.hidden.weight.val())
    }
}

recurrent_mixer!(LstmLayer);
