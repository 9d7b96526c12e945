//! Mixers: what maps sequences along their length. One file each.
//!
//! [`Block`](crate::Block), [`Model`](crate::Model), [`Carry`](crate::Carry), inspection and checkpoints talk to
//! [`SequenceMixer`] alone. A new mixer is a file here that implements it, and a line in the list of [`Mixer`]; its
//! settings and tensors are declared in `dss_format::mixer`.

mod attention;
mod bigbird;
mod ckconv;
mod dss;
mod exp_rnn;
mod fnet;
mod fused_attention;
mod gru;
mod h_transformer_1d;
mod heads;
mod kernelised;
mod linear_attention;
mod lipschitz_rnn;
mod lru;
mod lstm;
mod luna;
mod mega_ema;
mod modes;
mod nrde;
mod nystrom;
mod ode_rnn;
mod performer;
mod portrait;
mod recurrent;
mod reformer;
mod s4;
mod s4d;
mod s5;
mod state;
mod state_space;

use std::fmt::Debug;
use std::sync::Arc;

use burn::module::{Module, Param, ParamId};
use burn::tensor::{Device, Tensor, TensorData};
use dss_format::{MixerConfig, MixerContext, ModelConfig};
use rand_chacha::ChaCha8Rng;

use crate::dispatch;
use crate::dropout::LayerKey;
use crate::error::{Error, Result};
use crate::linear::Linear;
use crate::norm::Norm;
use crate::ops::{BatchStats, NormMode};
use crate::prepared::Prepared;
use crate::random::stream;

pub use attention::{AttentionLayer, Projection};
pub use bigbird::BigbirdLayer;
pub use ckconv::{CkconvLayer, WeightNormed};
pub use dss::DssLayer;
pub use exp_rnn::ExpRnnLayer;
pub use fnet::FnetLayer;
pub use gru::GruLayer;
pub use h_transformer_1d::HTransformer1dLayer;
pub use linear_attention::LinearAttentionLayer;
pub use lipschitz_rnn::LipschitzRnnLayer;
pub use lru::LruLayer;
pub use lstm::LstmLayer;
pub use luna::LunaLayer;
pub use mega_ema::MegaEmaLayer;
pub use modes::{Eigenvalue, ModeStep, Modes};
pub use nrde::{NrdeLayer, log_signatures};
pub use nystrom::{HeadConvolution, NystromLayer, pseudo_inverse};
pub use ode_rnn::OdeRnnLayer;
pub use performer::PerformerLayer;
pub use portrait::{Portrait, StableEdge, Subject};
pub use reformer::ReformerLayer;
pub use s4::S4Layer;
pub use s4d::S4dLayer;
pub use s5::S5Layer;
pub use state::MixerState;

macro_rules! mixers {
    ($($kind:ident($layer:ident),)*; stacks $($stack:ident),*) => {
        /// The mixer of a block.
        #[derive(Module, Debug)]
        #[allow(clippy::large_enum_variant, reason = "there is one per layer")]
        pub enum Mixer {
            $(#[doc = concat!("[`MixerConfig::", stringify!($kind), "`].")] $kind($layer),)*
        }

        impl Mixer {
            /// The mixer of `config` with new numbers.
            pub(crate) fn init(config: &MixerConfig, context: MixerContext, init: &Init) -> Result<Self> {
                Ok(match config {
                    $(MixerConfig::$kind(config) => Self::$kind($layer::init(config, context, init)?),)*
                    $(MixerConfig::$stack(_) => return Err(not_a_mixer(config)),)*
                })
            }

            /// What every mixer can do.
            pub fn get(&self) -> &dyn SequenceMixer {
                match self {
                    $(Self::$kind(layer) => layer,)*
                }
            }
        }

        $(impl HasContext for $layer {
            fn context(&self) -> &MixerContext {
                &self.context
            }
        })*
    };
}

mixers! {
    Dss(DssLayer),
    S4(S4Layer),
    S4d(S4dLayer),
    Attention(AttentionLayer),
    Gru(GruLayer),
    Lstm(LstmLayer),
    Lru(LruLayer),
    S5(S5Layer),
    MegaEma(MegaEmaLayer),
    ExpRnn(ExpRnnLayer),
    LipschitzRnn(LipschitzRnnLayer),
    OdeRnn(OdeRnnLayer),
    Nrde(NrdeLayer),
    Ckconv(CkconvLayer),
    LinearAttention(LinearAttentionLayer),
    Performer(PerformerLayer),
    Fnet(FnetLayer),
    Bigbird(BigbirdLayer),
    Reformer(ReformerLayer),
    HTransformer1d(HTransformer1dLayer),
    Nystrom(NystromLayer),
    Luna(LunaLayer),
    // Made of stages, not of blocks with a mixer: see [`crate::stage`].
    ; stacks WaveganD
}

fn not_a_mixer(config: &MixerConfig) -> Error {
    let what = format!("{} is a whole stack and not a mixer: make a Model of it", config.kind());
    Error::refused(what)
}

/// A part of a model.
pub trait HasContext {
    /// What it knows of the model around it.
    fn context(&self) -> &MixerContext;
}

/// A map of sequences `[B, L, H]` -> `[B, L, H]`.
pub trait SequenceMixer: HasContext + Debug {
    /// Sequences of length l are possible.
    fn check_len(&self, l: usize) -> Result<()> {
        at_least_one(l)
    }

    /// What does not depend on the batch, for sequences of length l: computed once and used by several passes.
    ///
    /// # Errors
    /// As [`Self::check_len`].
    fn prepare(&self, l: usize) -> Result<Prepared> {
        self.check_len(l)?;
        Ok(Prepared::default())
    }

    /// Whole sequences u `[B, L, H]` -> `[B, L, H]`, without norm and residual.
    fn mix(&self, u: Tensor<3>, prepared: &Prepared, pass: &Pass) -> Tensor<3>;

    /// The same beside a second stream `[B, l, H]` that passes from layer to layer, where the mixer has one.
    fn mix_beside(
        &self,
        u: Tensor<3>,
        _side: &mut Option<Tensor<3>>,
        prepared: &Prepared,
        pass: &Pass,
    ) -> Tensor<3> {
        self.mix(u, prepared, pass)
    }

    /// The whole block around the mixer, norm and residual included, where that is one operation.
    fn block(
        &self,
        _x: &Tensor<3>,
        _prepared: &Prepared,
        _pass: &Pass,
        _norm: &BlockNorm,
    ) -> Option<(Tensor<3>, Option<BatchStats>)> {
        None
    }

    /// `batch` streams before their first step.
    ///
    /// # Errors
    /// Why this mixer takes whole sequences only.
    fn state(&self, batch: usize) -> Result<MixerState>;

    /// The next position of all streams: `[B, H]` -> `[B, H]`, equal to that position of [`Self::mix`] in evaluation.
    /// Not differentiable.
    fn step(&self, state: &mut MixerState, u: Tensor<2>) -> Result<Tensor<2>> {
        state.step(u)
    }

    /// The same map of input with r times the step: lengths are divided by r.
    ///
    /// # Errors
    /// If it has no step.
    fn at_step(&self, _r: f64) -> Result<Mixer> {
        Err(no_step())
    }

    /// What B streams carry from window to window before the first: see [`crate::carry`].
    ///
    /// # Errors
    /// If nothing can be carried.
    fn carried(&self, _batch: usize) -> Result<Tensor<4>> {
        Err(no_carry())
    }

    /// What a window `[B, L, H]` gets from the windows before it, `[B, L, H]`; then `carried` includes this window's
    /// inputs u.
    ///
    /// # Panics
    /// If [`Self::carried`] gives an error.
    fn carry(&self, _carried: &mut Tensor<4>, _u: Tensor<3>) -> Tensor<3> {
        panic!("{}", no_carry())
    }

    /// The convolution kernels `[C, H, taps]` for sequences of length l, where there are any.
    ///
    /// # Panics
    /// If [`Self::check_len`] refuses l.
    fn kernel(&self, _l: usize) -> Option<Tensor<3>> {
        None
    }

    /// Λ and Δ, where it is a state space: what inspection looks at.
    fn modes(&self) -> Option<Modes> {
        None
    }

    /// What else can be seen of it while it reads u `[1, L, H]` beside the second stream `[1, l, H]`, if it has one: for
    /// inspection.
    fn portraits(&self, _u: Tensor<3>, _side: Option<&Tensor<3>>) -> Vec<Portrait> {
        Vec::new()
    }

    /// Why sequences longer than those of training may be given.
    fn past_end(&self) -> String;
}

/// Sequences have at least one position.
fn at_least_one(l: usize) -> Result<()> {
    match l {
        0 => Err(Error::refused("a sequence must have at least one position")),
        _ => Ok(()),
    }
}

/// Sequences have from 1 to `len` positions: what a mixer sees depends on the length that `part` is made for.
fn up_to(part: &str, l: usize, len: usize) -> Result<()> {
    at_least_one(l)?;
    if l <= len {
        return Ok(());
    }
    let what = format!(
        "{part} made for sequences of length up to {len}, but got {l}; shorten the sequence"
    );
    Err(Error::refused(what))
}

/// There is no state of a mixer, and why.
fn whole_only(why: &str) -> Result<MixerState> {
    let what = format!("{why}: such a layer takes whole sequences only");
    Err(Error::refused(what))
}

/// No state of a mixer that sees what follows a position.
fn check_forwards(context: &MixerContext) -> Result<()> {
    match context.bidirectional {
        true => whole_only("the layer looks ahead (bidirectional)").map(|_| ()),
        false => Ok(()),
    }
}

/// A mixer whose steps have no duration cannot run at another rate.
fn no_step() -> Error {
    Error::refused("this mixer has no step, so it cannot run at another rate")
}

/// Most mixers have no state that training could carry.
fn no_carry() -> Error {
    Error::refused("this mixer carries no state from window to window")
}

/// One pass over a batch, as a mixer sees it.
#[derive(Debug, Clone, Default)]
pub struct Pass {
    /// The true length of each sequence; `None`: all of them are L.
    pub lengths: Option<Arc<[usize]>>,
    /// Dropout masks `[B, H]`, of 0 and 1/(1 − p): one for the mixer to use inside, one before the residual.
    pub masks: Option<[Tensor<2>; 2]>,
    /// `[B, L, H]`: what the windows before contribute (see [`crate::carry`]).
    pub past: Option<Tensor<3>>,
    /// What a mixer that is random in training draws from; `None` in evaluation.
    pub key: Option<LayerKey>,
}

impl Pass {
    /// x with the channels that mask `i` says dropped.
    pub(crate) fn dropped(&self, x: Tensor<3>, i: usize) -> Tensor<3> {
        match &self.masks {
            Some(masks) => x * masks[i].clone().unsqueeze_dim(1),
            None => x,
        }
    }
}

/// The norm of a block in one pass.
#[derive(Debug)]
pub struct BlockNorm<'a> {
    /// true: x + f(norm(x)); false: norm(x + f(x)).
    pub prenorm: bool,
    /// How it works in this pass.
    pub mode: NormMode,
    /// Its parameters.
    pub norm: &'a Norm,
}

/// Where the numbers of a new mixer come from.
pub(crate) struct Init<'a> {
    pub seed: u64,
    /// The name of its place in the model: random streams go by it.
    pub name: &'a str,
    pub device: &'a Device,
    /// The numbers are replaced by those of a checkpoint.
    pub replaced: bool,
}

impl Init<'_> {
    /// The random stream of a parameter.
    pub fn stream(&self, parameter: &str) -> ChaCha8Rng {
        stream(self.seed, &format!("{}.{parameter}", self.name))
    }

    /// A linear map below this mixer.
    pub fn linear(&self, name: &str, inputs: usize, outputs: usize) -> Linear {
        Linear::new(inputs, outputs, self.seed, &format!("{}.{name}", self.name), self.device)
    }
}

impl Mixer {
    /// A layer of its own, for sequences of length up to `len`. Its numbers depend on the seed alone.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use dss_nn::Mixer;
    /// use dss_nn::config::{DssConfig, ModelConfig, S4Config, Variant};
    ///
    /// # fn main() -> dss_nn::Result<()> {
    /// let device = Device::flex();
    /// let dss = DssConfig { n: 16, variant: Variant::Exp, ..DssConfig::default() };
    /// let s4 = S4Config { n: 16, ..S4Config::default() };
    /// for mixer in [dss.into(), s4.into()] {
    ///     let config = ModelConfig { h: 8, mixer, ..ModelConfig::default() };
    ///     let layer = Mixer::new(&config, 100, 0, &device)?;
    ///     let y = layer.forward(Tensor::zeros([2, 100, 8], &device)); // [B, L, H]
    ///     assert_eq!(y.dims(), [2, 100, 8]);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A setting that the mixer cannot have.
    pub fn new(config: &ModelConfig, len: usize, seed: u64, device: &Device) -> Result<Self> {
        config.validate(len)?;
        dispatch::check_device(config.form, device)?;
        let init = Init { seed, name: "mixer", device, replaced: false };
        Self::init(&config.mixer, MixerContext::new(config, len), &init)
    }

    /// Whole sequences: `[B, L, H]` -> `[B, L, H]`.
    ///
    /// # Panics
    /// If [`SequenceMixer::check_len`] refuses the length.
    pub fn forward(&self, u: Tensor<3>) -> Tensor<3> {
        let prepared = self.get().prepare(u.dims()[1]).unwrap_or_else(|error| panic!("{error}"));
        self.get().mix(u, &prepared, &Pass::default())
    }
}

/// A tensor of the module that no training changes, in the device's float type.
fn fixed<const D: usize>(values: Vec<f64>, shape: [usize; D], device: &Device) -> Param<Tensor<D>> {
    let tensor = Tensor::from_data(TensorData::new(values, shape), device);
    Param::initialized(ParamId::new(), tensor)
}

/// A parameter with another value, trained as before.
fn changed<const D: usize>(
    param: &Param<Tensor<D>>,
    f: impl FnOnce(Tensor<D>) -> Tensor<D>,
) -> Param<Tensor<D>> {
    param.clone().map(|x| {
        let trained = x.is_require_grad();
        f(x.detach()).detach().set_require_grad(trained)
    })
}
