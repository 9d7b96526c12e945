//! H-Transformer-1D: attention that is coarser for what is further away, whole sequences only.

use dss_format::MixerContext;
use dss_format::mixer::HTransformer1dConfig;

use super::projections::{Projections, QkvRows};
use super::{MixerState, SequenceMixer, Workspace, own_workspace};
use crate::arrays::Arrays;
use crate::error::{Error, Result};

pub(super) struct HTransformer1dMixer {
    config: HTransformer1dConfig,
    context: MixerContext,
    maps: Projections,
}

impl HTransformer1dMixer {
    pub(super) fn new(
        config: HTransformer1dConfig,
        context: MixerContext,
        arrays: &mut Arrays<'_>,
    ) -> Result<Self> {
        let maps = Projections::new(arrays, config.frame(), context.h)?;
        Ok(Self { config, context, maps })
    }
}

/// One level of one head: position t stands for those from t·2^λ on.
struct Level {
    /// `[P, d]`
    q: Vec<f32>,
    k: Vec<f32>,
    /// Sums of values, and how many there are: `[P, d + 1]`.
    v: Vec<f32>,
    d: usize,
}

/// The largest logit of each row, and Σ e^{s − max}·(v, count): `[P]`, `[P, d + 1]`.
struct Sums {
    max: Vec<f32>,
    sums: Vec<f32>,
}

impl Level {
    /// The positions of head `head`.
    fn new(rows: &QkvRows, head: usize, d: usize, width: usize) -> Self {
        let of_head = |x: &[f32], scale: f32| -> Vec<f32> {
            let rows = x.chunks_exact(width).flat_map(|row| &row[head * d..][..d]);
            rows.map(|x| x * scale).collect()
        };
        let one = |row: &[f32]| [&row[head * d..][..d], &[1.0]].concat();
        let v = rows.v.chunks_exact(width).flat_map(one).collect();
        let scale = (1.0 / (d as f64).sqrt()) as f32;
        Self { q: of_head(&rows.q, scale), k: of_head(&rows.k, 1.0), v, d }
    }

    fn len(&self) -> usize {
        self.q.len() / self.d
    }

    /// Pairs: means of q and k, sums of v. A last position without a partner stays as it is.
    fn coarser(&self, causal: bool) -> Self {
        let mean = |x: &[f32]| -> Vec<f32> {
            x.chunks(2 * self.d).flat_map(|pair| paired(pair, self.d, 0.5)).collect()
        };
        let first = |x: &[f32]| -> Vec<f32> {
            x.chunks(2 * self.d).flat_map(|pair| &pair[..self.d]).copied().collect()
        };
        let q = if causal { first(&self.q) } else { mean(&self.q) };
        let width = self.d + 1;
        let v = self.v.chunks(2 * width).flat_map(|pair| paired(pair, width, 1.0)).collect();
        Self { q, k: mean(&self.k), v, d: self.d }
    }

    /// What the blocks of this level see.
    fn attend(&self, block: usize, causal: bool, finest: bool) -> Sums {
        let (n, d, half) = (self.len(), self.d, block / 2);
        let (mut max, mut sums) = (vec![f32::NEG_INFINITY; n], vec![0.0; n * (d + 1)]);
        let mut logits = Vec::new();
        for t in 0..n {
            let (start, row) = (t / block * block, t % block);
            // Finer levels have covered a quarter of each block beside the diagonal.
            let before = match finest || row >= half {
                true => start.saturating_sub(block)..start,
                false => start.saturating_sub(block)..start.saturating_sub(half),
            };
            let own = match (finest, causal) {
                (false, _) => 0..0,
                (true, true) => start..t + 1,
                (true, false) => start..start + block,
            };
            let after = match (causal, finest || row < half) {
                (true, _) => 0..0,
                (false, true) => start + block..start + 2 * block,
                (false, false) => start + block + half..start + 2 * block,
            };
            let keys = before.chain(own).chain(after).filter(|&j| j < n);
            logits.clear();
            let q = &self.q[t * d..][..d];
            logits.extend(keys.map(|j| {
                let k = &self.k[j * d..][..d];
                (j, q.iter().zip(k).map(|(q, k)| q * k).sum::<f32>())
            }));
            max[t] = logits.iter().fold(f32::NEG_INFINITY, |most, (_, s)| most.max(*s));
            let sums = &mut sums[t * (d + 1)..][..d + 1];
            for (j, s) in &logits {
                let weight = (s - max[t]).exp();
                let v = &self.v[j * (d + 1)..][..d + 1];
                sums.iter_mut().zip(v).for_each(|(sum, v)| *sum += weight * v);
            }
        }
        Sums { max, sums }
    }
}

/// The sum of a pair's rows times `scale`, or its only row.
fn paired(pair: &[f32], width: usize, scale: f32) -> Vec<f32> {
    match pair.split_at(width) {
        (only, []) => only.to_vec(),
        (a, b) => a.iter().zip(b).map(|(a, b)| scale * (a + b)).collect(),
    }
}

impl Sums {
    /// Adds those of the next coarser level, under one reference for each row.
    fn add(&mut self, coarse: &Self, width: usize) {
        for (t, sums) in self.sums.chunks_exact_mut(width).enumerate() {
            let (own, other) = (self.max[t], coarse.max[t / 2]);
            let max = own.max(other);
            // e^{−∞ − max} = 0: a level in which a row sees nothing.
            let share = |of: f32| if of == max { 1.0 } else { (of - max).exp() };
            let coarse = &coarse.sums[t / 2 * width..][..width];
            for (sum, coarse) in sums.iter_mut().zip(coarse) {
                *sum = *sum * share(own) + coarse * share(other);
            }
            self.max[t] = max;
        }
    }
}

impl SequenceMixer for HTransformer1dMixer {
    fn workspace(&self, l: usize) -> Result<Workspace> {
        Ok(Box::new(QkvRows::new(l, self.maps.width())))
    }

    fn mix(&self, _: &[f32], workspace: &mut Workspace, u: &[f32], v: &mut [f32]) -> Result<()> {
        let rows = own_workspace::<QkvRows>(workspace);
        self.maps.split(u, rows)?;
        let HTransformer1dConfig { heads, block, .. } = self.config;
        let (width, causal) = (self.maps.width(), !self.context.bidirectional);
        let d = width / heads;
        for head in 0..heads {
            let mut level = Level::new(rows, head, d, width);
            let mut all = vec![level.attend(block, causal, true)];
            while level.len() > 2 * block {
                level = level.coarser(causal);
                all.push(level.attend(block, causal, false));
            }
            while let [.., fine, coarse] = &mut all[..] {
                fine.add(coarse, d + 1);
                all.pop();
            }
            let rows = rows.y.chunks_exact_mut(width);
            for (y, sums) in rows.zip(all[0].sums.chunks_exact(d + 1)) {
                let inverse = 1.0 / sums[d];
                y[head * d..][..d].iter_mut().zip(sums).for_each(|(y, sum)| *y = sum * inverse);
            }
        }
        self.maps.join(rows, v)
    }

    fn state(&self) -> Result<Box<dyn MixerState>> {
        Err(Error::cannot_stream("its coarser levels are made of whole blocks (H-Transformer-1D)"))
    }
}
