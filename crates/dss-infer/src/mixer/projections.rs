//! What the attention family shares: linear maps between channels and heads.

use dss_format::mixer::AttentionConfig;
use dss_kernels::frozen::{Linear, Scratch};

use crate::arrays::Arrays;
use crate::error::Result;
use crate::linear::LinearWeights;

/// `name.weight` `[out, in]`, and `name.bias` if there is one.
pub(super) fn projection(
    arrays: &mut Arrays<'_>,
    name: &str,
    outputs: usize,
    bias: bool,
) -> Result<Linear<f32>> {
    let weight = arrays.take(&format!("{name}.weight"));
    let bias = match bias {
        true => arrays.take(&format!("{name}.bias")),
        false => vec![0.0; outputs],
    };
    LinearWeights { weight, bias }.map()
}

/// Queries, keys, values `[Q, H]` and the output `[H, Q]`.
pub(super) struct Projections {
    qkv: [Linear<f32>; 3],
    out: Linear<f32>,
}

/// Rows of queries, keys, values and results, `[L, Q]` each.
#[derive(Default)]
pub(super) struct QkvRows {
    pub q: Vec<f32>,
    pub k: Vec<f32>,
    pub v: Vec<f32>,
    pub y: Vec<f32>,
    pub scratch: Scratch<f32>,
}

impl QkvRows {
    pub(super) fn new(l: usize, width: usize) -> Self {
        let zeros = || vec![0.0; l * width];
        Self { q: zeros(), k: zeros(), v: zeros(), y: zeros(), scratch: Scratch::parallel(l) }
    }

    /// `size` numbers in each.
    pub(super) fn fit(&mut self, size: usize) {
        for rows in [&mut self.q, &mut self.k, &mut self.v, &mut self.y] {
            rows.resize(size, 0.0);
        }
    }
}

impl Projections {
    pub(super) fn new(arrays: &mut Arrays<'_>, config: AttentionConfig, h: usize) -> Result<Self> {
        let width = config.width_in(h);
        let mut map = |name: &str, outputs: usize| projection(arrays, name, outputs, config.bias);
        let qkv = [map("q", width)?, map("k", width)?, map("v", width)?];
        Ok(Self { qkv, out: map("out", h)? })
    }

    /// Q.
    pub(super) fn width(&self) -> usize {
        self.out.inputs()
    }

    /// u `[L, H]` -> q, k, v.
    pub(super) fn split(&self, u: &[f32], rows: &mut QkvRows) -> Result<()> {
        rows.fit(u.len() / self.out.outputs() * self.width());
        let QkvRows { q, k, v, scratch, .. } = rows;
        for (map, rows) in self.qkv.iter().zip([q, k, v]) {
            map.forward(u, rows, scratch)?;
        }
        Ok(())
    }

    /// y -> `[L, H]`.
    pub(super) fn join(&self, rows: &mut QkvRows, out: &mut [f32]) -> Result<()> {
        Ok(self.out.forward(&rows.y, out, &mut rows.scratch)?)
    }
}
