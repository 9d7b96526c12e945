//! ExpRNN: h ← modReLU(z + h·Q; b), Q = exp(A − Aᵀ).

use dss_kernels::recurrent::ExpRnn;
use dss_kernels::recurrent::orthogonal::orthogonal;

use super::recurrent::Net;
use crate::arrays::Arrays;
use crate::linear::LinearWeights;

pub(super) struct ExpRnnNet {
    input: LinearWeights,
    a: Vec<f32>,
    offset: Vec<f32>,
}

impl ExpRnnNet {
    pub(super) fn new(arrays: &mut Arrays<'_>) -> Self {
        Self { input: arrays.linear("input"), a: arrays.take("a"), offset: arrays.take("offset") }
    }
}

impl Net for ExpRnnNet {
    type Cell = ExpRnn;

    fn cell(&self) -> ExpRnn {
        ExpRnn { n: self.offset.len() }
    }

    /// Qᵀ and b.
    fn params(&self) -> Vec<f32> {
        let n = self.offset.len();
        let a: Vec<f64> = self.a.iter().map(|&x| x.into()).collect();
        let q = orthogonal(&a, n);
        let transposed = (0..n * n).map(|i| q[i % n * n + i / n] as f32);
        transposed.chain(self.offset.iter().copied()).collect()
    }

    fn input(&self) -> LinearWeights {
        self.input.clone()
    }
}
