//! GRU and LSTM.

use dss_kernels::recurrent::{Gru, Lstm};

use super::recurrent::Net;
use crate::arrays::Arrays;
use crate::linear::LinearWeights;

/// What the gates get of the input, and of the state.
pub(super) struct Gates {
    input: LinearWeights,
    hidden: LinearWeights,
    n: usize,
}

impl Gates {
    pub(super) fn new(n: usize, arrays: &mut Arrays<'_>) -> Self {
        Self { input: arrays.linear("input"), hidden: arrays.linear("hidden"), n }
    }
}

pub(super) struct GruNet(pub Gates);

impl Net for GruNet {
    type Cell = Gru;

    fn cell(&self) -> Gru {
        Gru { n: self.0.n }
    }

    fn params(&self) -> Vec<f32> {
        [&self.0.hidden.weight[..], &self.0.hidden.bias].concat()
    }

    fn input(&self) -> LinearWeights {
        self.0.input.clone()
    }
}

pub(super) struct LstmNet(pub Gates);

impl Net for LstmNet {
    type Cell = Lstm;

    fn cell(&self) -> Lstm {
        Lstm { n: self.0.n }
    }

    fn params(&self) -> Vec<f32> {
        self.0.hidden.weight.clone()
    }

    /// Both biases are added to the gates.
    fn input(&self) -> LinearWeights {
        let mut input = self.0.input.clone();
        input.bias.iter_mut().zip(&self.0.hidden.bias).for_each(|(b, more)| *b += more);
        input
    }
}
