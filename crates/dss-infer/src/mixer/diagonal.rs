//! LRU and S5: a diagonal recurrence between two matrices.

use dss_format::mixer::{LruConfig, S5Config};
use dss_kernels::C64;
use dss_kernels::recurrent::Diagonal;

use super::recurrent::{Net, Readout, d_and_out};
use crate::arrays::Arrays;
use crate::error::Result;
use crate::linear::LinearWeights;

/// What both have.
struct Matrices {
    b: Vec<f32>,
    c: Vec<f32>,
    d: Vec<f32>,
    out: LinearWeights,
    glu: bool,
}

impl Matrices {
    fn new(glu: bool, arrays: &mut Arrays<'_>) -> Self {
        let (b, c) = (arrays.take("b"), arrays.take("c"));
        let (d, out) = d_and_out(arrays);
        Self { b, c, d, out, glu }
    }

    /// The rows of factor·B, real parts first, as a map without bias.
    fn scaled_b(&self, factors: &[C64]) -> LinearWeights {
        let (n, h) = (factors.len(), self.d.len());
        let (re, im) = self.b.split_at(n * h);
        let product = |i: usize| {
            let b = C64::new(re[i].into(), im[i].into()) * factors[i / h];
            (b.re as f32, b.im as f32)
        };
        let (re, im): (Vec<_>, Vec<_>) = (0..n * h).map(product).unzip();
        LinearWeights { weight: [re, im].concat(), bias: vec![0.0; 2 * n] }
    }

    fn readout(&self, scale: f32) -> Result<Option<Readout>> {
        let c: Vec<f32> = self.c.iter().map(|c| scale * c).collect();
        Readout::new(&c, &self.d, &self.out, self.glu).map(Some)
    }
}

/// e^ζ: all real parts, then all imaginary ones.
fn exponentials(zeta: &[C64]) -> Vec<f32> {
    let powers = || zeta.iter().map(|z| z.exp());
    powers().map(|z| z.re as f32).chain(powers().map(|z| z.im as f32)).collect()
}

pub(super) struct LruNet {
    /// ln λ.
    zeta: Vec<C64>,
    gamma: Vec<C64>,
    matrices: Matrices,
}

impl LruNet {
    pub(super) fn new(config: LruConfig, arrays: &mut Arrays<'_>) -> Self {
        let mut exp = |name: &str| arrays.take(name).into_iter().map(|x| f64::from(x).exp());
        let (nu, theta): (Vec<f64>, Vec<f64>) =
            (exp("nu_log").collect(), exp("theta_log").collect());
        let gamma = exp("gamma_log").map(C64::from).collect();
        let zeta = nu.iter().zip(theta).map(|(nu, theta)| C64::new(-nu, theta)).collect();
        Self { zeta, gamma, matrices: Matrices::new(config.glu, arrays) }
    }
}

impl Net for LruNet {
    type Cell = Diagonal;

    fn cell(&self) -> Diagonal {
        Diagonal { n: self.zeta.len() }
    }

    fn params(&self) -> Vec<f32> {
        exponentials(&self.zeta)
    }

    fn input(&self) -> LinearWeights {
        self.matrices.scaled_b(&self.gamma)
    }

    fn readout(&self) -> Result<Option<Readout>> {
        self.matrices.readout(1.0)
    }
}

pub(super) struct S5Net {
    lambda: Vec<C64>,
    delta: Vec<f64>,
    matrices: Matrices,
}

impl S5Net {
    pub(super) fn new(config: S5Config, arrays: &mut Arrays<'_>) -> Self {
        let (re, im) = (arrays.take("lambda_re"), arrays.take("lambda_im"));
        let lambda = re.iter().zip(&im).map(|(&re, &im)| C64::new(-f64::from(re).exp(), im.into()));
        let delta = arrays.take("delta_log").into_iter().map(|x| f64::from(x).exp());
        let (lambda, delta) = (lambda.collect(), delta.collect());
        Self { lambda, delta, matrices: Matrices::new(config.glu, arrays) }
    }

    /// λΔ.
    fn zeta(&self) -> Vec<C64> {
        self.lambda.iter().zip(&self.delta).map(|(lambda, delta)| lambda * delta).collect()
    }
}

impl Net for S5Net {
    type Cell = Diagonal;

    fn cell(&self) -> Diagonal {
        Diagonal { n: self.lambda.len() }
    }

    fn params(&self) -> Vec<f32> {
        exponentials(&self.zeta())
    }

    fn input(&self) -> LinearWeights {
        let factors = self.zeta().into_iter().zip(&self.lambda);
        let factors: Vec<C64> = factors.map(|(zeta, lambda)| (zeta.exp() - 1.0) / lambda).collect();
        self.matrices.scaled_b(&factors)
    }

    fn readout(&self) -> Result<Option<Readout>> {
        self.matrices.readout(2.0)
    }

    fn set_step(&mut self, r: f64) -> Result<()> {
        self.delta.iter_mut().for_each(|delta| *delta *= r);
        Ok(())
    }
}
