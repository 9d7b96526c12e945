//! ODE-RNN (Rubanova et al. 2019, as run in the Neural CDE experiments): between positions dh/dt = f(h), by fixed steps
//! that are differentiated as they are; at a position h ← GRU(u, h). The first position has nothing before it to evolve.

use burn::module::Module;
use burn::tensor::Tensor;
use burn::tensor::activation::tanh;
use dss_format::MixerContext;
use dss_format::mixer::OdeRnnConfig;
use dss_kernels::recurrent::OdeRnn;

use super::gru::{GATES, gru_step};
use super::recurrent::solver::integrate;
use super::recurrent::{RecurrentNet, affine, recurrent_mixer, row};
use super::{Init, Mixer, Portrait, StableEdge};
use crate::composed::constant;
use crate::error::Result;
use crate::linear::Linear;

/// An ODE-RNN layer with a state of H units.
#[derive(Module, Debug)]
pub struct OdeRnnLayer {
    /// `[3H, H]`: what the gates of the GRU get of the input, ~ U(±1/√H).
    pub input: Linear,
    /// `[3H, H]`: what they get of the state.
    pub hidden: Linear,
    /// f: linear maps with tanh between them, ~ U(±1/√in).
    pub field: Vec<Linear>,
    #[module(skip)]
    config: OdeRnnConfig,
    #[module(skip)]
    pub(super) context: MixerContext,
}

impl OdeRnnLayer {
    pub(super) fn init(config: &OdeRnnConfig, context: MixerContext, init: &Init) -> Result<Self> {
        let h = context.h;
        let widths = config.field_widths(h);
        let maps = widths.windows(2).enumerate();
        let field = maps.map(|(i, w)| init.linear(&format!("field.{i}"), w[0], w[1])).collect();
        let map = |name| init.linear(name, h, 3 * h);
        Ok(Self { input: map("input"), hidden: map("hidden"), field, config: *config, context })
    }
}

impl RecurrentNet for OdeRnnLayer {
    type Cell = OdeRnn;

    fn cell(&self) -> OdeRnn {
        self.config.cell(self.context.h)
    }

    fn weights(&self) -> Vec<Tensor<2>> {
        let maps = || self.field.iter().chain([&self.hidden]);
        let weights = maps().map(|map| map.weight.val());
        weights.chain(maps().map(|map| row(map.bias.val()))).collect()
    }

    /// The GRU's, the time since the position before, and 1: there is an observation at every position.
    fn input(&self, u: Tensor<3>, first: bool) -> Tensor<3> {
        let z = self.input.at_positions(self.context.form, u);
        let [batch, l, _] = z.dims();
        let time = |t: usize| if first && t == 0 { 0.0 } else { self.config.step };
        let times = (0..batch * l).flat_map(|at| [time(at % l), 1.0]).collect();
        let times = constant(times, [batch, l, 2], &z.device(), z.dtype());
        Tensor::cat(vec![z, times], 2)
    }

    fn compose(&self, weights: &[Tensor<2>], z: Tensor<2>, h: Tensor<2>) -> Tensor<2> {
        let (n, last) = (self.context.h, self.field.len());
        let (weights, biases) = weights.split_at(last + 1);
        let field = |x: Tensor<2>| {
            (0..last).fold(x, |x, i| {
                let y = affine(x, &weights[i], &biases[i]);
                if i + 1 < last { tanh(y) } else { y }
            })
        };
        let delta = z.clone().narrow(1, 3 * n, 1) * (1.0 / self.config.substeps as f64);
        let evolved = (0..self.config.substeps)
            .fold(h, |h, _| integrate(self.config.solver, h, |x| x * delta.clone(), field));
        gru_step([&weights[last], &biases[last]], z.narrow(1, 0, 3 * n), evolved)
    }

    /// Of the GRU's matrices, and of the derivative of f where the state is 0.
    fn spectra(&self) -> Vec<Portrait> {
        let mut all = Portrait::spectra_of_gates(&GATES, self.hidden.weight.val());
        let mut x = row(self.field[0].bias.val());
        let mut slope = self.field[0].weight.val();
        for map in &self.field[1..] {
            let inner = tanh(x);
            let fall = inner.clone().square().neg().add_scalar(1.0).transpose();
            slope = map.weight.val().matmul(slope * fall);
            x = affine(inner, &map.weight.val(), &row(map.bias.val()));
        }
        all.extend(Portrait::spectrum("derivative of f at 0", slope, StableEdge::ImaginaryAxis));
        all
    }

    fn with_step(&self, r: f64) -> Result<Mixer> {
        let mut next = self.clone();
        next.config = self.config.with_step(r);
        next.context = self.context.at_step(r);
        Ok(Mixer::OdeRnn(next))
    }
}

recurrent_mixer!(OdeRnnLayer);
