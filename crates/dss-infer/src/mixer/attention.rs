//! Softmax attention: whole sequences in blocks, streams with a cache of all keys and values so far.

use dss_format::MixerContext;
use dss_format::mixer::AttentionConfig;
use dss_kernels::attention::{Attention, AttentionCache, AttentionInput};

use super::projections::{Projections, QkvRows};
use super::{
    MixerState, SequenceMixer, StateValue, WithBuffers, Workspace, check_forwards, own_state,
    own_workspace, read_own_state,
};
use crate::arrays::Arrays;
use crate::error::{Error, Result};
use crate::state::Bytes;

pub(super) struct AttentionMixer {
    config: AttentionConfig,
    context: MixerContext,
    maps: Projections,
}

/// What a stream remembers. Its size grows with the stream.
type Stream = WithBuffers<AttentionCache<f32>, QkvRows>;

impl StateValue for AttentionCache<f32> {
    fn reset(&mut self) {
        self.reset();
    }
}

impl AttentionMixer {
    pub(super) fn new(
        config: AttentionConfig,
        context: MixerContext,
        arrays: &mut Arrays<'_>,
    ) -> Result<Self> {
        let maps = Projections::new(arrays, config, context.h)?;
        Ok(Self { config, context, maps })
    }
}

impl SequenceMixer for AttentionMixer {
    fn workspace(&self, l: usize) -> Result<Workspace> {
        let (heads, head_dim) = (self.config.heads, self.maps.width() / self.config.heads);
        let causal = !self.context.bidirectional;
        let config = dss_kernels::attention::AttentionConfig {
            batch: 1,
            queries: l,
            keys: l,
            heads,
            head_dim,
            causal,
        };
        let saved = vec![0.0f32; config.saved_len()];
        Ok(Box::new((Attention::<f32>::new(config)?, saved, QkvRows::new(l, self.maps.width()))))
    }

    fn mix(&self, _: &[f32], workspace: &mut Workspace, u: &[f32], v: &mut [f32]) -> Result<()> {
        let (attention, saved, rows) =
            own_workspace::<(Attention<f32>, Vec<f32>, QkvRows)>(workspace);
        self.maps.split(u, rows)?;
        let QkvRows { q, k, v: values, y, .. } = rows;
        attention.forward(
            &AttentionInput { q, k, v: values, query_lengths: None, key_lengths: None },
            y,
            saved,
        )?;
        self.maps.join(rows, v)
    }

    fn state(&self) -> Result<Box<dyn MixerState>> {
        check_forwards(&self.context)?;
        let state = AttentionCache::new(self.config.heads, self.maps.width() / self.config.heads)?;
        Ok(Box::new(Stream { state, buffers: QkvRows::default() }))
    }

    fn run(&self, state: &mut dyn MixerState, u: &[f32], v: &mut [f32]) -> Result<()> {
        let Stream { state: cache, buffers: rows } = own_state(state);
        self.maps.split(u, rows)?;
        cache.step(&rows.q, &rows.k, &rows.v, &mut rows.y)?;
        self.maps.join(rows, v)
    }

    fn write_state(&self, state: &dyn MixerState, bytes: &mut Vec<u8>) -> Result<()> {
        let Stream { state: cache, .. } = read_own_state(state);
        let keys = cache.keys();
        bytes.extend(keys.iter().chain(cache.values()).flat_map(|x| x.to_le_bytes()));
        Ok(())
    }

    fn read_state(&self, position: usize, bytes: &mut Bytes<'_>) -> Result<Box<dyn MixerState>> {
        // As many as there are: a position that promises more ends with an error.
        let mut read = || -> Result<Vec<f32>> {
            let mut numbers = Vec::new();
            for _ in 0..position.saturating_mul(self.maps.width()) {
                numbers.push(bytes.f32()?);
            }
            Ok(numbers)
        };
        let (keys, values) = (read()?, read()?);
        let mut state = self.state()?;
        let Stream { state: cache, .. } = own_state(&mut *state);
        cache.set(&keys, &values).map_err(|e| Error::State(e.to_string()))?;
        Ok(state)
    }
}
