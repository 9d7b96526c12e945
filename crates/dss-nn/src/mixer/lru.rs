//! The linear recurrent unit (Orvieto et al. 2023): x' = λ·x + γ·(B u), y = Re(C x) + D·u, then GELU and a gated output
//! projection. |λ| = exp(−exp(ν)) < 1 whatever ν is.

use burn::module::{Module, Param};
use burn::tensor::Tensor;
use dss_format::MixerContext;
use dss_format::mixer::LruConfig;
use dss_kernels::recurrent::Diagonal;
use rand::RngExt;

use super::modes::numbers;
use super::recurrent::diagonal::{diagonal_step, exponential_row, readout};
use super::recurrent::{RecurrentNet, recurrent_mixer};
use super::state_space::d_and_out;
use super::{Init, Pass, Portrait, StableEdge, Subject};
use crate::error::Result;
use crate::linear::{Linear, at_positions, parameter};
use crate::random::normal;

/// An LRU layer with N complex states.
#[derive(Module, Debug)]
pub struct LruLayer {
    /// ν_log: `[N]`; |λ|² is uniform between r_min² and r_max² at first.
    pub nu_log: Param<Tensor<1>>,
    /// θ_log: `[N]`; the angle of λ is uniform up to max_phase at first.
    pub theta_log: Param<Tensor<1>>,
    /// log γ: `[N]`, γ = √(1 − |λ|²) at first.
    pub gamma_log: Param<Tensor<1>>,
    /// B: `[2N, H]`, each part ~ N(0, 1/(2H)).
    pub b: Param<Tensor<2>>,
    /// C: `[H, 2N]`, Re C and −Im C, each ~ N(0, 1/N).
    pub c: Param<Tensor<2>>,
    /// D: `[H]` ~ N(0, 1).
    pub d: Param<Tensor<1>>,
    /// The output projection, `[H, H]` or `[2H, H]`.
    pub out: Linear,
    #[module(skip)]
    config: LruConfig,
    #[module(skip)]
    pub(super) context: MixerContext,
}

impl LruLayer {
    pub(super) fn init(config: &LruConfig, context: MixerContext, init: &Init) -> Result<Self> {
        let LruConfig { n, r_min, r_max, max_phase, glu } = *config;
        let h = context.h;
        let uniform = |name| -> Vec<f64> {
            let mut rng = init.stream(name);
            // Above 0, which has no logarithm.
            (0..n).map(|_| 1.0 - rng.random::<f64>()).collect()
        };
        let square = |u: f64| u * (r_max * r_max - r_min * r_min) + r_min * r_min;
        let squares: Vec<f64> = uniform("nu_log").into_iter().map(square).collect();
        let nu_log = squares.iter().map(|square| (-0.5 * square.ln()).ln()).collect();
        let gamma_log = squares.iter().map(|square| 0.5 * (1.0 - square).ln()).collect();
        let theta_log = uniform("theta_log").into_iter().map(|u| (max_phase * u).ln()).collect();
        let scaled = |name, count: usize, size: f64| -> Vec<f64> {
            normal(count, &mut init.stream(name)).into_iter().map(|x| size * x).collect()
        };
        let b = scaled("b", 2 * n * h, (0.5 / h as f64).sqrt());
        let c = scaled("c", 2 * n * h, (1.0 / n as f64).sqrt());
        let (d, out) = d_and_out(glu, h, init);
        Ok(Self {
            nu_log: parameter(nu_log, [n], init.device),
            theta_log: parameter(theta_log, [n], init.device),
            gamma_log: parameter(gamma_log, [n], init.device),
            b: parameter(b, [2 * n, h], init.device),
            c: parameter(c, [h, 2 * n], init.device),
            d,
            out,
            config: *config,
            context,
        })
    }
}

impl RecurrentNet for LruLayer {
    type Cell = Diagonal;

    fn cell(&self) -> Diagonal {
        Diagonal { n: self.config.n }
    }

    fn weights(&self) -> Vec<Tensor<2>> {
        vec![exponential_row(-self.nu_log.val().exp(), self.theta_log.val().exp())]
    }

    fn input(&self, u: Tensor<3>, _first: bool) -> Tensor<3> {
        let gamma = self.gamma_log.val().exp();
        let gamma: Tensor<1> = Tensor::cat(vec![gamma.clone(), gamma], 0);
        at_positions(self.context.form, u, self.b.val() * gamma.unsqueeze_dim(1), None)
    }

    fn state_width(&self) -> usize {
        2 * self.config.n
    }

    fn compose(&self, weights: &[Tensor<2>], z: Tensor<2>, x: Tensor<2>) -> Tensor<2> {
        diagonal_step(&weights[0], z, x)
    }

    fn output(&self, x: Tensor<3>, u: Tensor<3>, pass: &Pass) -> Tensor<3> {
        let y = at_positions(self.context.form, x, self.c.val(), None);
        readout(y, u, &self.d, (&self.out, self.config.glu), pass)
    }

    fn spectra(&self) -> Vec<Portrait> {
        let pairs = numbers(&self.nu_log).into_iter().zip(numbers(&self.theta_log));
        let eigenvalues = pairs.map(|(nu, theta)| {
            let (size, angle) = ((-nu.exp()).exp(), theta.exp());
            [size * angle.cos(), size * angle.sin()]
        });
        let (eigenvalues, edge) = (eigenvalues.collect(), StableEdge::UnitCircle);
        vec![Portrait { name: "λ", subject: Subject::Spectrum { eigenvalues, edge } }]
    }
}

recurrent_mixer!(LruLayer);
