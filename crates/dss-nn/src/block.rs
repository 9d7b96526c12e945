//! The block: a layer, its norm, dropout and the residual.

use std::sync::Arc;

use burn::config::Config;
use burn::module::Module;
use burn::tensor::{Device, Tensor};

use crate::config::{Form, NormKind};
use crate::dropout::DropoutKey;
use crate::error::{Error, Result};
use crate::layer::{SsmLayer, SsmLayerConfig};
use crate::norm::Norm;
use crate::ops::{BatchStats, BlockParams, BlockSpec};

/// How a pass goes.
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

/// How to make a [`Block`].
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use dss_nn::block::{BlockConfig, Mode};
/// use dss_nn::config::NormKind;
/// use dss_nn::layer::SsmLayerConfig;
///
/// # fn main() -> dss_nn::Result<()> {
/// let device = Device::flex();
/// let layer = SsmLayerConfig::new(8, 16, 100); // H, N, L
/// let block = BlockConfig::new(layer).with_norm(NormKind::Layer).with_prenorm(true).init(&device)?;
/// let x = Tensor::zeros([2, 100, 8], &device); // [B, L, H]
/// let k = block.mixer.kernel(100);
/// let (y, _) = block.forward(x, k, &[100, 60], Mode::Eval, 0);
/// assert_eq!(y.dims(), [2, 100, 8]);
/// # Ok(())
/// # }
/// ```
#[derive(Config, Debug)]
pub struct BlockConfig {
    /// The layer.
    pub layer: SsmLayerConfig,
    /// Which norm.
    #[config(default = "NormKind::Batch")]
    pub norm: NormKind,
    /// true: x + f(norm(x)); false: norm(x + f(x)).
    #[config(default = false)]
    pub prenorm: bool,
    /// The chance that a channel of a sequence is dropped, in \[0, 1).
    #[config(default = 0.0)]
    pub dropout: f64,
    /// Padding stays out of BatchNorm's statistics.
    #[config(default = false)]
    pub mask_padding: bool,
}

/// x + f(norm(x)) or norm(x + f(x)), f a layer with dropout.
#[derive(Module, Debug)]
pub struct Block {
    /// The layer.
    pub mixer: SsmLayer,
    /// The norm.
    pub norm: Norm,
    #[module(skip)]
    config: BlockConfig,
}

impl BlockConfig {
    /// Every number is in its range, and the settings go together.
    pub fn validate(&self) -> Result<()> {
        if !(0.0..1.0).contains(&self.dropout) {
            let p = self.dropout;
            let what = format!("dropout must be at least 0 and below 1, but is {p}");
            return Err(Error::config(&["dropout"], what));
        }
        if self.layer.form == Form::Fused && self.norm == NormKind::LayerScalar {
            return Err(Error::config(
                &["norm", "form"],
                "norm = \"layer-scalar\" has no fused form: set form to \"auto\" or \"composed\"",
            ));
        }
        self.layer.validate()
    }

    /// A new block. Its numbers depend on the layer's seed alone.
    pub fn init(&self, device: &Device) -> Result<Block> {
        let mut block = self.init_named("block", device)?;
        block.mixer = block.mixer.corrected()?;
        Ok(block)
    }

    /// A new block whose random streams bear the name of its place in a model; see [`SsmLayer::corrected`].
    pub(crate) fn init_named(&self, name: &str, device: &Device) -> Result<Block> {
        self.validate()?;
        Ok(Block {
            mixer: self.layer.init_named(&format!("{name}.mixer"), device)?,
            norm: Norm::new(self.norm, self.layer.h, device),
            config: self.clone(),
        })
    }
}

impl Block {
    /// What this block is.
    pub fn config(&self) -> &BlockConfig {
        &self.config
    }

    /// With r times the step: see [`SsmLayer::at_step`].
    pub(crate) fn at_step(mut self, r: f64) -> Result<Self> {
        self.mixer = self.mixer.at_step(r)?;
        self.config.layer = self.mixer.config().clone();
        Ok(self)
    }

    /// x `[B, L, H]` -> `[B, L, H]`, and in training what a BatchNorm saw.
    ///
    /// `k` is the mixer's kernel at length L, `lengths` has the true length of each sequence, `index` is the block's
    /// place in its stack: each place has dropout masks of its own.
    ///
    /// # Panics
    /// If the shapes do not fit together.
    pub fn forward(
        &self,
        x: Tensor<3>,
        k: Tensor<3>,
        lengths: &[usize],
        mode: Mode,
        index: usize,
    ) -> (Tensor<3>, Option<BatchStats>) {
        self.forward_after(None, x, k, lengths, mode, index)
    }

    /// As [`Self::forward`], with what came before the sequences, as they still hear it: `[B, L, H]`.
    pub(crate) fn forward_after(
        &self,
        past: Option<Tensor<3>>,
        x: Tensor<3>,
        k: Tensor<3>,
        lengths: &[usize],
        mode: Mode,
        index: usize,
    ) -> (Tensor<3>, Option<BatchStats>) {
        let [batch, l, h] = x.dims();
        let layer = &self.config.layer;
        let padded = lengths.iter().any(|&len| len < l);
        let lengths = |wanted: bool| (wanted && padded).then(|| Arc::from(lengths));
        let p = self.config.dropout;
        let (train, masks) = match mode {
            Mode::Train { dropout } if p > 0.0 => {
                (true, Some(dropout.masks(index, p, [batch, h], &x.device(), x.dtype())))
            }
            Mode::Train { .. } => (true, None),
            Mode::Eval => (false, None),
        };
        let params = BlockParams {
            k,
            d: self.mixer.d.val(),
            out_weight: self.mixer.out.weight.val(),
            out_bias: self.mixer.out.bias.val(),
            gamma: self.norm.gamma.val(),
            beta: self.norm.beta.val(),
            past,
        };
        let spec = BlockSpec {
            prenorm: self.config.prenorm,
            norm: self.norm.mode(train, lengths(self.config.mask_padding)),
            glu: layer.glu,
            bidirectional: layer.bidirectional,
            lengths: lengths(layer.bidirectional),
            masks,
        };
        layer.form.block(x, &params, &spec)
    }

    /// What the layer reads of x `[B, L, H]`, cut off from its gradients.
    pub(crate) fn layer_input(&self, x: &Tensor<3>, mode: Mode) -> Tensor<3> {
        let x = x.clone().detach();
        if !self.config.prenorm {
            return x.inner();
        }
        let (gamma, beta) = (self.norm.gamma.val().detach(), self.norm.beta.val().detach());
        let mode = self.norm.mode(mode != Mode::Eval, None);
        self.config.layer.form.norm(x, gamma, beta, &mode).0.inner()
    }

    /// The norm's running statistics moved towards `stats`.
    pub fn update(mut self, stats: &BatchStats) -> Self {
        self.norm = self.norm.update(stats);
        self
    }
}
