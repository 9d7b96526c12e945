//! LipschitzRNN (Erichson et al. 2021): dh/dt = h·A + tanh(h·W + z), z = E·u + b, in steps of ε.
//! A = β(M − Mᵀ) + (1 − β)(M + Mᵀ) − γI of M_A, W likewise of M_W: with β near 1 the symmetric part, and with it the
//! growth, is small.

use burn::module::{Module, Param};
use burn::tensor::Tensor;
use burn::tensor::activation::tanh;
use dss_format::MixerContext;
use dss_format::mixer::LipschitzRnnConfig;
use dss_kernels::recurrent::LipschitzRnn;

use super::recurrent::solver::integrate;
use super::recurrent::{RecurrentNet, recurrent_mixer};
use super::{Init, Mixer, Portrait, StableEdge};
use crate::error::Result;
use crate::linear::{Linear, parameter};
use crate::random::normal;

/// A LipschitzRNN layer with a state of H units.
#[derive(Module, Debug)]
pub struct LipschitzRnnLayer {
    /// E and b: `[H, H]`, `[H]` ~ U(±1/√H).
    pub input: Linear,
    /// M_A: `[H, H]` ~ N(0, (init_std/H)²).
    pub m_a: Param<Tensor<2>>,
    /// M_W: `[H, H]` ~ N(0, (init_std/H)²).
    pub m_w: Param<Tensor<2>>,
    #[module(skip)]
    config: LipschitzRnnConfig,
    #[module(skip)]
    pub(super) context: MixerContext,
}

impl LipschitzRnnLayer {
    pub(super) fn init(
        config: &LipschitzRnnConfig,
        context: MixerContext,
        init: &Init,
    ) -> Result<Self> {
        let h = context.h;
        let size = config.init_std / h as f64;
        let matrix = |name| {
            let values = normal(h * h, &mut init.stream(name)).into_iter().map(|x| size * x);
            parameter(values.collect(), [h, h], init.device)
        };
        let (m_a, m_w) = (matrix("m_a"), matrix("m_w"));
        Ok(Self { input: init.linear("input", h, h), m_a, m_w, config: *config, context })
    }

    /// The transpose of β(M − Mᵀ) + (1 − β)(M + Mᵀ) − γI = M + (1 − 2β)·Mᵀ − γI.
    fn transposed(&self, m: &Param<Tensor<2>>) -> Tensor<2> {
        let LipschitzRnnConfig { beta, gamma, .. } = self.config;
        let m = m.val();
        let unit: Tensor<2> = Tensor::eye(m.dims()[0], &m.device());
        let unit = unit.cast(m.dtype());
        m.clone().transpose() + m * (1.0 - 2.0 * beta) - unit * gamma
    }
}

impl RecurrentNet for LipschitzRnnLayer {
    type Cell = LipschitzRnn;

    fn cell(&self) -> LipschitzRnn {
        self.config.cell(self.context.h)
    }

    fn weights(&self) -> Vec<Tensor<2>> {
        vec![self.transposed(&self.m_a), self.transposed(&self.m_w)]
    }

    fn input(&self, u: Tensor<3>, _first: bool) -> Tensor<3> {
        self.input.at_positions(self.context.form, u)
    }

    fn compose(&self, weights: &[Tensor<2>], z: Tensor<2>, h: Tensor<2>) -> Tensor<2> {
        let slope = |h: Tensor<2>| {
            let inner = h.clone().matmul(weights[1].clone().transpose()) + z.clone();
            h.matmul(weights[0].clone().transpose()) + tanh(inner)
        };
        integrate(self.config.solver, h, |x| x * self.config.step, slope)
    }

    /// Of A, and of A + W: the derivative of the slope where the state and its input are 0.
    fn spectra(&self) -> Vec<Portrait> {
        let [a, w] = [&self.m_a, &self.m_w].map(|m| self.transposed(m));
        let edge = StableEdge::ImaginaryAxis;
        let spectra =
            [("A", a.clone()), ("A + W", a + w)].map(|(name, x)| Portrait::spectrum(name, x, edge));
        spectra.into_iter().flatten().collect()
    }

    fn with_step(&self, r: f64) -> Result<Mixer> {
        let mut next = self.clone();
        next.config = self.config.with_step(r);
        next.context = self.context.at_step(r);
        Ok(Mixer::LipschitzRnn(next))
    }
}

recurrent_mixer!(LipschitzRnnLayer);
