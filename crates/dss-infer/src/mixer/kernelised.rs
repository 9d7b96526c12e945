//! Linear attention and Performer: whole sequences chunk by chunk, streams with sums over all keys so far, whose size is
//! fixed.

use dss_format::MixerContext;
use dss_format::mixer::{AttentionConfig, LinearAttentionConfig, PerformerConfig, PerformerKernel};
use dss_kernels::kernelised::{
    FeatureMap, Kernelised, KernelisedConfig, KernelisedInput, KernelisedState,
};

use super::projections::{Projections, QkvRows};
use super::{
    MixerState, SequenceMixer, StateValue, WithBuffers, Workspace, check_forwards, own_state,
    own_workspace, read_own_state,
};
use crate::arrays::Arrays;
use crate::error::Result;
use crate::state::Bytes;

pub(super) struct KernelisedMixer {
    context: MixerContext,
    /// Sizes of the heads, for one sequence of length 1.
    heads: KernelisedConfig,
    /// `None`: all four are the identity.
    maps: Option<Projections>,
    /// w `[m, d]` of FAVOR+, else empty.
    w: Vec<f32>,
}

/// The sizes of heads, for one sequence of length 1.
fn heads(
    frame: AttentionConfig,
    context: &MixerContext,
    map: FeatureMap,
    eps: f64,
) -> KernelisedConfig {
    let (heads, head_dim) = (frame.heads, frame.width_in(context.h) / frame.heads);
    let causal = !context.bidirectional;
    KernelisedConfig { batch: 1, len: 1, heads, head_dim, causal, map, eps }
}

impl KernelisedMixer {
    pub(super) fn linear_attention(
        config: &LinearAttentionConfig,
        context: MixerContext,
        arrays: &mut Arrays<'_>,
    ) -> Result<Self> {
        let frame = config.frame();
        let maps = Projections::new(arrays, frame, context.h)?;
        let (map, eps) = (FeatureMap::EluPlusOne, LinearAttentionConfig::EPS);
        let heads = heads(frame, &context, map, eps);
        Ok(Self { context, heads, maps: Some(maps), w: Vec::new() })
    }

    pub(super) fn performer(
        config: &PerformerConfig,
        context: MixerContext,
        arrays: &mut Arrays<'_>,
    ) -> Result<Self> {
        let frame = config.frame();
        let w = match config.kernel {
            PerformerKernel::Relu => Vec::new(),
            PerformerKernel::Favor => arrays.take("features"),
        };
        let maps = match config.project {
            true => Some(Projections::new(arrays, frame, context.h)?),
            false => None,
        };
        let map = config.feature_map(context.h);
        let heads = heads(frame, &context, map, config.denominator_eps());
        Ok(Self { context, heads, maps, w })
    }

    /// q, k and v of u `[n, H]`.
    fn split(&self, u: &[f32], rows: &mut QkvRows) -> Result<()> {
        if let Some(maps) = &self.maps {
            return maps.split(u, rows);
        }
        rows.fit(u.len());
        [&mut rows.q, &mut rows.k, &mut rows.v].into_iter().for_each(|x| x.copy_from_slice(u));
        Ok(())
    }

    /// v `[n, H]` of the heads' results.
    fn join(&self, rows: &mut QkvRows, v: &mut [f32]) -> Result<()> {
        match &self.maps {
            Some(maps) => maps.join(rows, v)?,
            None => v.copy_from_slice(&rows.y),
        }
        Ok(())
    }

    fn stream(&self) -> Result<Stream> {
        check_forwards(&self.context)?;
        let state = KernelisedState::new(&self.heads, &self.w)?;
        Ok(Stream { state, buffers: QkvRows::default() })
    }
}

/// What a stream remembers: S and z of every head.
type Stream = WithBuffers<KernelisedState, QkvRows>;

impl StateValue for KernelisedState {
    fn reset(&mut self) {
        self.reset();
    }
}

/// Plan, denominators and rows of a whole sequence.
type Whole = (Kernelised<f32>, Vec<f32>, QkvRows);

impl SequenceMixer for KernelisedMixer {
    fn workspace(&self, l: usize) -> Result<Workspace> {
        let config = KernelisedConfig { len: l, ..self.heads };
        let saved = vec![0.0f32; config.saved_len()];
        let rows = QkvRows::new(l, config.channels());
        let whole: Whole = (Kernelised::new(config)?, saved, rows);
        Ok(Box::new(whole))
    }

    fn mix(&self, _: &[f32], workspace: &mut Workspace, u: &[f32], v: &mut [f32]) -> Result<()> {
        let (attention, saved, rows) = own_workspace::<Whole>(workspace);
        self.split(u, rows)?;
        let QkvRows { q, k, v: values, y, .. } = &mut *rows;
        let input = KernelisedInput { q, k, v: values, w: &self.w, lengths: None };
        attention.forward(&input, y, saved)?;
        self.join(rows, v)
    }

    fn state(&self) -> Result<Box<dyn MixerState>> {
        Ok(Box::new(self.stream()?))
    }

    fn run(&self, state: &mut dyn MixerState, u: &[f32], v: &mut [f32]) -> Result<()> {
        let Stream { state: sums, buffers: rows } = own_state(state);
        self.split(u, rows)?;
        sums.step(&rows.q, &rows.k, &rows.v, &mut rows.y)?;
        self.join(rows, v)
    }

    fn write_state(&self, state: &dyn MixerState, bytes: &mut Vec<u8>) -> Result<()> {
        let stream: &Stream = read_own_state(state);
        bytes.extend(stream.state.sums().iter().flat_map(|x| x.to_le_bytes()));
        Ok(())
    }

    fn read_state(&self, _position: usize, bytes: &mut Bytes<'_>) -> Result<Box<dyn MixerState>> {
        let mut stream = self.stream()?;
        let sums = (0..stream.state.sums().len()).map(|_| bytes.f64());
        stream.state.set_sums(&sums.collect::<Result<Vec<_>>>()?)?;
        Ok(Box::new(stream))
    }
}
