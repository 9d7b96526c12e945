//! Reformer: attention within the chunks of hashed positions, whole sequences only.

use dss_format::MixerContext;
use dss_format::mixer::{ReformerConfig, ReformerVariant};
use dss_kernels::attention::gathered::{
    ChunkTiles, Gathered, GatheredConfig, GatheredInput, HashSizes, hash_buckets, sorted_positions,
};
use dss_kernels::frozen::Linear;

use super::projections::{QkvRows, projection};
use super::{LengthLimit, MixerState, SequenceMixer, Workspace, own_workspace};
use crate::arrays::Arrays;
use crate::error::{Error, Result};

pub(super) struct ReformerMixer {
    config: ReformerConfig,
    context: MixerContext,
    /// `[Q, H]` each.
    qk: Linear<f32>,
    v: Linear<f32>,
    /// `[H, Q]`; none in the Long Range Arena's form.
    out: Option<Linear<f32>>,
    /// `[heads, d, R, buckets/2]`, or 1 for the heads.
    rotations: Vec<f32>,
}

impl ReformerMixer {
    pub(super) fn new(
        config: ReformerConfig,
        context: MixerContext,
        arrays: &mut Arrays<'_>,
    ) -> Result<Self> {
        let (h, width) = (context.h, config.width_in(context.h));
        let mut map = |name: &str, outputs: usize| projection(arrays, name, outputs, false);
        let (qk, v) = (map("qk", width)?, map("v", width)?);
        let out = match config.variant {
            ReformerVariant::Paper => Some(map("out", h)?),
            ReformerVariant::Lra => None,
        };
        Ok(Self { config, context, qk, v, out, rotations: arrays.take("rotations") })
    }

    fn width(&self) -> usize {
        self.config.width_in(self.context.h)
    }

    fn is_lra(&self) -> bool {
        self.config.variant == ReformerVariant::Lra
    }

    fn sizes(&self) -> HashSizes {
        self.config.sizes(self.context.len).into()
    }
}

/// k = x/√(Σx² + 10⁻⁶·d), head by head.
fn unit(x: &[f32], d: usize, k: &mut [f32]) {
    for (x, k) in x.chunks_exact(d).zip(k.chunks_exact_mut(d)) {
        let square: f64 = x.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
        let scale = 1.0 / (square + 1e-6 * d as f64).sqrt();
        k.iter_mut().zip(x).for_each(|(k, &x)| *k = (f64::from(x) * scale) as f32);
    }
}

impl SequenceMixer for ReformerMixer {
    fn max_len(&self) -> Option<LengthLimit> {
        let why = "its chunks are those of the training length (Reformer)".to_owned();
        Some(LengthLimit { length: self.context.len, why })
    }

    fn workspace(&self, l: usize) -> Result<Workspace> {
        let (heads, head_dim) = (self.config.heads, self.width() / self.config.heads);
        let HashSizes { chunk, chunks, .. } = self.sizes();
        // In the Long Range Arena's form padding takes part, as zeros.
        let len = if self.is_lra() { chunk * chunks } else { l };
        let scale = if self.is_lra() { (head_dim as f64).sqrt() } else { 1.0 };
        let causal = !self.context.bidirectional;
        let self_last = !self.is_lra();
        let config = GatheredConfig { batch: 1, len, heads, head_dim, scale, causal, self_last };
        let saved = vec![0.0f32; config.saved_len()];
        Ok(Box::new((Gathered::<f32>::new(config)?, saved, QkvRows::new(len, self.width()))))
    }

    fn mix(&self, _: &[f32], workspace: &mut Workspace, u: &[f32], v: &mut [f32]) -> Result<()> {
        let (gathered, saved, rows) =
            own_workspace::<(Gathered<f32>, Vec<f32>, QkvRows)>(workspace);
        let (width, heads, sizes) = (self.width(), self.config.heads, self.sizes());
        let used = u.len() / self.context.h * width;
        let QkvRows { q, k, v: values, y, scratch } = rows;
        self.qk.forward(u, &mut q[..used], scratch)?;
        self.v.forward(u, &mut values[..used], scratch)?;
        if self.is_lra() {
            k.copy_from_slice(q);
        } else {
            unit(q, width / heads, k);
        }
        let len = q.len() / width;
        let buckets = hash_buckets(q, [len, heads, width / heads], &self.rotations, &sizes);
        let order = sorted_positions(&buckets, len);
        let tiles = ChunkTiles::new(sizes, [len, heads], order, None);
        gathered.forward(&GatheredInput { q, k, v: values, tiles: &tiles }, y, saved)?;
        match &self.out {
            Some(out) => out.forward(&y[..used], v, scratch)?,
            None => v.copy_from_slice(&y[..used]),
        }
        Ok(())
    }

    fn state(&self) -> Result<Box<dyn MixerState>> {
        Err(Error::cannot_stream("it sorts the positions of the whole sequence (Reformer)"))
    }
}
