//! Mixers map sequences along their length. One file each.
//!
//! The rest of the crate talks to [`SequenceMixer`] alone. A new mixer is a file here that implements it, and a line in
//! [`load`]; its settings and arrays are declared in `dss_format::mixer`.

mod attention;
mod bigbird;
mod ckconv;
mod diagonal;
mod dss;
mod exp_rnn;
mod fnet;
mod gated;
mod h_transformer_1d;
mod heads;
mod kernelised;
mod lipschitz_rnn;
mod luna;
mod mega_ema;
mod nrde;
mod nystrom;
mod ode_rnn;
mod projections;
mod recurrent;
mod reformer;
mod s4;
mod s4d;
mod state_space;

use std::any::Any;
use std::fmt::Debug;

use dss_format::{MixerConfig, MixerContext};

use crate::arrays::Arrays;
use crate::error::{Error, Result};
use crate::layer::{NormAndResidual, Residual};
use crate::state::{Bytes, State};
use attention::AttentionMixer;
use bigbird::BigbirdMixer;
use ckconv::CkconvMixer;
use diagonal::{LruNet, S5Net};
use dss::Dss;
use exp_rnn::ExpRnnNet;
use fnet::FnetMixer;
use gated::{Gates, GruNet, LstmNet};
use h_transformer_1d::HTransformer1dMixer;
use kernelised::KernelisedMixer;
use lipschitz_rnn::LipschitzRnnNet;
use luna::LunaMixer;
use mega_ema::MegaEma;
use nrde::NrdeMixer;
use nystrom::NystromMixer;
use ode_rnn::OdeRnnNet;
use recurrent::Net;
use reformer::ReformerMixer;
use s4::S4;
use s4d::S4d;

/// The mixer of a layer out of its arrays, and what surrounds it. A mixer without a fused form leaves
/// [`NormAndResidual::Separate`] as it is.
pub(crate) fn load(
    config: &MixerConfig,
    context: MixerContext,
    mut arrays: Arrays<'_>,
    residual: Residual,
) -> Result<(Box<dyn SequenceMixer>, NormAndResidual)> {
    let (arrays, h) = (&mut arrays, context.h);
    let mixer: Box<dyn SequenceMixer> = match config {
        MixerConfig::Dss(dss) => {
            return state_space::load(Dss::new(dss, arrays), config, context, arrays, residual);
        }
        MixerConfig::S4(_) => {
            return state_space::load(S4::new(arrays), config, context, arrays, residual);
        }
        MixerConfig::S4d(s4d) => {
            return state_space::load(S4d::new(s4d, arrays), config, context, arrays, residual);
        }
        MixerConfig::MegaEma(ema) => {
            return state_space::load(
                MegaEma::new(*ema, arrays),
                config,
                context,
                arrays,
                residual,
            );
        }
        MixerConfig::Gru(_) => recurrent(GruNet(Gates::new(h, arrays)), context)?,
        MixerConfig::Lstm(_) => recurrent(LstmNet(Gates::new(h, arrays)), context)?,
        MixerConfig::Lru(config) => recurrent(LruNet::new(*config, arrays), context)?,
        MixerConfig::S5(config) => recurrent(S5Net::new(*config, arrays), context)?,
        MixerConfig::ExpRnn(_) => recurrent(ExpRnnNet::new(arrays), context)?,
        MixerConfig::LipschitzRnn(config) => {
            recurrent(LipschitzRnnNet::new(*config, h, arrays), context)?
        }
        MixerConfig::OdeRnn(config) => recurrent(OdeRnnNet::new(*config, h, arrays), context)?,
        MixerConfig::Attention(config) => Box::new(AttentionMixer::new(*config, context, arrays)?),
        MixerConfig::Ckconv(config) => Box::new(CkconvMixer::new(*config, context, arrays)),
        MixerConfig::Bigbird(config) => Box::new(BigbirdMixer::new(*config, context, arrays)?),
        MixerConfig::Reformer(config) => Box::new(ReformerMixer::new(*config, context, arrays)?),
        MixerConfig::HTransformer1d(config) => {
            Box::new(HTransformer1dMixer::new(*config, context, arrays)?)
        }
        MixerConfig::Nrde(config) => Box::new(NrdeMixer::new(*config, context, arrays)?),
        MixerConfig::LinearAttention(config) => {
            Box::new(KernelisedMixer::linear_attention(config, context, arrays)?)
        }
        MixerConfig::Performer(config) => {
            Box::new(KernelisedMixer::performer(config, context, arrays)?)
        }
        MixerConfig::Fnet(_) => Box::new(FnetMixer { context }),
        MixerConfig::Nystrom(config) => Box::new(NystromMixer::new(*config, context, arrays)?),
        MixerConfig::Luna(config) => Box::new(LunaMixer::new(*config, context, arrays)?),
        MixerConfig::WaveganD(_) => unreachable!("a stack of its own has no blocks"),
    };
    Ok((mixer, NormAndResidual::Separate(residual)))
}

fn recurrent(net: impl Net, context: MixerContext) -> Result<Box<dyn SequenceMixer>> {
    Ok(Box::new(recurrent::RecurrentMixer::new(net, context)?))
}

/// A map of sequences `[L, H]` -> `[L, H]`, of whole ones and position by position.
pub(crate) trait SequenceMixer: Send + Sync {
    /// The most positions of a whole sequence; `None`: any number.
    fn max_len(&self) -> Option<LengthLimit> {
        None
    }

    /// What does not depend on the input, for sequences of length l; may be empty.
    fn prepare(&self, _l: usize) -> Result<Vec<f32>> {
        Ok(Vec::new())
    }

    /// Plan and buffers for sequences of length l, which the layers of a model share.
    fn workspace(&self, l: usize) -> Result<Workspace>;

    /// A whole sequence u -> v, with what [`Self::prepare`] and [`Self::workspace`] gave.
    fn mix(
        &self,
        prepared: &[f32],
        workspace: &mut Workspace,
        u: &[f32],
        v: &mut [f32],
    ) -> Result<()>;

    /// The second stream before the first layer, `[l, H]`, for mixers that have one.
    fn set_side(&self, _workspace: &mut Workspace, _p: &[f32]) {}

    /// The most positions of a stream.
    fn max_steps(&self) -> Option<LengthLimit> {
        self.max_len()
    }

    /// A stream before its first position. A mixer without streams has none of the methods that follow.
    ///
    /// # Errors
    /// [`Error::CannotStream`] with the reason.
    fn state(&self) -> Result<Box<dyn MixerState>>;

    /// The next position of B streams, whose state of this mixer is that of `layer`: u `[B, H]` -> v `[B, H]`.
    fn step(&self, streams: &mut [State], layer: usize, u: &[f32], v: &mut [f32]) -> Result<()> {
        let h = u.len() / streams.len();
        for (stream, (u, v)) in streams.iter_mut().zip(u.chunks(h).zip(v.chunks_mut(h))) {
            self.run(&mut *stream.layers[layer], u, v)?;
        }
        Ok(())
    }

    /// The next positions of one stream, u `[L, H]` -> v `[L, H]`: equal to single steps bit for bit.
    fn run(&self, _state: &mut dyn MixerState, _u: &[f32], _v: &mut [f32]) -> Result<()> {
        self.state().map(|_| ())
    }

    /// Appends a state to `bytes`.
    fn write_state(&self, _state: &dyn MixerState, _bytes: &mut Vec<u8>) -> Result<()> {
        self.state().map(|_| ())
    }

    /// The state after `position` steps that [`Self::write_state`] wrote.
    fn read_state(&self, _position: usize, _bytes: &mut Bytes<'_>) -> Result<Box<dyn MixerState>> {
        self.state()
    }

    /// Becomes the same map of input with r times the step: lengths are divided by r.
    ///
    /// # Errors
    /// If it has no step.
    fn set_step(&mut self, _r: f64) -> Result<()> {
        Err(no_step())
    }

    /// The convolution kernels `[C, H, taps]` for sequences of length l, where there are any.
    fn kernel(&self, _l: usize) -> Option<Result<Vec<f32>>> {
        None
    }
}

/// A mixer whose steps have no duration cannot run at another rate.
fn no_step() -> Error {
    Error::input("this mixer has no step, so it cannot run at another rate")
}

/// No stream of a mixer that sees what follows a position.
fn check_forwards(context: &MixerContext) -> Result<()> {
    match context.bidirectional {
        true => Err(Error::cannot_stream("it looks ahead (bidirectional)")),
        false => Ok(()),
    }
}

/// What a mixer needs besides its numbers; each has a type of its own.
pub(crate) type Workspace = Box<dyn Any + Send + Sync>;

/// The workspace that a mixer gave, as its own type.
fn own_workspace<W: Any>(workspace: &mut Workspace) -> &mut W {
    workspace.downcast_mut().expect("a workspace of this mixer")
}

/// A limit on the length of sequences.
pub(crate) struct LengthLimit {
    /// Positions that can be computed.
    pub length: usize,
    /// What ends there.
    pub why: String,
}

/// What a stream remembers of one layer: any [`StateValue`].
pub(crate) trait MixerState: Any + Debug + Send + Sync {
    fn reset(&mut self);
    fn boxed_clone(&self) -> Box<dyn MixerState>;
    fn equals(&self, other: &dyn MixerState) -> bool;
}

/// A state that a mixer can have.
pub(crate) trait StateValue: Any + Debug + Clone + PartialEq + Send + Sync {
    /// As before the first step.
    fn reset(&mut self);
}

impl<S: StateValue> MixerState for S {
    fn reset(&mut self) {
        StateValue::reset(self);
    }

    fn boxed_clone(&self) -> Box<dyn MixerState> {
        Box::new(self.clone())
    }

    fn equals(&self, other: &dyn MixerState) -> bool {
        (other as &dyn Any).downcast_ref() == Some(self)
    }
}

impl Clone for Box<dyn MixerState> {
    fn clone(&self) -> Self {
        (**self).boxed_clone()
    }
}

impl PartialEq for dyn MixerState {
    fn eq(&self, other: &Self) -> bool {
        self.equals(other)
    }
}

/// The state that a mixer gave, as its own type: states are checked to be of their model.
fn own_state<S: StateValue>(state: &mut dyn MixerState) -> &mut S {
    (state as &mut dyn Any).downcast_mut().expect("a state of this mixer")
}

/// The same to read.
fn read_own_state<S: StateValue>(state: &dyn MixerState) -> &S {
    (state as &dyn Any).downcast_ref().expect("a state of this mixer")
}

/// A state and the buffers of its steps. The state counts; the buffers do not.
struct WithBuffers<S, B> {
    state: S,
    buffers: B,
}

impl<S: Clone, B: Default> Clone for WithBuffers<S, B> {
    fn clone(&self) -> Self {
        Self { state: self.state.clone(), buffers: B::default() }
    }
}

impl<S: PartialEq, B> PartialEq for WithBuffers<S, B> {
    fn eq(&self, other: &Self) -> bool {
        self.state == other.state
    }
}

impl<S: Debug, B> Debug for WithBuffers<S, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.state.fmt(f)
    }
}

impl<S: StateValue, B: Default + Send + Sync + 'static> StateValue for WithBuffers<S, B> {
    fn reset(&mut self) {
        self.state.reset();
    }
}
