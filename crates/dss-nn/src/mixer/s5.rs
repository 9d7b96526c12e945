//! S5 (Smith, Warrington, Linderman 2023): one diagonal state space with H inputs and outputs, x' = λ̄·x + B̄ u,
//! y = 2·Re(C x) + D·u, λ̄ = e^{λΔ}, B̄ = (λ̄ − 1)/λ·B (zero-order hold, Δ for each state), then GELU and a gated output
//! projection.
//!
//! Λ begins as that of HiPPO-N, in blocks. The paper draws real matrices and multiplies them by the eigenvectors V of
//! HiPPO-N. V is unitary, and the eigenvectors of a conjugate pair are orthogonal: Vᴴ times a real Gaussian matrix is a
//! complex Gaussian one with independent entries, which is what is drawn here.

use burn::module::{Module, Param};
use burn::tensor::Tensor;
use dss_format::MixerContext;
use dss_format::mixer::{MixerSettings, S5Config};
use dss_kernels::init::{self, S4dInit};
use dss_kernels::recurrent::Diagonal;

use super::modes::left_lambda;
use super::recurrent::diagonal::{diagonal_step, exponential_row, readout};
use super::recurrent::{RecurrentNet, recurrent_mixer};
use super::state_space::d_and_out;
use super::{Init, Mixer, Pass, Portrait, StableEdge, Subject, changed};
use crate::composed::complex::Complex;
use crate::error::Result;
use crate::linear::{Linear, at_positions, parameter};
use crate::random::normal;

/// An S5 layer with N states, one of each conjugate pair stored.
#[derive(Module, Debug)]
pub struct S5Layer {
    /// Λ_re: `[N/2]`, Re λ = −exp(Λ_re) = −½ at first.
    pub lambda_re: Param<Tensor<1>>,
    /// Λ_im: `[N/2]`: HiPPO-N.
    pub lambda_im: Param<Tensor<1>>,
    /// Δ_log: `[N/2]` ~ U(log Δmin, log Δmax).
    pub delta_log: Param<Tensor<1>>,
    /// B: `[N, H]`, each part ~ N(0, 1/(2H)).
    pub b: Param<Tensor<2>>,
    /// C: `[H, N]`, Re C and −Im C, each ~ N(0, 1/(2N)).
    pub c: Param<Tensor<2>>,
    /// D: `[H]` ~ N(0, 1).
    pub d: Param<Tensor<1>>,
    /// The output projection, `[H, H]` or `[2H, H]`.
    pub out: Linear,
    #[module(skip)]
    config: S5Config,
    #[module(skip)]
    pub(super) context: MixerContext,
}

impl S5Layer {
    pub(super) fn init(config: &S5Config, context: MixerContext, init: &Init) -> Result<Self> {
        let S5Config { n, blocks, delta_min: low, delta_max: high, glu } = *config;
        let (h, pairs) = (context.h, n / 2);
        let lambda = init::s4d_lambda(S4dInit::Legs, n / blocks)?.repeat(blocks);
        let delta_log = init::delta_log(pairs, low, high, &mut init.stream("delta_log"))?;
        let scaled = |name, size: f64| -> Vec<f64> {
            normal(n * h, &mut init.stream(name)).into_iter().map(|x| size * x).collect()
        };
        let (d, out) = d_and_out(glu, h, init);
        let re = lambda.iter().map(|z| (-z.re).ln()).collect();
        let im = lambda.iter().map(|z| z.im).collect();
        Ok(Self {
            lambda_re: parameter(re, [pairs], init.device),
            lambda_im: parameter(im, [pairs], init.device),
            delta_log: parameter(delta_log, [pairs], init.device),
            b: parameter(scaled("b", (0.5 / h as f64).sqrt()), [n, h], init.device),
            c: parameter(scaled("c", (0.5 / n as f64).sqrt()), [h, n], init.device),
            d,
            out,
            config: *config,
            context,
        })
    }

    /// λ and λΔ: `[N/2]`.
    fn lambda(&self) -> [Complex<1>; 2] {
        let delta = self.delta_log.val().exp();
        let lambda = Complex::new(-self.lambda_re.val().exp(), self.lambda_im.val());
        [lambda.clone(), lambda.scale(delta)]
    }
}

impl RecurrentNet for S5Layer {
    type Cell = Diagonal;

    fn cell(&self) -> Diagonal {
        Diagonal { n: self.config.n / 2 }
    }

    fn weights(&self) -> Vec<Tensor<2>> {
        let [_, zeta] = self.lambda();
        vec![exponential_row(zeta.re, zeta.im)]
    }

    /// B̄ u.
    fn input(&self, u: Tensor<3>, _first: bool) -> Tensor<3> {
        let pairs = self.config.n / 2;
        let [lambda, zeta] = self.lambda();
        let q = zeta.expm1().mul(lambda.reciprocal()).reshape([pairs, 1]);
        let b = self.b.val();
        let b = Complex::new(b.clone().narrow(0, 0, pairs), b.narrow(0, pairs, pairs)).mul(q);
        at_positions(self.context.form, u, Tensor::cat(vec![b.re, b.im], 0), None)
    }

    fn state_width(&self) -> usize {
        self.config.n
    }

    fn compose(&self, weights: &[Tensor<2>], z: Tensor<2>, x: Tensor<2>) -> Tensor<2> {
        diagonal_step(&weights[0], z, x)
    }

    fn output(&self, x: Tensor<3>, u: Tensor<3>, pass: &Pass) -> Tensor<3> {
        let y = at_positions(self.context.form, x, self.c.val() * 2.0, None);
        readout(y, u, &self.d, (&self.out, self.config.glu), pass)
    }

    fn spectra(&self) -> Vec<Portrait> {
        let eigenvalues = left_lambda(&self.lambda_re, &self.lambda_im);
        let edge = StableEdge::ImaginaryAxis;
        vec![Portrait { name: "Λ", subject: Subject::Spectrum { eigenvalues, edge } }]
    }

    fn with_step(&self, r: f64) -> Result<Mixer> {
        let mut next = self.clone();
        next.delta_log = changed(&self.delta_log, |delta| delta + r.ln());
        next.context = self.context.at_step(r);
        next.config.validate(&next.context)?;
        Ok(Mixer::S5(next))
    }
}

recurrent_mixer!(S5Layer);
