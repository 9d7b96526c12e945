//! Linear maps at every position, alone and in pairs.

use dss_kernels::frozen::{self, Linear};

use crate::error::Result;

/// W `[out, in]` and b `[out]` of a linear map.
#[derive(Clone)]
pub(crate) struct LinearWeights {
    pub weight: Vec<f32>,
    pub bias: Vec<f32>,
}

/// Buffers of the passes over rows.
pub(crate) struct RowBuffers {
    pub scratch: frozen::Scratch<f32>,
    /// Between two linear maps.
    hidden: Vec<f32>,
}

/// Out(f(Hidden(x))): a feed-forward part, or a head with a hidden layer.
pub(crate) struct TwoLayers {
    hidden: Linear<f32>,
    activation: fn(&mut [f32]),
    out: Linear<f32>,
}

/// Rows whose hidden activations are there at the same time.
const PORTION: usize = 1024;

impl LinearWeights {
    /// This map of scale·x + shift as a map of x.
    pub(crate) fn fold(&mut self, scale: &[f32], shift: &[f32]) {
        for (row, bias) in self.weight.chunks_exact_mut(scale.len()).zip(&mut self.bias) {
            let moved = row.iter().zip(shift).map(|(&w, &s)| f64::from(w) * f64::from(s));
            *bias = (f64::from(*bias) + moved.sum::<f64>()) as f32;
            row.iter_mut().zip(scale).for_each(|(w, scale)| *w *= scale);
        }
    }

    pub(crate) fn map(&self) -> Result<Linear<f32>> {
        Ok(Linear::new(&self.weight, &self.bias)?)
    }
}

impl RowBuffers {
    pub(crate) fn new(scratch: frozen::Scratch<f32>) -> Self {
        Self { scratch, hidden: Vec::new() }
    }
}

impl TwoLayers {
    pub(crate) fn new(
        hidden: &LinearWeights,
        activation: fn(&mut [f32]),
        out: &LinearWeights,
    ) -> Result<Self> {
        Ok(Self { hidden: hidden.map()?, activation, out: out.map()? })
    }

    /// x `[R, in]` -> y `[R, out]`. Nothing is allocated the second time.
    pub(crate) fn forward(&self, x: &[f32], y: &mut [f32], buffers: &mut RowBuffers) -> Result<()> {
        let Self { hidden: first, activation, out } = self;
        let RowBuffers { scratch, hidden } = buffers;
        let portions =
            x.chunks(PORTION * first.inputs()).zip(y.chunks_mut(PORTION * out.outputs()));
        for (x, y) in portions {
            let size = x.len() / first.inputs() * first.outputs();
            if hidden.len() < size {
                hidden.resize(size, 0.0);
            }
            first.forward(x, &mut hidden[..size], scratch)?;
            activation(&mut hidden[..size]);
            out.forward(&hidden[..size], y, scratch)?;
        }
        Ok(())
    }
}

/// x = max(x, 0); NaN stays NaN.
pub(crate) fn relu(x: &mut [f32]) {
    x.iter_mut().for_each(|x| *x = if *x < 0.0 { 0.0 } else { *x });
}
