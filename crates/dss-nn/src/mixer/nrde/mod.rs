//! Neural rough differential equations (Morrill et al. 2021): the state at the end of a window of a path is that of
//! dh/dτ = f(h)·ℓ after a time of 1, ℓ the window's log-signature; h₀ = W·x₀ + b.
//!
//! The path is time, from 0 to 1 over the training length, and a linear map of the input. A position has the state at
//! the end of the last window that is complete there; a layer that looks ahead (bidirectional) has that of the window
//! the position is in, where a path stays at its last true point.

mod log_signature;
mod state;

use burn::module::Module;
use burn::tensor::activation::{relu, tanh};
use burn::tensor::{Int, Tensor, TensorData};
use dss_format::MixerContext;
use dss_format::mixer::NrdeConfig;

use super::recurrent::solver::integrate;
use super::recurrent::{affine, fused, row};
use super::state::MixerState;
use super::{Init, Pass, Portrait, SequenceMixer, StableEdge, check_forwards};
use crate::composed::constant;
use crate::dispatch;
use crate::error::Result;
use crate::linear::Linear;
use crate::prepared::Prepared;
use state::NrdeState;

pub use log_signature::log_signatures;

/// An NRDE layer with a state of H units.
#[derive(Module, Debug)]
pub struct NrdeLayer {
    /// `[P, H]`: the path's channels but for time.
    pub path: Linear,
    /// `[H, P + 1]`: the state at the first point.
    pub initial: Linear,
    /// f: maps to the hidden width, within it (shared by the hidden layers) and to `[H, dim]`.
    pub field: Vec<Linear>,
    #[module(skip)]
    config: NrdeConfig,
    #[module(skip)]
    pub(super) context: MixerContext,
}

impl NrdeLayer {
    pub(super) fn init(config: &NrdeConfig, context: MixerContext, init: &Init) -> Result<Self> {
        let (h, width) = (context.h, config.width);
        let sizes = [(h, width), (width, width), (width, h * config.dim())];
        let field = sizes.into_iter().enumerate();
        let field = field.map(|(i, (a, b))| init.linear(&format!("field.{i}"), a, b)).collect();
        Ok(Self {
            path: init.linear("path", h, config.path),
            initial: init.linear("initial", config.path + 1, h),
            field,
            config: *config,
            context,
        })
    }

    /// The matrices of f, then its biases.
    fn weights(&self) -> Vec<Tensor<2>> {
        let weights = self.field.iter().map(|map| map.weight.val());
        weights.chain(self.field.iter().map(|map| row(map.bias.val()))).collect()
    }

    /// Points `[B, L, P + 1]` of the path from position `first` on.
    fn points(&self, u: Tensor<3>, first: usize) -> Tensor<3> {
        let [batch, l, _] = u.dims();
        let span = (self.context.len - 1).max(1) as f64;
        let times = (0..batch * l).map(|at| (first + at % l) as f64 / span).collect();
        let times = constant(times, [batch, l, 1], &u.device(), u.dtype());
        Tensor::cat(vec![times, self.path.at_positions(self.context.form, u)], 2)
    }

    /// f(h)·ℓ `[B, H]` of h `[B, H]` and ℓ `[B, dim]`.
    fn slope(&self, weights: &[Tensor<2>], ell: &Tensor<2>, h: Tensor<2>) -> Tensor<2> {
        let ([batch, n], dim) = (h.dims(), self.config.dim());
        let (weights, biases) = weights.split_at(3);
        let layers = self.config.field_layers;
        let mut x = h;
        for i in 0..layers {
            let map = i.min(1);
            x = affine(x, &weights[map], &biases[map]);
            x = if i + 1 < layers { relu(x) } else { tanh(x) };
        }
        let f = affine(x, &weights[2], &biases[2]).reshape([batch, n, dim]);
        (f * ell.clone().unsqueeze_dim(1)).sum_dim(2).squeeze_dim(2)
    }

    /// The derivative `[H, H]` of f(h)·ℓ at h = 0, ℓ `[1, dim]`.
    fn jacobian(&self, ell: Tensor<2>) -> Tensor<2> {
        let ([_, dim], n, width) = (ell.dims(), self.context.h, self.config.width);
        let layers = self.config.field_layers;
        let mut x = row(self.field[0].bias.val()); // [1, w]
        let mut inner = self.field[0].weight.val(); // ∂x/∂h: [w, H]
        for i in 0..layers {
            if i > 0 {
                let map = &self.field[1];
                x = affine(x, &map.weight.val(), &row(map.bias.val()));
                inner = map.weight.val().matmul(inner);
            }
            let fall = if i + 1 < layers {
                let positive = x.clone().greater_scalar(0.0);
                x = relu(x);
                x.zeros_like().mask_fill(positive, 1.0)
            } else {
                x = tanh(x);
                x.clone().square().neg().add_scalar(1.0)
            };
            inner = inner * fall.transpose();
        }
        // f(h)·ℓ reads the last map's rows, dim of them for each unit, in the shares ℓ.
        let last = self.field[2].weight.val().reshape([n, dim, width]);
        let last = (last * ell.unsqueeze_dim(2)).sum_dim(1).reshape([n, width]);
        last.matmul(inner)
    }

    /// The state after one window: ℓ `[B, dim]`, h `[B, H]`.
    fn compose(&self, weights: &[Tensor<2>], ell: Tensor<2>, h: Tensor<2>) -> Tensor<2> {
        let slope = |h: Tensor<2>| self.slope(weights, &ell, h);
        let share = 1.0 / self.config.substeps as f64;
        (0..self.config.substeps)
            .fold(h, |h, _| integrate(self.config.solver, h, |x| x * share, slope))
    }

    /// The states `[B, W, H]` at the ends of the windows with log-signatures z `[B, W, dim]`.
    fn states(&self, z: Tensor<3>, start: Tensor<2>) -> Tensor<3> {
        let weights = self.weights();
        if dispatch::is_fused(self.context.form, &z) {
            return fused::run(self.config.cell(self.context.h), z, &weights, Some(start));
        }
        let windows = z.dims()[1];
        let mut h = start;
        let all = (0..windows).map(|i| {
            h = self.compose(&weights, z.clone().narrow(1, i, 1).squeeze_dim(1), h.clone());
            h.clone()
        });
        Tensor::stack(all.collect(), 1)
    }
}

impl SequenceMixer for NrdeLayer {
    fn mix(&self, u: Tensor<3>, _prepared: &Prepared, pass: &Pass) -> Tensor<3> {
        let ([batch, l, h], window) = (u.dims(), self.config.window);
        let ahead = self.context.bidirectional;
        let x = self.points(u, 0);
        let start = self.initial.forward(x.clone().narrow(1, 0, 1).squeeze_dim(1));
        let windows = if ahead { (l - 1).div_ceil(window) } else { (l - 1) / window };
        if windows == 0 {
            return pass.dropped(start.unsqueeze_dim::<3>(1).expand([batch, l, h]), 0);
        }
        let mut d = x.clone().narrow(1, 1, l - 1) - x.narrow(1, 0, l - 1);
        if let Some(lengths) = &pass.lengths {
            let steps: Vec<usize> = lengths.iter().map(|len| len - 1).collect();
            d = d.clone() * crate::composed::position_mask(&steps, l - 1, &d.device(), d.dtype());
        }
        let (c, steps) = (self.config.path + 1, windows * window);
        let d = match steps < l {
            true => d.narrow(1, 0, steps),
            false => {
                let rest = Tensor::zeros([batch, steps - (l - 1), c], (&d.device(), d.dtype()));
                Tensor::cat(vec![d, rest], 1)
            }
        };
        let states = self.states(log_signatures(d, window, self.config.depth), start.clone());
        let states = Tensor::cat(vec![start.unsqueeze_dim(1), states], 1);
        let at = |t: usize| if ahead { t.div_ceil(window) } else { t / window };
        let at: Vec<i64> = (0..l).map(|t| at(t) as i64).collect();
        let at = Tensor::<1, Int>::from_data(TensorData::from(&at[..]), &states.device());
        pass.dropped(states.select(1, at), 0)
    }

    fn state(&self, batch: usize) -> Result<MixerState> {
        check_forwards(&self.context)?;
        let state = NrdeState::new(self.clone());
        Ok(MixerState::new(Box::new(state), [batch, self.context.h]))
    }

    /// The derivative of f(h)·ℓ at 0 over the training length: where only time passes, and in windows like the example's.
    fn portraits(&self, u: Tensor<3>, _side: Option<&Tensor<3>>) -> Vec<Portrait> {
        let NrdeConfig { window, depth, .. } = self.config;
        let windows = (self.context.len - 1) as f64 / window as f64;
        let mut time = vec![0.0; self.config.dim()];
        time[0] = 1.0;
        let time = constant(time, [1, self.config.dim()], &u.device(), u.dtype());
        let mut paths = vec![("f at 0, time alone", time)];
        let steps = (u.dims()[1] - 1) / window * window;
        if steps > 0 {
            let x = self.points(u, 0);
            let d = x.clone().narrow(1, 1, steps) - x.narrow(1, 0, steps);
            let mean = log_signatures(d, window, depth).mean_dim(1).squeeze_dim(1);
            paths.push(("f at 0, whole path", mean * windows));
        }
        let spectrum =
            |(name, ell)| Portrait::spectrum(name, self.jacobian(ell), StableEdge::ImaginaryAxis);
        paths.into_iter().filter_map(spectrum).collect()
    }

    fn past_end(&self) -> String {
        "a differential equation does not depend on the length".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{DType, Device, FloatDType};
    use dss_format::{InputKind, ModelConfig, ModelIo, OutputKind};

    use super::*;
    use crate::Model;
    use crate::mixer::Mixer;
    use crate::random::{normal, stream};

    #[test]
    fn the_jacobian_is_that_of_the_slope() {
        let (h, device) = (4, Device::flex());
        let (input, output) =
            (InputKind::Values { channels: 1 }, OutputKind::Sequence { outputs: 2 });
        let io = ModelIo { input, output, len: 9 };
        for (depth, field_layers) in [(1, 2), (2, 3)] {
            let config =
                NrdeConfig { path: 2, depth, width: 6, field_layers, ..Default::default() };
            let model =
                ModelConfig { h, layers: 1, mixer: config.into(), ..ModelConfig::default() };
            let model = Model::new(&model, &io, 3, &device).unwrap().cast(FloatDType::F64);
            let Mixer::Nrde(layer) = &model.layers[0].mixer else { panic!("{model:?}") };
            let numbers = normal(config.dim(), &mut stream(1, "ell"));
            let ell: Tensor<2> = constant(numbers, [1, config.dim()], &device, DType::F64);
            let found = layer.jacobian(ell.clone());
            let weights = layer.weights();
            for j in 0..h {
                let at = |x: f64| {
                    let mut state = vec![0.0; h];
                    state[j] = x;
                    layer.slope(&weights, &ell, constant(state, [1, h], &device, DType::F64))
                };
                let step = 1e-6;
                let known = (at(step) - at(-step)) / (2.0 * step);
                let column = found.clone().narrow(1, j, 1).transpose();
                let error: f64 = (column - known).abs().max().into_scalar();
                assert!(error < 1e-8, "depth {depth}, column {j}: {error:e}");
            }
        }
    }
}
