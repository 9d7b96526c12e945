//! One block: its mixer, and the rows around it.

use dss_kernels::frozen::{Norm, Rows, RowsParams};

use crate::error::Result;
use crate::mixer::Mixer;

/// ε of the norms.
pub(crate) const NORM_EPS: f64 = 1e-5;

pub(crate) struct Layer {
    pub mixer: Mixer,
    pub rows: Rows<f32>,
}

/// What surrounds a mixer, as it stands in the file.
pub(crate) struct Surround {
    /// `[H]`
    pub d: Vec<f32>,
    /// `[O, H]` and `[O]`, O = H or 2H.
    pub weight: Vec<f32>,
    pub bias: Vec<f32>,
    pub norm: Norm<f32>,
    pub prenorm: bool,
    pub glu: bool,
}

impl Surround {
    /// The rows, with a BatchNorm behind the block folded into it: scale·(x + W·g + b) + shift is
    /// scale·x + (scale·W)·g + (scale·b + shift), and in a gated unit scale·a·σ(b) = (scale·a)·σ(b).
    pub(crate) fn rows(self) -> Result<Rows<f32>> {
        let Self { d, mut weight, mut bias, norm, prenorm, glu } = self;
        let h = d.len();
        let (mut skip, mut offset) = (vec![1.0; h], vec![0.0; h]);
        let (before, after) = match (prenorm, norm) {
            (true, norm) => (norm, Norm::Identity),
            (false, Norm::Affine { scale, shift }) => {
                for (i, &scale) in scale.iter().enumerate() {
                    weight[i * h..][..h].iter_mut().for_each(|w| *w *= scale);
                    bias[i] *= scale;
                }
                (skip, offset) = (scale, shift);
                (Norm::Identity, Norm::Identity)
            }
            (false, norm) => (Norm::Identity, norm),
        };
        if !glu {
            offset.iter_mut().zip(&bias).for_each(|(offset, bias)| *offset += bias);
            bias.clear();
        }
        let params = RowsParams {
            d: &d,
            out_weight: &weight,
            gate_bias: &bias,
            skip: &skip,
            offset: &offset,
            before,
            after,
        };
        Ok(Rows::new(params)?)
    }
}
