//! ODE-RNN: a differential equation between positions, a GRU at each.

use dss_format::mixer::OdeRnnConfig;
use dss_kernels::recurrent::OdeRnn;

use super::recurrent::Net;
use crate::arrays::Arrays;
use crate::error::Result;
use crate::linear::LinearWeights;

pub(super) struct OdeRnnNet {
    config: OdeRnnConfig,
    n: usize,
    input: LinearWeights,
    /// The maps of the field, then that of the GRU's state.
    maps: Vec<LinearWeights>,
}

impl OdeRnnNet {
    pub(super) fn new(config: OdeRnnConfig, n: usize, arrays: &mut Arrays<'_>) -> Self {
        let input = arrays.linear("input");
        let names = (0..=config.field_layers).map(|i| format!("field.{i}"));
        let names = names.chain(["hidden".to_owned()]);
        Self { config, n, input, maps: names.map(|name| arrays.linear(&name)).collect() }
    }
}

impl Net for OdeRnnNet {
    type Cell = OdeRnn;

    fn cell(&self) -> OdeRnn {
        self.config.cell(self.n)
    }

    fn params(&self) -> Vec<f32> {
        let weights = self.maps.iter().flat_map(|map| &map.weight);
        weights.chain(self.maps.iter().flat_map(|map| &map.bias)).copied().collect()
    }

    fn input(&self) -> LinearWeights {
        self.input.clone()
    }

    /// The time since the position before, and 1: there is an observation.
    fn constants(&self) -> [Vec<f32>; 2] {
        [vec![0.0, 1.0], vec![self.config.step as f32, 1.0]]
    }

    fn set_step(&mut self, r: f64) -> Result<()> {
        self.config = self.config.with_step(r);
        Ok(())
    }
}
