//! Luna: two attentions around a second stream, which is kept in the workspace that all layers share.

use dss_format::MixerContext;
use dss_format::mixer::LunaConfig;
use dss_kernels::frozen::{Linear, Norm, Scratch};

use super::heads::attend;
use super::{MixerState, SequenceMixer, Workspace, own_workspace};
use crate::arrays::Arrays;
use crate::error::{Error, Result};

pub(super) struct LunaMixer {
    config: LunaConfig,
    context: MixerContext,
    /// Of the sequence: queries, then keys and values for p.
    of_sequence: [Linear<f32>; 3],
    /// Queries of p.
    pq: Linear<f32>,
    /// Keys and values of p'.
    of_packed: [Linear<f32>; 2],
    out: Linear<f32>,
    p_norm: Norm<f32>,
}

/// The second stream p `[l, H]` between layers, and buffers.
struct Buffers {
    p: Vec<f32>,
    /// `[L, H]` each.
    rows: [Vec<f32>; 4],
    /// `[l, H]` each.
    packed: [Vec<f32>; 3],
    weights: Vec<f32>,
    scratch: Scratch<f32>,
}

impl LunaMixer {
    pub(super) fn new(
        config: LunaConfig,
        context: MixerContext,
        arrays: &mut Arrays<'_>,
    ) -> Result<Self> {
        let mut map = |name: &str| arrays.linear(name).map();
        let of_sequence = [map("q")?, map("pk")?, map("pv")?];
        let (pq, of_packed, out) = (map("pq")?, [map("k")?, map("v")?], map("out")?);
        let p_norm = arrays.layer_norm("p_norm", LunaConfig::NORM_EPS);
        Ok(Self { config, context, of_sequence, pq, of_packed, out, p_norm })
    }

    /// Rows of the second stream that a sequence of length l uses.
    fn used(&self, l: usize) -> usize {
        self.config.packed.min(l)
    }
}

impl SequenceMixer for LunaMixer {
    fn workspace(&self, l: usize) -> Result<Workspace> {
        let (h, used) = (self.context.h, self.used(l));
        let buffers = Buffers {
            p: vec![0.0; used * h],
            rows: [(); 4].map(|()| vec![0.0; l * h]),
            packed: [(); 3].map(|()| vec![0.0; used * h]),
            weights: Vec::new(),
            scratch: Scratch::parallel(l),
        };
        Ok(Box::new(buffers))
    }

    fn set_side(&self, workspace: &mut Workspace, p: &[f32]) {
        let own = own_workspace::<Buffers>(workspace);
        let used = own.p.len();
        own.p.copy_from_slice(&p[..used]);
    }

    fn mix(&self, _: &[f32], workspace: &mut Workspace, u: &[f32], v: &mut [f32]) -> Result<()> {
        let own = own_workspace::<Buffers>(workspace);
        let Buffers { p, rows, packed: [keys, values, packed], weights, scratch } = own;
        let [q, pk, pv, y] = rows;
        let (h, heads) = (self.context.h, self.config.heads);
        let scale = 1.0 / (h as f32 / heads as f32).sqrt();
        for (map, rows) in self.of_sequence.iter().zip([&mut *q, &mut *pk, &mut *pv]) {
            map.forward(u, rows, scratch)?;
        }
        self.pq.forward(p, keys, scratch)?;
        attend([keys, pk, pv], h, heads, scale, weights, packed);
        for (map, rows) in self.of_packed.iter().zip([&mut *keys, &mut *values]) {
            map.forward(packed, rows, scratch)?;
        }
        attend([q, keys, values], h, heads, scale, weights, y);
        packed.iter_mut().zip(&*p).for_each(|(packed, p)| *packed += p);
        self.p_norm.forward(packed, h, p, scratch);
        Ok(self.out.forward(y, v, scratch)?)
    }

    fn state(&self) -> Result<Box<dyn MixerState>> {
        Err(Error::cannot_stream("its second stream packs the whole sequence (Luna)"))
    }
}
