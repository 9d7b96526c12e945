//! The block: a mixer, its norm, dropout and the residual, and optionally a feed-forward part.

use std::sync::Arc;

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use dss_format::{MixerContext, ModelConfig};

use crate::dispatch;
use crate::dropout::{DropoutKey, LayerKey};
use crate::error::Result;
use crate::feed_forward::FeedForward;
use crate::mixer::{BlockNorm, Init, Mixer, Pass};
use crate::norm::Norm;
use crate::ops::BatchStats;
use crate::prepared::Prepared;

/// Whether a pass trains or evaluates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Running statistics, no dropout.
    Eval,
    /// Statistics of the batch, dropout.
    Train {
        /// What the dropout masks are drawn from.
        dropout: DropoutKey,
    },
}

/// x + f(norm(x)) or norm(x + f(x)), f a mixer with dropout; then, where the model has one, the same with a
/// feed-forward part as f.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use dss_nn::config::{DssConfig, ModelConfig, NormKind};
/// use dss_nn::{Block, Mode};
///
/// # fn main() -> dss_nn::Result<()> {
/// let device = Device::flex();
/// let config = ModelConfig {
///     h: 8,
///     mixer: DssConfig { n: 16, ..DssConfig::default() }.into(),
///     norm: NormKind::Layer,
///     prenorm: true,
///     ..ModelConfig::default()
/// };
/// let block = Block::new(&config, 100, 0, &device)?;
/// let x = Tensor::zeros([2, 100, 8], &device); // [B, L, H]
/// let prepared = block.mixer.get().prepare(100)?;
/// let (y, _) = block.forward(x, &prepared, &[100, 60], Mode::Eval, 0);
/// assert_eq!(y.dims(), [2, 100, 8]);
/// # Ok(())
/// # }
/// ```
#[derive(Module, Debug)]
pub struct Block {
    /// The mixer.
    pub mixer: Mixer,
    /// The norm.
    pub norm: Norm,
    /// The norm of the feed-forward part.
    pub ff_norm: Option<Norm>,
    /// The feed-forward part.
    pub ff: Option<FeedForward>,
    #[module(skip)]
    config: ModelConfig,
}

impl Block {
    /// A block of its own, for sequences of length up to `len`. Its numbers depend on the seed alone.
    ///
    /// # Errors
    /// A setting that it cannot have.
    pub fn new(config: &ModelConfig, len: usize, seed: u64, device: &Device) -> Result<Self> {
        config.validate(len)?;
        dispatch::check_device(config.form, device)?;
        Self::init(config, len, &Init { seed, name: "block", device, replaced: false })
    }

    /// The block whose place in a model `init` names.
    pub(crate) fn init(config: &ModelConfig, len: usize, init: &Init) -> Result<Self> {
        let Init { seed, name, device, .. } = *init;
        let mixer = Init { name: &format!("{name}.mixer"), ..*init };
        let norm = || Norm::new(config.norm, config.norm_eps, config.h, device);
        let ff = || {
            FeedForward::new(config.h, config.ff, config.gelu, seed, &format!("{name}.ff"), device)
        };
        Ok(Self {
            mixer: Mixer::init(&config.mixer, MixerContext::new(config, len), &mixer)?,
            norm: norm(),
            ff_norm: (config.ff > 0).then(norm),
            ff: (config.ff > 0).then(ff),
            config: config.clone(),
        })
    }

    /// With r times the step.
    pub(crate) fn at_step(mut self, r: f64) -> Result<Self> {
        self.mixer = self.mixer.get().at_step(r)?;
        self.config = self.config.at_step(r)?;
        Ok(self)
    }

    /// x `[B, L, H]` -> `[B, L, H]`, and in training what its BatchNorms saw.
    ///
    /// `prepared` is the mixer's for length L, `lengths` has the true length of each sequence, `index` is the block's
    /// place in its stack: each place has dropout masks of its own.
    ///
    /// # Panics
    /// If the shapes do not fit together.
    pub fn forward(
        &self,
        x: Tensor<3>,
        prepared: &Prepared,
        lengths: &[usize],
        mode: Mode,
        index: usize,
    ) -> (Tensor<3>, Vec<BatchStats>) {
        self.forward_beside(&mut None, None, x, prepared, lengths, mode, index)
    }

    /// As [`Self::forward`], with the second stream `[B, l, H]` of mixers that have one, and with what the windows before
    /// the sequences contribute: `[B, L, H]`.
    ///
    /// # Panics
    /// As [`Self::forward`].
    #[allow(clippy::too_many_arguments, reason = "all that a pass through a layer is about")]
    pub fn forward_beside(
        &self,
        side: &mut Option<Tensor<3>>,
        past: Option<Tensor<3>>,
        x: Tensor<3>,
        prepared: &Prepared,
        lengths: &[usize],
        mode: Mode,
        index: usize,
    ) -> (Tensor<3>, Vec<BatchStats>) {
        let [_, l, h] = x.dims();
        let lengths = lengths.iter().any(|&len| len < l).then(|| Arc::from(lengths));
        let masks = self.masks(&x, h, mode, index, 0);
        let key = match mode {
            Mode::Train { dropout } => Some(LayerKey { pass: dropout, layer: index }),
            Mode::Eval => None,
        };
        let pass = Pass { lengths, masks, past, key };
        let norm = self.block_norm(&self.norm, &pass, mode);
        let (x, seen) = match self.mixer.get().block(&x, prepared, &pass, &norm) {
            Some(done) => done,
            None => {
                let mixer = self.mixer.get();
                self.residual(x, &norm, &pass, |u| mixer.mix_beside(u, side, prepared, &pass))
            }
        };
        let mut stats = Vec::from_iter(seen);
        let (Some(ff), Some(ff_norm)) = (&self.ff, &self.ff_norm) else { return (x, stats) };
        let hidden = self.masks(&x, self.config.ff, mode, index, 2).map(|[mask, _]| mask);
        let pass = Pass { masks: self.masks(&x, h, mode, index, 4), ..pass };
        let norm = self.block_norm(ff_norm, &pass, mode);
        let (x, seen) = self.residual(x, &norm, &pass, |u| ff.forward(self.config.form, u, hidden));
        stats.extend(seen);
        (x, stats)
    }

    /// x + f(norm(x)) or norm(x + f(x)), the second mask of the pass on f.
    fn residual(
        &self,
        x: Tensor<3>,
        norm: &BlockNorm,
        pass: &Pass,
        f: impl FnOnce(Tensor<3>) -> Tensor<3>,
    ) -> (Tensor<3>, Option<BatchStats>) {
        let normed = |x| norm.norm.forward(self.config.form, x, &norm.mode);
        if norm.prenorm {
            let (u, stats) = normed(x.clone());
            (x + pass.dropped(f(u), 1), stats)
        } else {
            normed(x.clone() + pass.dropped(f(x), 1))
        }
    }

    fn block_norm<'a>(&self, norm: &'a Norm, pass: &Pass, mode: Mode) -> BlockNorm<'a> {
        let lengths = pass.lengths.clone().filter(|_| self.config.mask_padding);
        let mode = norm.mode(mode != Mode::Eval, lengths);
        BlockNorm { prenorm: self.config.prenorm, mode, norm }
    }

    /// Two dropout masks `[B, width]`, those of the places `first` and `first` + 1 of this block.
    fn masks(
        &self,
        x: &Tensor<3>,
        width: usize,
        mode: Mode,
        index: usize,
        first: u64,
    ) -> Option<[Tensor<2>; 2]> {
        let p = self.config.dropout;
        match mode {
            Mode::Train { dropout } if p > 0.0 => {
                let shape = [x.dims()[0], width];
                Some(dropout.masks(index, first, p, shape, &x.device(), x.dtype()))
            }
            _ => None,
        }
    }

    /// What the mixer reads of x `[B, L, H]`, cut off from its gradients.
    pub(crate) fn mixer_input(&self, x: &Tensor<3>, mode: Mode) -> Tensor<3> {
        self.read_by_mixer(x, mode).inner()
    }

    /// The same on the device of x.
    pub(crate) fn read_by_mixer(&self, x: &Tensor<3>, mode: Mode) -> Tensor<3> {
        let x = x.clone().detach();
        if !self.config.prenorm {
            return x;
        }
        let (gamma, beta) = (self.norm.gamma.val().detach(), self.norm.beta.val().detach());
        let mode = self.norm.mode(mode != Mode::Eval, None);
        dispatch::norm(self.config.form, x, gamma, beta, &mode).0
    }

    /// The running statistics of its norms moved towards the next of `stats`.
    pub(crate) fn update<'a>(
        mut self,
        stats: &mut impl Iterator<Item = &'a BatchStats>,
        share: f64,
    ) -> Self {
        self.norm = self.norm.update(stats, share);
        self.ff_norm = self.ff_norm.map(|norm| norm.update(stats, share));
        self
    }
}
