//! The whole model: encoder, blocks, head.

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Device, FloatDType, Tensor};

use crate::block::{Block, Mode};
use crate::carry::Carry;
use crate::config::{Io, ModelConfig};
use crate::encoder::{Encoder, Input};
use crate::error::{Error, Result};
use crate::head::Head;
use crate::kernels::Kernels;
use crate::norm::Norm;
use crate::ops::BatchStats;

/// A stack of blocks between an encoder and a head.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use dss_nn::config::{InputKind, Io, ModelConfig, OutputKind};
/// use dss_nn::{Input, Mode};
///
/// # fn main() -> dss_nn::Result<()> {
/// let device = Device::flex();
/// let config = ModelConfig { layers: 2, h: 16, n: 8, ..ModelConfig::default() };
/// let io = Io {
///     input: InputKind::Values { channels: 1 },
///     output: OutputKind::Sequence { outputs: 10 },
///     len: 64,
/// };
/// let model = config.init(&io, 7, &device)?;
/// let kernels = model.kernels(64);
/// let input = Input::Values(Tensor::zeros([3, 64, 1], &device));
/// let output = model.forward(input, &[64, 50, 1], &kernels, Mode::Eval);
/// assert_eq!(output.logits.dims(), [3, 10]);
/// # Ok(())
/// # }
/// ```
#[derive(Module, Debug)]
pub struct Model {
    /// The first layer.
    pub encoder: Encoder,
    /// The blocks.
    pub layers: Vec<Block>,
    /// The norm after the blocks of a pre-norm stack.
    pub norm: Option<Norm>,
    /// The last layer.
    pub head: Head,
    #[module(skip)]
    config: ModelConfig,
    #[module(skip)]
    io: Io,
}

/// What a pass gives.
#[derive(Debug, Clone)]
pub struct Output {
    /// `[B, O]`; per position `[B·L, O]`; per pair `[B/2, O]`.
    pub logits: Tensor<2>,
    /// What the BatchNorms saw, in the order of the layers; empty in evaluation and without BatchNorm.
    pub stats: Vec<BatchStats>,
}

impl ModelConfig {
    /// A new model. Its numbers depend on `seed` and the names of the parameters alone.
    pub fn init(&self, io: &Io, seed: u64, device: &Device) -> Result<Model> {
        let mut model = self.init_uncorrected(io, seed, device)?;
        for block in &mut model.layers {
            block.mixer = block.mixer.clone().corrected()?;
        }
        Ok(model)
    }

    /// The same before [`crate::SsmLayer::corrected`]: for numbers that are replaced anyway.
    pub(crate) fn init_uncorrected(&self, io: &Io, seed: u64, device: &Device) -> Result<Model> {
        self.validate()?;
        io.validate()?;
        let block = self.block(io.len, seed);
        let layers = (0..self.layers).map(|i| block.init_named(&format!("layers.{i}"), device));
        Ok(Model {
            encoder: Encoder::new(io.input, self.h, seed, device),
            layers: layers.collect::<Result<_>>()?,
            norm: self
                .prenorm
                .then(|| Norm::new(self.norm, self.h, device).with_gain(self.last_gain)),
            head: Head::new(io.output, self.h, seed, device),
            config: self.clone(),
            io: *io,
        })
    }
}

impl Model {
    /// What this model is.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// Its two ends and its training length.
    pub fn io(&self) -> &Io {
        &self.io
    }

    /// The device of its parameters.
    pub fn device(&self) -> Device {
        self.layers[0].mixer.d.val().device()
    }

    /// Sequences of length l are possible: see [`crate::SsmLayer::check_len`].
    pub fn check_len(&self, l: usize) -> Result<()> {
        self.layers.iter().try_for_each(|block| block.mixer.check_len(l))
    }

    /// The kernels of all layers for sequences of length l.
    ///
    /// # Panics
    /// If [`Self::check_len`] refuses l.
    pub fn kernels(&self, l: usize) -> Kernels {
        Kernels { layers: self.layers.iter().map(|block| block.mixer.kernel(l)).collect(), l }
    }

    /// One pass over a batch. `lengths`: the true length of each sequence; what stands beyond never changes a result
    /// (except, in training and without `mask_padding`, through the statistics of BatchNorm).
    ///
    /// # Panics
    /// If the input is not of the model's kind, `kernels` are for another length, or there is not one length per
    /// sequence, each from 1 to L.
    pub fn forward(
        &self,
        input: Input,
        lengths: &[usize],
        kernels: &Kernels,
        mode: Mode,
    ) -> Output {
        self.answer(lengths, self.hidden(input, lengths, kernels, mode))
    }

    /// One pass over the next windows of B streams: `carry` has what their layers heard before, and then also this.
    /// Gradients end at the windows' beginning.
    ///
    /// # Panics
    /// As [`Self::forward`], or if `carry` is of another batch or model.
    pub fn forward_carried(
        &self,
        input: Input,
        kernels: &Kernels,
        mode: Mode,
        carry: &mut Carry,
    ) -> Output {
        let [batch, l] = input.dims();
        let lengths = vec![l; batch];
        let hidden = self.hidden_after(Some(carry), input, &lengths, kernels, mode);
        self.answer(&lengths, hidden)
    }

    fn answer(&self, lengths: &[usize], (hidden, stats): (Tensor<3>, Vec<BatchStats>)) -> Output {
        let logits = self.head.forward(hidden, self.config.pool, lengths, self.config.form);
        Output { logits, stats }
    }

    /// The activations `[B, L, H]` before the head, and what the BatchNorms saw.
    ///
    /// # Panics
    /// As [`Self::forward`].
    pub fn hidden(
        &self,
        input: Input,
        lengths: &[usize],
        kernels: &Kernels,
        mode: Mode,
    ) -> (Tensor<3>, Vec<BatchStats>) {
        self.hidden_after(None, input, lengths, kernels, mode)
    }

    fn hidden_after(
        &self,
        mut carry: Option<&mut Carry>,
        input: Input,
        lengths: &[usize],
        kernels: &Kernels,
        mode: Mode,
    ) -> (Tensor<3>, Vec<BatchStats>) {
        let [batch, l] = input.dims();
        assert_eq!(kernels.l, l, "the kernels are for another length than the input");
        assert_eq!(lengths.len(), batch, "there must be one length per sequence");
        assert!(
            lengths.iter().all(|len| (1..=l).contains(len)),
            "lengths must be from 1 to L = {l}, but are {lengths:?}"
        );
        let mut x = self.encoder.forward(input, self.config.form);
        let mut stats = Vec::new();
        for (i, (block, k)) in self.layers.iter().zip(&kernels.layers).enumerate() {
            let past = carry.as_mut().map(|carry| carry.pass(i, block, &x, mode));
            let (y, seen) = block.forward_after(past, x, k.clone(), lengths, mode, i);
            x = y;
            stats.extend(seen);
        }
        if let Some(norm) = &self.norm {
            let padded = self.config.mask_padding && lengths.iter().any(|&len| len < l);
            let lengths = padded.then(|| lengths.into());
            let mode = norm.mode(mode != Mode::Eval, lengths);
            let (y, seen) = self.config.form.norm(x, norm.gamma.val(), norm.beta.val(), &mode);
            x = y;
            stats.extend(seen);
        }
        (x, stats)
    }

    /// The running statistics moved towards those of a pass: 0.9·running + 0.1·batch.
    ///
    /// # Panics
    /// If there are fewer statistics than BatchNorms.
    pub fn update_stats(mut self, stats: &[BatchStats]) -> Self {
        if stats.is_empty() {
            return self;
        }
        let norms = self.layers.len() + usize::from(self.norm.is_some());
        assert_eq!(stats.len(), norms, "there must be statistics for each BatchNorm");
        self.layers =
            self.layers.into_iter().zip(stats).map(|(block, seen)| block.update(seen)).collect();
        self.norm = self.norm.map(|norm| norm.update(&stats[norms - 1]));
        self
    }

    /// The same model for sequences sampled at another rate: `r` is the old rate over the new one, so at half the rate
    /// r = 2, each step covers twice the time and sequences have half the length.
    ///
    /// # Errors
    /// If r is not from 0.001 to 1000, or a layer cannot be made anew (S4 with a Δ that is too small for its length).
    pub fn at_rate(mut self, r: f64) -> Result<Self> {
        if !(1e-3..=1e3).contains(&r) {
            let what = format!("the ratio of the rates must be from 0.001 to 1000, but is {r}");
            return Err(Error::invalid("at_rate", what));
        }
        self.layers =
            self.layers.into_iter().map(|block| block.at_step(r)).collect::<Result<_>>()?;
        let layer = self.layers[0].mixer.config();
        (self.io.len, self.config.kernel_len) = (layer.len, layer.kernel_len);
        Ok(self)
    }

    /// The same model with its numbers in another float type.
    pub fn cast(self, dtype: FloatDType) -> Self {
        struct Cast(FloatDType);
        impl ModuleMapper for Cast {
            fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
                param.map(|x| {
                    let trained = x.is_require_grad();
                    x.cast(self.0).detach().set_require_grad(trained)
                })
            }
        }
        self.map(&mut Cast(dtype))
    }
}
