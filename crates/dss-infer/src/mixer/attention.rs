//! Softmax attention: whole sequences in blocks, streams with a cache of all keys and values so far.

use std::any::Any;

use dss_format::MixerContext;
use dss_format::mixer::{AttentionConfig, MixerSettings};
use dss_kernels::attention::{Attention, AttentionCache, AttentionInput};
use dss_kernels::frozen::{Linear, Scratch};

use super::{Limit, MixerState, SequenceMixer, StateValue, Workspace};
use crate::arrays::Arrays;
use crate::error::{Error, Result};
use crate::linear::LinearWeights;
use crate::state::{Bytes, State};

pub(super) struct AttentionMixer {
    config: AttentionConfig,
    context: MixerContext,
    /// Queries, keys and values: `[Q, H]` each.
    qkv: [Linear<f32>; 3],
    /// `[H, Q]`.
    out: Linear<f32>,
}

impl AttentionMixer {
    pub(super) fn new(
        config: AttentionConfig,
        context: MixerContext,
        arrays: &mut Arrays<'_>,
    ) -> Result<Self> {
        let (h, width) = (context.h, config.width_in(context.h));
        let mut map = |name: &str, outputs: usize| match config.bias {
            true => arrays.linear(name).map(),
            false => {
                let weight = arrays.take(&format!("{name}.weight"));
                LinearWeights { weight, bias: vec![0.0; outputs] }.map()
            }
        };
        let qkv = [map("q", width)?, map("k", width)?, map("v", width)?];
        Ok(Self { config, context, qkv, out: map("out", h)? })
    }

    fn width(&self) -> usize {
        self.config.width_in(self.context.h)
    }

    /// The next positions of a stream, u `[n, H]` -> v `[n, H]`.
    fn advance(&self, state: &mut StreamCache, u: &[f32], v: &mut [f32]) -> Result<()> {
        let StreamCache { cache, buffers } = state;
        buffers.fit(u.len() / self.context.h * self.width());
        let Buffers { q, k, v: values, y, scratch, .. } = buffers;
        for (map, rows) in self.qkv.iter().zip([&mut *q, &mut *k, &mut *values]) {
            map.forward(u, rows, scratch)?;
        }
        cache.step(q, k, values, y)?;
        Ok(self.out.forward(y, v, scratch)?)
    }
}

/// Rows of queries, keys, values and results, `[n, Q]` each.
struct Buffers {
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
    y: Vec<f32>,
    scratch: Scratch<f32>,
}

impl Buffers {
    fn new(scratch: Scratch<f32>) -> Self {
        Self { q: Vec::new(), k: Vec::new(), v: Vec::new(), y: Vec::new(), scratch }
    }

    fn fit(&mut self, size: usize) {
        for rows in [&mut self.q, &mut self.k, &mut self.v, &mut self.y] {
            rows.resize(size, 0.0);
        }
    }
}

/// What a stream remembers. Its size grows with the stream.
struct StreamCache {
    cache: AttentionCache<f32>,
    buffers: Buffers,
}

/// The cache counts; the buffers do not.
impl Clone for StreamCache {
    fn clone(&self) -> Self {
        Self { cache: self.cache.clone(), buffers: Buffers::new(Scratch::new(1)) }
    }
}

impl PartialEq for StreamCache {
    fn eq(&self, other: &Self) -> bool {
        let values = |state: &Self| (state.cache.keys(), state.cache.values().to_vec());
        values(self) == values(other)
    }
}

impl std::fmt::Debug for StreamCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamCache").field("cache", &self.cache).finish_non_exhaustive()
    }
}

impl StateValue for StreamCache {
    fn reset(&mut self) {
        self.cache.reset();
    }
}

/// A state was checked to be of its model.
fn own_state(state: &mut dyn MixerState) -> &mut StreamCache {
    (state as &mut dyn Any).downcast_mut().expect("a state of this mixer")
}

impl SequenceMixer for AttentionMixer {
    fn max_len(&self) -> Option<Limit> {
        None
    }

    fn prepare(&self, _l: usize) -> Result<Vec<f32>> {
        Ok(Vec::new())
    }

    fn workspace(&self, l: usize) -> Result<Workspace> {
        let (heads, head_dim) = (self.config.heads, self.width() / self.config.heads);
        let causal = !self.context.bidirectional;
        let config =
            dss_kernels::attention::AttentionConfig { batch: 1, len: l, heads, head_dim, causal };
        let mut buffers = Buffers::new(Scratch::parallel(l));
        buffers.fit(l * self.width());
        let saved = vec![0.0f32; config.saved_len()];
        Ok(Box::new((Attention::<f32>::new(config)?, saved, buffers)))
    }

    fn mix(
        &self,
        _prepared: &[f32],
        workspace: &mut Workspace,
        u: &[f32],
        v: &mut [f32],
    ) -> Result<()> {
        let own = workspace.downcast_mut::<(Attention<f32>, Vec<f32>, Buffers)>();
        let (attention, saved, buffers) = own.expect("a workspace of this mixer");
        let Buffers { q, k, v: values, y, scratch } = buffers;
        for (map, rows) in self.qkv.iter().zip([&mut *q, &mut *k, &mut *values]) {
            map.forward(u, rows, scratch)?;
        }
        attention.forward(&AttentionInput { q, k, v: values, lengths: None }, y, saved)?;
        Ok(self.out.forward(y, v, scratch)?)
    }

    fn state(&self) -> Result<Box<dyn MixerState>> {
        if self.context.bidirectional {
            return Err(Error::cannot_stream("it looks ahead (bidirectional)"));
        }
        let cache = AttentionCache::new(self.config.heads, self.width() / self.config.heads)?;
        Ok(Box::new(StreamCache { cache, buffers: Buffers::new(Scratch::new(1)) }))
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
        let state: &StreamCache =
            (state as &dyn Any).downcast_ref().expect("a state of this mixer");
        let numbers = state.cache.keys();
        bytes.extend(numbers.iter().chain(state.cache.values()).flat_map(|x| x.to_le_bytes()));
        Ok(())
    }

    fn read_state(&self, position: usize, bytes: &mut Bytes<'_>) -> Result<Box<dyn MixerState>> {
        // As many as there are: a position that promises more ends with an error.
        let mut read = || -> Result<Vec<f32>> {
            let mut numbers = Vec::new();
            for _ in 0..position.saturating_mul(self.width()) {
                numbers.push(bytes.f32()?);
            }
            Ok(numbers)
        };
        let (keys, values) = (read()?, read()?);
        let mut state = self.state()?;
        let cache = &mut own_state(&mut *state).cache;
        cache.set(&keys, &values).map_err(|e| Error::State(e.to_string()))?;
        Ok(state)
    }

    fn set_step(&mut self, r: f64) -> Result<()> {
        self.config.at_step(r).map_err(|error| Error::Input(error.to_string()))?;
        Ok(())
    }
}
