//! NRDE: a differential equation driven by the log-signatures of a path's windows.

use std::any::Any;

use dss_format::MixerContext;
use dss_format::mixer::{MixerSettings, NrdeConfig};
use dss_kernels::frozen::{Linear, Scratch};
use dss_kernels::recurrent::{Nrde, Recurrent};

use super::recurrent::refused;
use super::{Limit, MixerState, SequenceMixer, StateValue, Workspace};
use crate::arrays::Arrays;
use crate::error::{Error, Result};
use crate::state::{Bytes, State};

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
        let NrdeConfig { width, field_layers: layers, solver, substeps, .. } = config;
        let (n, dim) = (context.h, config.dim());
        let cell = Nrde { n, dim, width, layers, solver: solver.into(), substeps };
        Ok(Self { config, context, path, initial, model: Recurrent::new(cell, &params)? })
    }

    /// Channels of the path, time included.
    fn channels(&self) -> usize {
        self.config.path + 1
    }

    /// Adds the point of u `[H]`; the first one gives the state.
    fn add_point(&self, stream: &mut NrdeStream, u: &[f32]) -> Result<()> {
        let NrdeStream { h, points, position, scratch } = stream;
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
    fn close_window(&self, stream: &mut NrdeStream) {
        let ell = log_signature(&stream.points, self.channels(), self.config.depth);
        self.model.step(1, &ell, &mut stream.h);
        let begin = stream.points.len() - self.channels();
        stream.points.drain(..begin);
    }

    fn stream(&self) -> NrdeStream {
        let (h, points) = (self.model.state(1), Vec::new());
        NrdeStream { h, points, position: 0, scratch: Scratch::new(1) }
    }

    /// The next positions of a stream, u `[n, H]` -> v `[n, H]`.
    fn advance(&self, stream: &mut NrdeStream, u: &[f32], v: &mut [f32]) -> Result<()> {
        let h = self.context.h;
        for (u, v) in u.chunks_exact(h).zip(v.chunks_exact_mut(h)) {
            self.add_point(stream, u)?;
            if stream.points.len() > self.config.window * self.channels() {
                self.close_window(stream);
            }
            v.copy_from_slice(&stream.h[..h]);
        }
        Ok(())
    }
}

/// Of points `[k, C]`: the increment, and at depth 2 the areas ½∫(x_a dx_b − x_b dx_a), a < b.
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
    ell
}

/// What a stream remembers.
struct NrdeStream {
    h: Vec<f32>,
    /// Those since the end of the last window, that one included.
    points: Vec<f32>,
    position: usize,
    scratch: Scratch<f32>,
}

impl Clone for NrdeStream {
    fn clone(&self) -> Self {
        let (h, points) = (self.h.clone(), self.points.clone());
        Self { h, points, position: self.position, scratch: Scratch::new(1) }
    }
}

impl PartialEq for NrdeStream {
    fn eq(&self, other: &Self) -> bool {
        (self.position, &self.h, &self.points) == (other.position, &other.h, &other.points)
    }
}

impl std::fmt::Debug for NrdeStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NrdeStream").field("h", &self.h).finish_non_exhaustive()
    }
}

impl StateValue for NrdeStream {
    fn reset(&mut self) {
        self.h.fill(0.0);
        self.points.clear();
        self.position = 0;
    }
}

/// A state was checked to be of its model.
fn own_state(state: &mut dyn MixerState) -> &mut NrdeStream {
    (state as &mut dyn Any).downcast_mut().expect("a state of this mixer")
}

impl SequenceMixer for NrdeMixer {
    fn max_len(&self) -> Option<Limit> {
        None
    }

    fn prepare(&self, _l: usize) -> Result<Vec<f32>> {
        Ok(Vec::new())
    }

    fn workspace(&self, _l: usize) -> Result<Workspace> {
        Ok(Box::new(self.stream()))
    }

    fn mix(
        &self,
        _prepared: &[f32],
        workspace: &mut Workspace,
        u: &[f32],
        v: &mut [f32],
    ) -> Result<()> {
        let stream: &mut NrdeStream = workspace.downcast_mut().expect("a workspace of this mixer");
        StateValue::reset(stream);
        let (h, size) = (self.context.h, self.config.window * self.context.h);
        if !self.context.bidirectional {
            return self.advance(stream, u, v);
        }
        self.add_point(stream, &u[..h])?;
        v[..h].copy_from_slice(&stream.h[..h]);
        for (u, v) in u[h..].chunks(size).zip(v[h..].chunks_mut(size)) {
            u.chunks_exact(h).try_for_each(|u| self.add_point(stream, u))?;
            self.close_window(stream);
            v.chunks_exact_mut(h).for_each(|v| v.copy_from_slice(&stream.h[..h]));
        }
        Ok(())
    }

    fn state(&self) -> Result<Box<dyn MixerState>> {
        if self.context.bidirectional {
            return Err(Error::cannot_stream("it looks ahead (bidirectional)"));
        }
        Ok(Box::new(self.stream()))
    }

    fn step(&self, streams: &mut [State], layer: usize, u: &[f32], v: &mut [f32]) -> Result<()> {
        let h = self.context.h;
        for (stream, (u, v)) in streams.iter_mut().zip(u.chunks(h).zip(v.chunks_mut(h))) {
            self.advance(own_state(&mut *stream.layers[layer]), u, v)?;
        }
        Ok(())
    }

    fn run(&self, state: &mut dyn MixerState, u: &[f32], v: &mut [f32]) -> Result<()> {
        self.advance(own_state(state), u, v)
    }

    fn write_state(&self, state: &dyn MixerState, bytes: &mut Vec<u8>) -> Result<()> {
        let state: &NrdeStream = (state as &dyn Any).downcast_ref().expect("a state of this mixer");
        bytes.extend(state.h.iter().chain(&state.points).flat_map(|x| x.to_le_bytes()));
        Ok(())
    }

    fn read_state(&self, position: usize, bytes: &mut Bytes<'_>) -> Result<Box<dyn MixerState>> {
        let mut stream = self.stream();
        stream.position = position;
        let kept = position.checked_sub(1).map_or(0, |last| last % self.config.window + 1);
        stream.points.resize(kept * self.channels(), 0.0);
        for x in stream.h.iter_mut().chain(&mut stream.points) {
            *x = bytes.f32()?;
        }
        Ok(Box::new(stream))
    }

    fn set_step(&mut self, r: f64) -> Result<()> {
        self.config.at_step(r).map_err(refused).map(|_| ())
    }
}
