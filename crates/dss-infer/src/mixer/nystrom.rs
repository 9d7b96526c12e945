//! Nyströmformer: softmax attention through landmarks, the pseudo-inverse by six iterations in f64.

use dss_format::MixerContext;
use dss_format::mixer::NystromConfig;
use dss_kernels::frozen::{Linear, Scratch};

use super::heads::attend;
use super::{LengthLimit, MixerState, SequenceMixer, Workspace, own_workspace};
use crate::arrays::Arrays;
use crate::error::{Error, Result};

pub(super) struct NystromMixer {
    config: NystromConfig,
    context: MixerContext,
    /// Queries, keys and values: `[H, H]` each.
    qkv: [Linear<f32>; 3],
    /// `[H, H]`.
    out: Linear<f32>,
    /// `[heads, taps]`; empty without a convolution.
    conv: Vec<f32>,
}

/// Rows `[L, H]` of queries, keys, values and results; landmarks and what belongs to them, `[m, H]`.
struct Buffers {
    rows: [Vec<f32>; 4],
    marks: [Vec<f32>; 4],
    weights: Vec<f32>,
    scratch: Scratch<f32>,
}

impl NystromMixer {
    pub(super) fn new(
        config: NystromConfig,
        context: MixerContext,
        arrays: &mut Arrays<'_>,
    ) -> Result<Self> {
        let mut map = |name: &str| arrays.linear(name).map();
        let (qkv, out) = ([map("q")?, map("k")?, map("v")?], map("out")?);
        let conv = if config.conv > 0 { arrays.take("conv.weight") } else { Vec::new() };
        Ok(Self { config, context, qkv, out, conv })
    }

    /// Means of the segments of x `[L, H]`, which is 0 up to the padded length.
    fn landmarks(&self, x: &[f32], means: &mut [f32]) {
        let h = self.context.h;
        let size = self.config.length(self.context.len) / self.config.landmarks;
        means.fill(0.0);
        for (segment, mean) in x.chunks(size * h).zip(means.chunks_exact_mut(h)) {
            for (c, mean) in mean.iter_mut().enumerate() {
                let sum: f64 = segment[c..].iter().step_by(h).map(|&x| f64::from(x)).sum();
                *mean = (sum / size as f64) as f32;
            }
        }
    }

    /// A⁺·x of the landmarks q and k and x `[m, H]`, head by head -> y `[m, H]`.
    fn through_inverse(&self, q: &[f32], k: &[f32], x: &[f32], y: &mut [f32]) {
        let (h, heads, m) = (self.context.h, self.config.heads, self.config.landmarks);
        let d = h / heads;
        for head in 0..heads {
            let own = |x: &[f32], i: usize, c: usize| f64::from(x[i * h + head * d + c]);
            let mut a = vec![0.0; m * m];
            for (i, row) in a.chunks_exact_mut(m).enumerate() {
                for (j, logit) in row.iter_mut().enumerate() {
                    *logit = (0..d).map(|c| own(q, i, c) * own(k, j, c)).sum();
                }
                let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                row.iter_mut().for_each(|x| *x = (*x - largest).exp());
                let sum: f64 = row.iter().sum();
                row.iter_mut().for_each(|x| *x /= sum);
            }
            let z = pseudo_inverse(&a, m);
            for (i, z) in z.chunks_exact(m).enumerate() {
                for c in 0..d {
                    let sum: f64 = z.iter().enumerate().map(|(j, z)| z * own(x, j, c)).sum();
                    y[i * h + head * d + c] = sum as f32;
                }
            }
        }
    }

    /// Adds the convolution of v `[L, H]` to y.
    fn add_convolution(&self, v: &[f32], y: &mut [f32]) {
        let (h, taps) = (self.context.h, self.config.conv);
        let (l, d) = (v.len() / h, h / self.config.heads);
        for (t, y) in y.chunks_exact_mut(h).enumerate() {
            // y_t = Σ_j w_j·v_{t + j − taps/2}.
            let first = (taps / 2).saturating_sub(t);
            for j in first..taps.min(l + taps / 2 - t) {
                let v = &v[(t + j - taps / 2) * h..][..h];
                for (c, (y, v)) in y.iter_mut().zip(v).enumerate() {
                    *y += self.conv[c / d * taps + j] * v;
                }
            }
        }
    }
}

/// The iterations of `dss-nn`'s layer for A `[m, m]`, a row-stochastic matrix.
fn pseudo_inverse(a: &[f64], m: usize) -> Vec<f64> {
    let column = |j: usize| -> f64 { a[j..].iter().step_by(m).sum() };
    let largest = (0..m).map(column).fold(0.0, f64::max);
    let mut z: Vec<f64> = (0..m * m).map(|i| a[i % m * m + i / m] / largest).collect();
    for _ in 0..NystromConfig::ITERATIONS {
        let az = product(a, &z, m);
        let inner = product(&az, &less(7.0, &az, m), m);
        let outer = product(&az, &less(15.0, &inner, m), m);
        z = product(&z, &less(13.0, &outer, m), m);
        z.iter_mut().for_each(|x| *x *= 0.25);
    }
    z
}

/// c·I − x.
fn less(c: f64, x: &[f64], m: usize) -> Vec<f64> {
    let entry = |(i, x): (usize, &f64)| if i / m == i % m { c - x } else { -x };
    x.iter().enumerate().map(entry).collect()
}

fn product(a: &[f64], b: &[f64], m: usize) -> Vec<f64> {
    let mut c = vec![0.0; m * m];
    for (a, c) in a.chunks_exact(m).zip(c.chunks_exact_mut(m)) {
        for (&a, b) in a.iter().zip(b.chunks_exact(m)) {
            c.iter_mut().zip(b).for_each(|(c, b)| *c += a * b);
        }
    }
    c
}

impl SequenceMixer for NystromMixer {
    fn max_len(&self) -> Option<LengthLimit> {
        let length = self.config.length(self.context.len);
        let why = "the landmarks of Nyströmformer are fixed for this length".to_owned();
        Some(LengthLimit { length, why })
    }

    fn workspace(&self, l: usize) -> Result<Workspace> {
        let (h, m) = (self.context.h, self.config.landmarks);
        let buffers = Buffers {
            rows: [(); 4].map(|()| vec![0.0; l * h]),
            marks: [(); 4].map(|()| vec![0.0; m * h]),
            weights: Vec::new(),
            scratch: Scratch::parallel(l),
        };
        Ok(Box::new(buffers))
    }

    fn mix(&self, _: &[f32], workspace: &mut Workspace, u: &[f32], v: &mut [f32]) -> Result<()> {
        let own = own_workspace::<Buffers>(workspace);
        let Buffers { rows: [q, k, values, y], marks, weights, scratch } = own;
        let (h, heads) = (self.context.h, self.config.heads);
        for (map, rows) in self.qkv.iter().zip([&mut *q, &mut *k, &mut *values]) {
            map.forward(u, rows, scratch)?;
        }
        let scale = (h as f32 / heads as f32).powf(-0.25);
        q.iter_mut().chain(k.iter_mut()).for_each(|x| *x *= scale);
        if self.config.length(self.context.len) == self.config.landmarks {
            attend([q, k, values], h, heads, 1.0, weights, y);
        } else {
            let [q_means, k_means, seen, inverted] = marks;
            self.landmarks(q, q_means);
            self.landmarks(k, k_means);
            attend([q_means, k, values], h, heads, 1.0, weights, seen);
            self.through_inverse(q_means, k_means, seen, inverted);
            attend([q, k_means, inverted], h, heads, 1.0, weights, y);
        }
        if !self.conv.is_empty() {
            self.add_convolution(values, y);
        }
        Ok(self.out.forward(y, v, scratch)?)
    }

    fn state(&self) -> Result<Box<dyn MixerState>> {
        Err(Error::cannot_stream("its landmarks are means over the whole sequence (Nyströmformer)"))
    }
}
