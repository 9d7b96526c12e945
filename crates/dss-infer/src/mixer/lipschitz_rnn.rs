//! LipschitzRNN: a step of dh/dt = h·A + tanh(h·W + z).

use dss_format::mixer::LipschitzRnnConfig;
use dss_kernels::recurrent::LipschitzRnn;

use super::recurrent::Net;
use crate::arrays::Arrays;
use crate::error::Result;
use crate::linear::LinearWeights;

pub(super) struct LipschitzRnnNet {
    config: LipschitzRnnConfig,
    n: usize,
    input: LinearWeights,
    /// M_A and M_W.
    matrices: [Vec<f32>; 2],
}

impl LipschitzRnnNet {
    pub(super) fn new(config: LipschitzRnnConfig, n: usize, arrays: &mut Arrays<'_>) -> Self {
        let input = arrays.linear("input");
        Self { config, n, input, matrices: [arrays.take("m_a"), arrays.take("m_w")] }
    }
}

impl Net for LipschitzRnnNet {
    type Cell = LipschitzRnn;

    fn cell(&self) -> LipschitzRnn {
        self.config.cell(self.n)
    }

    /// The transposes of M + (1 − 2β)·Mᵀ − γI.
    fn params(&self) -> Vec<f32> {
        let (n, LipschitzRnnConfig { beta, gamma, .. }) = (self.n, self.config);
        let (mirrored, gamma) = ((1.0 - 2.0 * beta) as f32, gamma as f32);
        let of_matrix = |m: &Vec<f32>| -> Vec<f32> {
            let at = |i: usize, j: usize| {
                m[j * n + i] + mirrored * m[i * n + j] - if i == j { gamma } else { 0.0 }
            };
            (0..n * n).map(|i| at(i / n, i % n)).collect()
        };
        self.matrices.iter().flat_map(of_matrix).collect()
    }

    fn input(&self) -> LinearWeights {
        self.input.clone()
    }

    fn set_step(&mut self, r: f64) -> Result<()> {
        self.config = self.config.with_step(r);
        Ok(())
    }
}
