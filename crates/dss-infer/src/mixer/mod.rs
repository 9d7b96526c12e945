//! Mixers: what maps sequences along their length. One file each.
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
mod whole;

use std::any::Any;
use std::fmt::Debug;

use dss_format::{MixerConfig, MixerContext};

use crate::arrays::Arrays;
use crate::error::Result;
use crate::layer::{Around, Residual};
use crate::state::{Bytes, State};
use diagonal::{LruNet, S5Net};
use dss::Dss;
use exp_rnn::ExpRnnNet;
use fnet::FnetMixer;
use gated::{Gates, GruNet, LstmNet};
use kernelised::KernelisedMixer;
use lipschitz_rnn::LipschitzRnnNet;
use mega_ema::MegaEma;
use ode_rnn::OdeRnnNet;
use recurrent::Net;
use s4::S4;
use s4d::S4d;
use whole::Whole;

/// The mixer of a layer out of its arrays, and what surrounds it. A mixer without a fused form leaves
/// [`Around::Residual`] as it is.
pub(crate) fn load(
    config: &MixerConfig,
    context: MixerContext,
    mut arrays: Arrays<'_>,
    residual: Residual,
) -> Result<(Box<dyn SequenceMixer>, Around)> {
    let (arrays, h) = (&mut arrays, context.h);
    match config {
        MixerConfig::Dss(dss) => {
            state_space::load(Dss::new(dss, arrays), config, context, arrays, residual)
        }
        MixerConfig::S4(_) => state_space::load(S4::new(arrays), config, context, arrays, residual),
        MixerConfig::S4d(s4d) => {
            state_space::load(S4d::new(s4d, arrays), config, context, arrays, residual)
        }
        MixerConfig::Attention(config) => {
            let mixer = attention::AttentionMixer::new(*config, context, arrays)?;
            Ok((Box::new(mixer), Around::Residual(residual)))
        }
        MixerConfig::MegaEma(ema) => {
            state_space::load(MegaEma::new(*ema, arrays), config, context, arrays, residual)
        }
        MixerConfig::Gru(_) => recurrent(GruNet(Gates::new(h, arrays)), context, residual),
        MixerConfig::Lstm(_) => recurrent(LstmNet(Gates::new(h, arrays)), context, residual),
        MixerConfig::Lru(config) => recurrent(LruNet::new(*config, arrays), context, residual),
        MixerConfig::S5(config) => recurrent(S5Net::new(*config, arrays), context, residual),
        MixerConfig::ExpRnn(_) => recurrent(ExpRnnNet::new(arrays), context, residual),
        MixerConfig::LipschitzRnn(config) => {
            recurrent(LipschitzRnnNet::new(*config, h, arrays), context, residual)
        }
        MixerConfig::OdeRnn(config) => {
            recurrent(OdeRnnNet::new(*config, h, arrays), context, residual)
        }
        MixerConfig::Ckconv(config) => {
            let mixer = ckconv::CkconvMixer::new(*config, context, arrays);
            Ok((Box::new(mixer), Around::Residual(residual)))
        }
        MixerConfig::Bigbird(config) => {
            let mixer = bigbird::BigbirdMixer::new(*config, context, arrays)?;
            Ok((Box::new(mixer), Around::Residual(residual)))
        }
        MixerConfig::Reformer(config) => {
            let mixer = reformer::ReformerMixer::new(*config, context, arrays)?;
            Ok((Box::new(mixer), Around::Residual(residual)))
        }
        MixerConfig::HTransformer1d(config) => {
            let mixer = h_transformer_1d::HTransformer1dMixer::new(*config, context, arrays)?;
            Ok((Box::new(mixer), Around::Residual(residual)))
        }
        MixerConfig::Nrde(config) => {
            let mixer = nrde::NrdeMixer::new(*config, context, arrays)?;
            Ok((Box::new(mixer), Around::Residual(residual)))
        }
        MixerConfig::LinearAttention(config) => {
            let mixer = KernelisedMixer::linear_attention(*config, context, arrays)?;
            Ok((Box::new(mixer), Around::Residual(residual)))
        }
        MixerConfig::Performer(config) => {
            let mixer = KernelisedMixer::performer(*config, context, arrays)?;
            Ok((Box::new(mixer), Around::Residual(residual)))
        }
        MixerConfig::Fnet(config) => {
            let mixer = FnetMixer { config: *config, context };
            Ok((Box::new(mixer), Around::Residual(residual)))
        }
        MixerConfig::Nystrom(config) => {
            let mixer = Whole(nystrom::NystromMixer::new(*config, context, arrays)?);
            Ok((Box::new(mixer), Around::Residual(residual)))
        }
        MixerConfig::Luna(config) => {
            let mixer = Whole(luna::LunaMixer::new(*config, context, arrays)?);
            Ok((Box::new(mixer), Around::Residual(residual)))
        }
        MixerConfig::WaveganD(_) => unreachable!("a stack of its own has no blocks"),
    }
}

fn recurrent(
    net: impl Net,
    context: MixerContext,
    residual: Residual,
) -> Result<(Box<dyn SequenceMixer>, Around)> {
    let mixer = recurrent::RecurrentMixer::new(net, context)?;
    Ok((Box::new(mixer), Around::Residual(residual)))
}

/// A map of sequences `[L, H]` -> `[L, H]`, of whole ones and position by position.
pub(crate) trait SequenceMixer: Send + Sync {
    /// The most positions of a whole sequence; `None`: any number.
    fn max_len(&self) -> Option<Limit>;

    /// What does not depend on the input, for sequences of length l; may be empty.
    fn prepare(&self, l: usize) -> Result<Vec<f32>>;

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
    fn max_steps(&self) -> Option<Limit> {
        self.max_len()
    }

    /// A stream before its first position.
    ///
    /// # Errors
    /// [`Error::CannotStream`](crate::Error::CannotStream) with the reason.
    fn state(&self) -> Result<Box<dyn MixerState>>;

    /// The next position of B streams, whose state of this mixer is that of `layer`: u `[B, H]` -> v `[B, H]`.
    fn step(&self, streams: &mut [State], layer: usize, u: &[f32], v: &mut [f32]) -> Result<()>;

    /// The next positions of one stream, u `[L, H]` -> v `[L, H]`: equal to single steps bit for bit.
    fn run(&self, state: &mut dyn MixerState, u: &[f32], v: &mut [f32]) -> Result<()>;

    /// Appends a state to `bytes`.
    fn write_state(&self, state: &dyn MixerState, bytes: &mut Vec<u8>) -> Result<()>;

    /// The state after `position` steps that [`Self::write_state`] wrote.
    fn read_state(&self, position: usize, bytes: &mut Bytes<'_>) -> Result<Box<dyn MixerState>>;

    /// Becomes the same map of input with r times the step: lengths are divided by r.
    ///
    /// # Errors
    /// If it has no step.
    fn set_step(&mut self, r: f64) -> Result<()>;

    /// The convolution kernels `[C, H, taps]` for sequences of length l, where there are any.
    fn kernel(&self, _l: usize) -> Option<Result<Vec<f32>>> {
        None
    }
}

/// What a mixer needs besides its numbers; each has a type of its own.
pub(crate) type Workspace = Box<dyn Any + Send + Sync>;

/// An end that sequences have.
pub(crate) struct Limit {
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
