//! Linear attention and Performer: whole sequences chunk by chunk, streams with sums over all keys so far, whose size is
//! fixed.

use std::any::Any;

use dss_format::mixer::{LinearAttentionConfig, PerformerConfig, PerformerKernel};
use dss_format::{MixerConfig, MixerContext};
use dss_kernels::frozen::{Linear, Scratch};
use dss_kernels::kernelised::{
    FeatureMap, Kernelised, KernelisedConfig, KernelisedInput, KernelisedState,
};

use super::recurrent::refused;
use super::{Limit, MixerState, SequenceMixer, StateValue, Workspace};
use crate::arrays::Arrays;
use crate::error::{Error, Result};
use crate::linear::LinearWeights;
use crate::state::{Bytes, State};

pub(super) struct KernelisedMixer {
    config: MixerConfig,
    context: MixerContext,
    /// Sizes of the heads, for one sequence of length 1.
    heads: KernelisedConfig,
    /// Queries, keys and values `[Q, H]`, output `[H, Q]`; `None`: all four are the identity.
    maps: Option<[Linear<f32>; 4]>,
    /// w `[m, d]` of FAVOR+, else empty.
    w: Vec<f32>,
}

impl KernelisedMixer {
    pub(super) fn linear_attention(
        config: LinearAttentionConfig,
        context: MixerContext,
        arrays: &mut Arrays<'_>,
    ) -> Result<Self> {
        let (heads, width) = (config.heads, config.frame().width_in(context.h));
        let heads = KernelisedConfig {
            batch: 1,
            len: 1,
            heads,
            head_dim: width / heads,
            causal: !context.bidirectional,
            map: FeatureMap::EluPlusOne,
            eps: LinearAttentionConfig::EPS,
        };
        let maps = Some(maps(config.bias, [context.h, width], arrays)?);
        Ok(Self { config: config.into(), context, heads, maps, w: Vec::new() })
    }

    pub(super) fn performer(
        config: PerformerConfig,
        context: MixerContext,
        arrays: &mut Arrays<'_>,
    ) -> Result<Self> {
        let (heads, width) = (config.heads, config.frame().width_in(context.h));
        let (head_dim, eps) = (width / heads, config.feature_eps());
        let (map, w) = match config.kernel {
            PerformerKernel::Relu => (FeatureMap::Relu { eps }, Vec::new()),
            PerformerKernel::Favor => {
                let features = config.features_in(head_dim);
                (FeatureMap::Favor { features, eps }, arrays.take("features"))
            }
        };
        let heads = KernelisedConfig {
            batch: 1,
            len: 1,
            heads,
            head_dim,
            causal: !context.bidirectional,
            map,
            eps: config.denominator_eps(),
        };
        let maps = match config.project {
            true => Some(maps(config.bias, [context.h, width], arrays)?),
            false => None,
        };
        Ok(Self { config: config.into(), context, heads, maps, w })
    }

    /// q, k and v of u `[n, H]`.
    fn project(&self, u: &[f32], buffers: &mut Buffers) -> Result<()> {
        let Buffers { q, k, v, y, scratch } = buffers;
        let size = u.len() / self.context.h * self.heads.channels();
        for rows in [&mut *q, &mut *k, &mut *v, y] {
            rows.resize(size, 0.0);
        }
        for (i, rows) in [q, k, v].into_iter().enumerate() {
            match &self.maps {
                Some(maps) => maps[i].forward(u, rows, scratch)?,
                None => rows.copy_from_slice(u),
            }
        }
        Ok(())
    }

    /// v `[n, H]` of the heads' results.
    fn output(&self, buffers: &mut Buffers, v: &mut [f32]) -> Result<()> {
        match &self.maps {
            Some([.., out]) => out.forward(&buffers.y, v, &mut buffers.scratch)?,
            None => v.copy_from_slice(&buffers.y),
        }
        Ok(())
    }

    /// The next positions of a stream, u `[n, H]` -> v `[n, H]`.
    fn advance(&self, stream: &mut SumStream, u: &[f32], v: &mut [f32]) -> Result<()> {
        let SumStream { state, buffers } = stream;
        self.project(u, buffers)?;
        state.step(&buffers.q, &buffers.k, &buffers.v, &mut buffers.y)?;
        self.output(buffers, v)
    }

    fn stream(&self) -> Result<SumStream> {
        if self.context.bidirectional {
            return Err(Error::cannot_stream("it looks ahead (bidirectional)"));
        }
        let state = KernelisedState::new(&self.heads, &self.w)?;
        Ok(SumStream { state, buffers: Buffers::new(Scratch::new(1)) })
    }
}

/// The four maps around heads of `width` channels.
fn maps(bias: bool, [h, width]: [usize; 2], arrays: &mut Arrays<'_>) -> Result<[Linear<f32>; 4]> {
    let mut map = |name: &str, outputs: usize| match bias {
        true => arrays.linear(name).map(),
        false => {
            let weight = arrays.take(&format!("{name}.weight"));
            LinearWeights { weight, bias: vec![0.0; outputs] }.map()
        }
    };
    Ok([map("q", width)?, map("k", width)?, map("v", width)?, map("out", h)?])
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
}

/// What a stream remembers: S and z of every head.
struct SumStream {
    state: KernelisedState,
    buffers: Buffers,
}

/// The sums count; the buffers do not.
impl Clone for SumStream {
    fn clone(&self) -> Self {
        Self { state: self.state.clone(), buffers: Buffers::new(Scratch::new(1)) }
    }
}

impl PartialEq for SumStream {
    fn eq(&self, other: &Self) -> bool {
        self.state.sums() == other.state.sums()
    }
}

impl std::fmt::Debug for SumStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SumStream").field("state", &self.state).finish_non_exhaustive()
    }
}

impl StateValue for SumStream {
    fn reset(&mut self) {
        self.state.reset();
    }
}

/// A state was checked to be of its model.
fn own_state(state: &mut dyn MixerState) -> &mut SumStream {
    (state as &mut dyn Any).downcast_mut().expect("a state of this mixer")
}

/// Plan, denominators and rows of a whole sequence.
type Whole = (Kernelised<f32>, Vec<f32>, Buffers);

impl SequenceMixer for KernelisedMixer {
    fn max_len(&self) -> Option<Limit> {
        None
    }

    fn prepare(&self, _l: usize) -> Result<Vec<f32>> {
        Ok(Vec::new())
    }

    fn workspace(&self, l: usize) -> Result<Workspace> {
        let config = KernelisedConfig { len: l, ..self.heads };
        let saved = vec![0.0f32; config.saved_len()];
        let whole: Whole = (Kernelised::new(config)?, saved, Buffers::new(Scratch::parallel(l)));
        Ok(Box::new(whole))
    }

    fn mix(
        &self,
        _prepared: &[f32],
        workspace: &mut Workspace,
        u: &[f32],
        v: &mut [f32],
    ) -> Result<()> {
        let own = workspace.downcast_mut::<Whole>();
        let (attention, saved, buffers) = own.expect("a workspace of this mixer");
        self.project(u, buffers)?;
        let Buffers { q, k, v: values, y, .. } = &mut *buffers;
        let input = KernelisedInput { q, k, v: values, w: &self.w, lengths: None };
        attention.forward(&input, y, saved)?;
        self.output(buffers, v)
    }

    fn state(&self) -> Result<Box<dyn MixerState>> {
        Ok(Box::new(self.stream()?))
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
        let stream: &SumStream = (state as &dyn Any).downcast_ref().expect("a state of this mixer");
        bytes.extend(stream.state.sums().iter().flat_map(|x| x.to_le_bytes()));
        Ok(())
    }

    fn read_state(&self, _position: usize, bytes: &mut Bytes<'_>) -> Result<Box<dyn MixerState>> {
        let mut stream = self.stream()?;
        let sums = (0..stream.state.sums().len()).map(|_| bytes.f64());
        stream.state.set_sums(&sums.collect::<Result<Vec<_>>>()?)?;
        Ok(Box::new(stream))
    }

    fn set_step(&mut self, r: f64) -> Result<()> {
        self.config.settings().at_step(r).map_err(refused).map(|_| ())
    }
}
