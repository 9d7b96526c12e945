//! ExpRNN (Lezcano-Casado & Martínez-Rubio 2019): h' = modReLU(W·u + c + h·Q; b), Q = exp(A − Aᵀ) orthogonal, A strictly
//! upper triangular. The base of the parameterisation is I throughout (the static form).

mod orthogonal;

use std::f64::consts::{FRAC_PI_2, PI};

use burn::module::{Module, Param};
use burn::tensor::Tensor;
use burn::tensor::activation::relu;
use dss_format::MixerContext;
use dss_format::mixer::{ExpRnnConfig, RotationInit};
use dss_kernels::recurrent::ExpRnn;
use rand::RngExt;

use super::recurrent::{RecurrentNet, recurrent_mixer, row};
use super::{Init, Portrait, StableEdge};
use crate::dispatch;
use crate::error::Result;
use crate::linear::{Linear, parameter};
use crate::random::{normal, uniform};

/// An ExpRNN layer with a state of H units.
#[derive(Module, Debug)]
pub struct ExpRnnLayer {
    /// `[H, H]`: weight ~ N(0, 2/H), bias 0 at first.
    pub input: Linear,
    /// A: `[H, H]`, of which the strict upper triangle counts; rotations of pairs of units at first.
    pub a: Param<Tensor<2>>,
    /// b: `[H]` ~ U(±0.01).
    pub offset: Param<Tensor<1>>,
    #[module(skip)]
    pub(super) context: MixerContext,
}

impl ExpRnnLayer {
    pub(super) fn init(config: &ExpRnnConfig, context: MixerContext, init: &Init) -> Result<Self> {
        let h = context.h;
        let size = (2.0 / h as f64).sqrt();
        let weight = normal(h * h, &mut init.stream("input.weight"));
        let weight = weight.into_iter().map(|x| size * x).collect();
        let mut rng = init.stream("a");
        let mut angle = || {
            let s: f64 = rng.random();
            match config.init {
                RotationInit::Henaff => PI * (2.0 * s - 1.0),
                // √((1 − cos s)/(1 + cos s)) = tan(s/2)
                RotationInit::Cayley => -(0.5 * FRAC_PI_2 * s).tan(),
            }
        };
        let mut a = vec![0.0; h * h];
        for i in (1..h).step_by(2) {
            a[(i - 1) * h + i] = angle();
        }
        Ok(Self {
            input: Linear {
                weight: parameter(weight, [h, h], init.device),
                bias: parameter(vec![0.0; h], [h], init.device),
            },
            a: parameter(a, [h, h], init.device),
            offset: parameter(uniform(h, 0.01, &mut init.stream("offset")), [h], init.device),
            context,
        })
    }

    /// Qᵀ: `[H, H]`.
    fn transposed_q(&self) -> Tensor<2> {
        let a = self.a.val();
        match dispatch::is_fused(self.context.form, &a) {
            true => orthogonal::fused(a),
            false => orthogonal::composed(a),
        }
    }
}

impl RecurrentNet for ExpRnnLayer {
    type Cell = ExpRnn;

    fn cell(&self) -> ExpRnn {
        ExpRnn { n: self.context.h }
    }

    fn weights(&self) -> Vec<Tensor<2>> {
        vec![self.transposed_q(), row(self.offset.val())]
    }

    fn input(&self, u: Tensor<3>, _first: bool) -> Tensor<3> {
        self.input.at_positions(self.context.form, u)
    }

    fn compose(&self, weights: &[Tensor<2>], z: Tensor<2>, h: Tensor<2>) -> Tensor<2> {
        let x = z + h.matmul(weights[0].clone().transpose());
        x.clone().sign().detach() * relu(x.abs() + weights[1].clone())
    }

    fn spectra(&self) -> Vec<Portrait> {
        Portrait::spectrum("Q", self.transposed_q(), StableEdge::UnitCircle).into_iter().collect()
    }
}

recurrent_mixer!(ExpRnnLayer);
