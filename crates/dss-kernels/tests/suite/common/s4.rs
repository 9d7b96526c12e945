//! S4 layers for the tests.

use crate::common::{Golden, to_f32};
use dss_kernels::s4::{KernelConfig, ParamGrads, Params, correct_length};
use dss_kernels::{C64, init};
use rand::{Rng, RngExt};

/// Owned parameters.
#[derive(Debug, Clone)]
pub struct Owned<T> {
    pub lambda_re: Vec<T>,
    pub lambda_im: Vec<T>,
    pub p: Vec<T>,
    pub b: Vec<T>,
    pub c: Vec<T>,
    pub delta_log: Vec<T>,
}

/// Names of the tensors, in the order of [`Owned::tensors`].
pub const TENSORS: [&str; 6] = ["lambda_re", "lambda_im", "p", "b", "c", "delta_log"];

impl Owned<f64> {
    pub fn golden(golden: &Golden) -> Self {
        let get = |name: &str| golden.get(name).to_vec();
        Self {
            lambda_re: get("log_w_real"),
            lambda_im: get("w_imag"),
            p: get("P"),
            b: get("B"),
            c: get("C"),
            delta_log: get("log_dt"),
        }
    }

    /// HiPPO-LegS moved a little, as in the middle of a training; C is not corrected.
    pub fn random(config: &KernelConfig, rng: &mut impl Rng) -> Self {
        let legs = init::nplr_legs(config.n).unwrap();
        let mut moved = |x: f64| x * rng.random_range(0.8..1.25);
        let each = |x: &[C64]| x.repeat(config.systems).into_iter();
        let lambda_re = each(&legs.lambda).map(|z| moved(-z.re).ln()).collect();
        let lambda_im = each(&legs.lambda).map(|z| moved(z.im)).collect();
        let p = each(&legs.p).flat_map(|z| [moved(z.re), moved(0.3 * z.re)]).collect();
        let b = each(&legs.b).flat_map(|z| [moved(z.re), moved(-0.2 * z.re)]).collect();
        let c = init::s4_c(config.channels, config.h, config.pairs(), rng);
        let delta_log = init::delta_log(config.h, init::DT_MIN, init::DT_MAX, rng).unwrap();
        Self { lambda_re, lambda_im, p, b, c, delta_log }
    }

    /// The same with C̃.
    pub fn corrected(mut self, config: &KernelConfig) -> Self {
        self.c = correct_length(config, &self.params()).unwrap();
        self
    }

    pub fn to_f32(&self) -> Owned<f32> {
        self.map(to_f32)
    }
}

impl<T: Copy> Owned<T> {
    pub fn map<U>(&self, cast: impl Fn(&[T]) -> Vec<U>) -> Owned<U> {
        Owned {
            lambda_re: cast(&self.lambda_re),
            lambda_im: cast(&self.lambda_im),
            p: cast(&self.p),
            b: cast(&self.b),
            c: cast(&self.c),
            delta_log: cast(&self.delta_log),
        }
    }

    pub fn params(&self) -> Params<'_, T> {
        Params {
            lambda_re: &self.lambda_re,
            lambda_im: &self.lambda_im,
            p: &self.p,
            b: &self.b,
            c: &self.c,
            delta_log: &self.delta_log,
        }
    }

    /// These tensors as the place for gradients.
    pub fn grads(&mut self) -> ParamGrads<'_, T> {
        ParamGrads {
            lambda_re: &mut self.lambda_re,
            lambda_im: &mut self.lambda_im,
            p: &mut self.p,
            b: &mut self.b,
            c: &mut self.c,
            delta_log: &mut self.delta_log,
        }
    }

    pub fn tensors(&mut self) -> [&mut Vec<T>; 6] {
        let Self { lambda_re, lambda_im, p, b, c, delta_log } = self;
        [lambda_re, lambda_im, p, b, c, delta_log]
    }
}
