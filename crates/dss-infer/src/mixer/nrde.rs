//! NRDE: a differential equation driven by the log-signatures of a path's windows.

use dss_format::MixerContext;
use dss_format::mixer::NrdeConfig;
use dss_kernels::frozen::{Linear, Scratch};
use dss_kernels::recurrent::{Nrde, Recurrent};

use super::{
    MixerState, SequenceMixer, StateValue, WithBuffers, Workspace, check_forwards, own_state,
    own_workspace, read_own_state,
};
use crate::arrays::Arrays;
use crate::error::Result;
use crate::state::Bytes;

pub(super) struct NrdeMixer {
    config: NrdeConfig,
    context: MixerContext,
    path: Linear<f32>,
    initial: Linear<f32>,
    model: Recurrent<Nrde, f32>,
}

impl NrdeMixer {
    pub(super) fn new(
        config: NrdeConfig,
        context: MixerContext,
        arrays: &mut Arrays<'_>,
    ) -> Result<Self> {
        let (path, initial) = (arrays.linear("path").map()?, arrays.linear("initial").map()?);
        let maps = [0, 1, 2].map(|i| arrays.linear(&format!("field.{i}")));
        let weights = maps.iter().flat_map(|map| &map.weight);
        let params: Vec<f32> =
            weights.chain(maps.iter().flat_map(|map| &map.bias)).copied().collect();
        let model = Recurrent::new(config.cell(context.h), &params)?;
        Ok(Self { config, context, path, initial, model })
    }

    /// Channels of the path, time included.
    fn channels(&self) -> usize {
        self.config.path + 1
    }

    /// Adds the point of u `[H]`; the first one gives the state.
    fn add_point(&self, stream: &mut Stream, u: &[f32]) -> Result<()> {
        let Stream { state: NrdeState { h, points, position }, buffers: scratch } = stream;
        let (at, span) = (points.len(), (self.context.len - 1).max(1) as f64);
        points.resize(at + self.channels(), 0.0);
        points[at] = (*position as f64 / span) as f32;
        self.path.forward(u, &mut points[at + 1..], scratch)?;
        if *position == 0 {
            self.initial.forward(points, &mut h[..self.context.h], scratch)?;
        }
        *position += 1;
        Ok(())
    }

    /// Moves the state on over the points of a window, the last of which begins the next one.
    fn close_window(&self, state: &mut NrdeState) {
        let ell = log_signature(&state.points, self.channels(), self.config.depth);
        self.model.step(1, &ell, &mut state.h);
        let begin = state.points.len() - self.channels();
        state.points.drain(..begin);
    }

    fn stream(&self) -> Stream {
        let (h, points) = (self.model.state(1), Vec::new());
        Stream { state: NrdeState { h, points, position: 0 }, buffers: Scratch::default() }
    }

    /// The next positions of a stream, u `[n, H]` -> v `[n, H]`.
    fn advance(&self, stream: &mut Stream, u: &[f32], v: &mut [f32]) -> Result<()> {
        let h = self.context.h;
        for (u, v) in u.chunks_exact(h).zip(v.chunks_exact_mut(h)) {
            self.add_point(stream, u)?;
            if stream.state.points.len() > self.config.window * self.channels() {
                self.close_window(&mut stream.state);
            }
            v.copy_from_slice(&stream.state.h[..h]);
        }
        Ok(())
    }
}

/// Of points `[k, C]`: the increment, from depth 2 on the areas ½∫(x_a dx_b − x_b dx_a), a < b, at depth 3 [`level3`].
fn log_signature(points: &[f32], c: usize, depth: usize) -> Vec<f32> {
    let first = &points[..c];
    let from_start = |row: &[f32], a: usize| f64::from(row[a]) - f64::from(first[a]);
    let last = &points[points.len() - c..];
    let mut ell: Vec<f32> = (0..c).map(|a| from_start(last, a) as f32).collect();
    if depth == 1 {
        return ell;
    }
    for a in 0..c {
        for b in a + 1..c {
            let pairs = points.chunks_exact(c).zip(points[c..].chunks_exact(c));
            let areas = pairs.map(|(x, y)| {
                from_start(x, a) * from_start(y, b) - from_start(x, b) * from_start(y, a)
            });
            ell.push((0.5 * areas.sum::<f64>()) as f32);
        }
    }
    if depth == 3 {
        ell.extend(level3(points, c));
    }
    ell
}

/// S₃ − ½(S₁⊗S₂ + S₂⊗S₁) + ⅓ S₁⊗S₁⊗S₁ at the Lyndon words of three letters, S the levels of the signature: in a step by d
/// S₃ grows by S₂⊗d + ½ S₁⊗d⊗d + ⅙ d⊗d⊗d, S₂ by S₁⊗d + ½ d⊗d, S₁ by d.
fn level3(points: &[f32], c: usize) -> Vec<f32> {
    let (mut s1, mut s2, mut s3) = (vec![0.0; c], vec![0.0; c * c], vec![0.0; c * c * c]);
    for (x, y) in points.chunks_exact(c).zip(points[c..].chunks_exact(c)) {
        let d: Vec<f64> = x.iter().zip(y).map(|(&x, &y)| f64::from(y) - f64::from(x)).collect();
        for (i, s3) in s3.iter_mut().enumerate() {
            let [a, b, e] = [i / (c * c), i / c % c, i % c];
            *s3 += (s2[i / c] + (0.5 * s1[a] + d[a] / 6.0) * d[b]) * d[e];
        }
        for (i, s2) in s2.iter_mut().enumerate() {
            *s2 += (s1[i / c] + 0.5 * d[i / c]) * d[i % c];
        }
        s1.iter_mut().zip(&d).for_each(|(s1, d)| *s1 += d);
    }
    let words = NrdeConfig::triples(c).map(|[a, b, e]| {
        let both = s1[a] * s2[b * c + e] + s2[a * c + b] * s1[e];
        s3[(a * c + b) * c + e] - 0.5 * both + s1[a] * s1[b] * s1[e] / 3.0
    });
    words.map(|x| x as f32).collect()
}

/// What a stream remembers.
#[derive(Debug, Clone, PartialEq)]
struct NrdeState {
    h: Vec<f32>,
    /// Those since the end of the last window, that one included.
    points: Vec<f32>,
    position: usize,
}

type Stream = WithBuffers<NrdeState, Scratch<f32>>;

impl StateValue for NrdeState {
    fn reset(&mut self) {
        self.h.fill(0.0);
        self.points.clear();
        self.position = 0;
    }
}

impl SequenceMixer for NrdeMixer {
    fn workspace(&self, _l: usize) -> Result<Workspace> {
        Ok(Box::new(self.stream()))
    }

    fn mix(&self, _: &[f32], workspace: &mut Workspace, u: &[f32], v: &mut [f32]) -> Result<()> {
        let stream: &mut Stream = own_workspace(workspace);
        StateValue::reset(stream);
        let (h, size) = (self.context.h, self.config.window * self.context.h);
        if !self.context.bidirectional {
            return self.advance(stream, u, v);
        }
        self.add_point(stream, &u[..h])?;
        v[..h].copy_from_slice(&stream.state.h[..h]);
        for (u, v) in u[h..].chunks(size).zip(v[h..].chunks_mut(size)) {
            u.chunks_exact(h).try_for_each(|u| self.add_point(stream, u))?;
            self.close_window(&mut stream.state);
            v.chunks_exact_mut(h).for_each(|v| v.copy_from_slice(&stream.state.h[..h]));
        }
        Ok(())
    }

    fn state(&self) -> Result<Box<dyn MixerState>> {
        check_forwards(&self.context)?;
        Ok(Box::new(self.stream()))
    }

    fn run(&self, state: &mut dyn MixerState, u: &[f32], v: &mut [f32]) -> Result<()> {
        self.advance(own_state(state), u, v)
    }

    fn write_state(&self, state: &dyn MixerState, bytes: &mut Vec<u8>) -> Result<()> {
        let Stream { state, .. } = read_own_state(state);
        bytes.extend(state.h.iter().chain(&state.points).flat_map(|x| x.to_le_bytes()));
        Ok(())
    }

    fn read_state(&self, position: usize, bytes: &mut Bytes<'_>) -> Result<Box<dyn MixerState>> {
        let mut stream = self.stream();
        let NrdeState { h, points, .. } = &mut stream.state;
        let kept = position.checked_sub(1).map_or(0, |last| last % self.config.window + 1);
        points.resize(kept * self.channels(), 0.0);
        for x in h.iter_mut().chain(points) {
            *x = bytes.f32()?;
        }
        stream.state.position = position;
        Ok(Box::new(stream))
    }
}
