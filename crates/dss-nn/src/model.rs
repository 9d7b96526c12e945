//! The whole model: encoder, blocks, head.

use std::borrow::Cow;

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Device, FloatDType, Tensor};
use dss_format::mixer::{Stages, length_at_step};
use dss_format::{CheckpointMeta, InputKind, ModelConfig, ModelIo, Pool, Positions};

use crate::block::{Block, Mode};
use crate::carry::Carry;
use crate::composed::position_mask;
use crate::dispatch;
use crate::encoder::{Encoder, Input, RawValues};
use crate::error::{Error, Result};
use crate::head::Head;
use crate::linear::parameter;
use crate::mixer::Init;
use crate::norm::{MOMENTUM, Norm};
use crate::ops::BatchStats;
use crate::positions;
use crate::prepared::PreparedModel;
use crate::side::SideStream;
use crate::stage::Stage;

/// A stack of blocks, or of stages that shorten the sequence, between an encoder and a head.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use dss_nn::config::{InputKind, ModelIo, ModelConfig, OutputKind};
/// use dss_nn::{Input, Mode, Model};
///
/// # fn main() -> dss_nn::Result<()> {
/// let device = Device::flex();
/// let config = ModelConfig { layers: 2, h: 16, ..ModelConfig::default() };
/// let io = ModelIo {
///     input: InputKind::Values { channels: 1 },
///     output: OutputKind::Sequence { outputs: 10 },
///     len: 64,
/// };
/// let model = Model::new(&config, &io, 7, &device)?;
/// let prepared = model.prepare(64);
/// let input = Input::Values(Tensor::zeros([3, 64, 1], &device));
/// let output = model.forward(input, &[64, 50, 1], &prepared, Mode::Eval);
/// assert_eq!(output.logits.dims(), [3, 10]);
/// # Ok(())
/// # }
/// ```
#[derive(Module, Debug)]
pub struct Model {
    /// The first layer.
    pub encoder: Encoder,
    /// The blocks; none in a stack of its own.
    pub layers: Vec<Block>,
    /// What a model without blocks has instead of them.
    pub stages: Vec<Stage>,
    /// The start of the second stream, where the mixers carry one from layer to layer.
    pub side: Option<SideStream>,
    /// The norm after the blocks of a pre-norm stack.
    pub norm: Option<Norm>,
    /// The last layer.
    pub head: Head,
    /// The extra first position of cls pooling: `[H]`, 0 at first.
    pub cls: Option<Param<Tensor<1>>>,
    /// Learned positions: `[L, H]`.
    pub positions: Option<Param<Tensor<2>>>,
    #[module(skip)]
    config: ModelConfig,
    #[module(skip)]
    io: ModelIo,
    /// The length that the stages pad their input to.
    #[module(skip)]
    stack_len: usize,
}

/// The result of a pass.
#[derive(Debug, Clone)]
pub struct Output {
    /// `[B, O]`; per position `[B·L, O]`; per pair `[B/2, O]`.
    pub logits: Tensor<2>,
    /// The batch statistics of the BatchNorms, in the order of the layers; empty in evaluation and without BatchNorm.
    pub stats: Vec<BatchStats>,
}

impl Model {
    /// A new model. Its numbers depend on `seed` and the names of the parameters alone.
    ///
    /// # Errors
    /// A setting that it cannot have.
    pub fn new(config: &ModelConfig, io: &ModelIo, seed: u64, device: &Device) -> Result<Self> {
        Self::init(config, io, seed, device, false)
    }

    /// The same; with `replaced`, for numbers that a checkpoint's replace.
    pub(crate) fn init(
        config: &ModelConfig,
        io: &ModelIo,
        seed: u64,
        device: &Device,
        replaced: bool,
    ) -> Result<Self> {
        config.validate_for(io)?;
        dispatch::check_device(config.form, device)?;
        let h = config.h;
        let block = |i: usize| {
            let name = &format!("layers.{i}");
            Block::init(config, io.len, &Init { seed, name, device, replaced })
        };
        let last_norm = || Norm::new(config.norm, config.norm_eps, h, device);
        let stages = config.stages(io);
        let encoder = match (&stages, io.input) {
            (Some(stages), InputKind::Values { channels }) if !stages.encoded => {
                Encoder::Raw(RawValues { channels })
            }
            _ => Encoder::new(io.input, h, seed, device),
        };
        let (layers, features, stack_len) = match stages {
            Some(Stages { features, padded_len, .. }) => (Vec::new(), features, padded_len),
            None => ((0..config.layers).map(block).collect::<Result<_>>()?, h, 0),
        };
        let side = config.mixer.settings().side_stream();
        Ok(Self {
            encoder,
            layers,
            stages: Stage::all(config, io, seed, device),
            side: side.map(|l| SideStream::new(l, h, seed, device)),
            norm: config.has_last_norm().then(|| last_norm().with_gain(config.last_gain)),
            head: Head::of_features(features, config, io.output, seed, device),
            cls: (config.pool == Pool::Cls).then(|| parameter(vec![0.0; h], [h], device)),
            positions: (config.positions == Positions::Learned)
                .then(|| positions::learned(config.positions_for(io.len), h, seed, device)),
            config: config.clone(),
            io: *io,
            stack_len,
        })
    }

    /// The settings of this model.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// Its two ends and its training length.
    pub fn io(&self) -> &ModelIo {
        &self.io
    }

    /// The description of this model in a checkpoint, without a task.
    pub fn meta(&self) -> CheckpointMeta {
        CheckpointMeta::new(&self.config, &self.io)
    }

    /// The device of its parameters.
    pub fn device(&self) -> Device {
        self.some_parameter().device()
    }

    /// A parameter of the first layer or stage.
    fn some_parameter(&self) -> Tensor<1> {
        let of_block = self.layers.first().map(|block| block.norm.gamma.val());
        let of_stage = || self.stages.first().map(|stage| stage.down.conv.bias.val());
        of_block.or_else(of_stage).expect("a model has at least one layer")
    }

    /// Sequences of length l are possible.
    ///
    /// # Errors
    /// Why not, and what to do.
    pub fn check_len(&self, l: usize) -> Result<()> {
        if self.config.positions == Positions::Learned && l > self.io.len {
            let what = format!(
                "this model has learned positions for sequences of length up to {}, but got {l}; shorten the sequence",
                self.io.len
            );
            return Err(Error::refused(what));
        }
        if !self.stages.is_empty() && !(1..=self.stack_len).contains(&l) {
            let what = format!(
                "this model takes sequences of 1 to {} positions, but got {l}; shorten the sequence",
                self.stack_len
            );
            return Err(Error::refused(what));
        }
        let l = self.config.positions_for(l);
        self.layers.iter().try_for_each(|block| block.mixer.get().check_len(l))
    }

    /// What the mixers of all layers prepare for sequences of length l.
    ///
    /// # Panics
    /// If [`Self::check_len`] refuses l.
    pub fn prepare(&self, l: usize) -> PreparedModel {
        self.check_len(l).unwrap_or_else(|error| panic!("{error}"));
        let inner = self.config.positions_for(l);
        let prepared = self.layers.iter().map(|block| block.mixer.get().prepare(inner));
        let layers = prepared.collect::<Result<_>>().unwrap_or_else(|error| panic!("{error}"));
        PreparedModel { layers, l: inner }
    }

    /// The same for shorter sequences, of length l.
    ///
    /// # Panics
    /// If `prepared` is for shorter ones than l.
    pub fn cut(&self, prepared: &PreparedModel, l: usize) -> PreparedModel {
        prepared.cut(self.config.positions_for(l))
    }

    /// One pass over a batch. `lengths`: the true length of each sequence; padding beyond it never changes a result
    /// (except, in training and without `mask_padding`, through the statistics of BatchNorm).
    ///
    /// # Panics
    /// If the input is not of the model's kind, `prepared` is for another length, or there is not one length per
    /// sequence, each from 1 to L.
    pub fn forward(
        &self,
        input: Input,
        lengths: &[usize],
        prepared: &PreparedModel,
        mode: Mode,
    ) -> Output {
        self.answer(lengths, self.hidden(input, lengths, prepared, mode))
    }

    /// One pass over the next windows of B streams: `carry` has the states of their layers after the windows before, and
    /// then after these. Gradients end at the windows' beginning.
    ///
    /// # Panics
    /// As [`Self::forward`], or if `carry` is of another batch or model.
    pub fn forward_carried(
        &self,
        input: Input,
        prepared: &PreparedModel,
        mode: Mode,
        carry: &mut Carry,
    ) -> Output {
        let [batch, l] = input.dims();
        let lengths = vec![l; batch];
        let hidden = self.hidden_after(Some(carry), input, &lengths, prepared, mode);
        self.answer(&lengths, hidden)
    }

    fn answer(&self, lengths: &[usize], (hidden, stats): (Tensor<3>, Vec<BatchStats>)) -> Output {
        let logits = match self.stages.last() {
            Some(stage) => self.head.of_vectors(stage.flatten(hidden)),
            None => self.head.forward(hidden, &self.config, lengths),
        };
        Output { logits, stats }
    }

    /// The activations `[B, L, H]` before the head, and what the BatchNorms saw. Stages leave fewer positions and more
    /// channels.
    ///
    /// # Panics
    /// As [`Self::forward`].
    pub fn hidden(
        &self,
        input: Input,
        lengths: &[usize],
        prepared: &PreparedModel,
        mode: Mode,
    ) -> (Tensor<3>, Vec<BatchStats>) {
        self.hidden_after(None, input, lengths, prepared, mode)
    }

    fn hidden_after(
        &self,
        mut carry: Option<&mut Carry>,
        input: Input,
        lengths: &[usize],
        prepared: &PreparedModel,
        mode: Mode,
    ) -> (Tensor<3>, Vec<BatchStats>) {
        let [batch, l] = input.dims();
        assert_eq!(lengths.len(), batch, "there must be one length per sequence");
        assert!(
            lengths.iter().all(|len| (1..=l).contains(len)),
            "lengths must be from 1 to L = {l}, but are {lengths:?}"
        );
        let (mut x, lengths) = self.embedded(input, lengths);
        let [_, l, _] = x.dims();
        assert_eq!(prepared.l, l, "this was prepared for a different length of input");
        let mut stats = Vec::new();
        if !self.stages.is_empty() {
            x = self.padded(x, &lengths);
        }
        for (i, stage) in self.stages.iter().enumerate() {
            let (y, seen) = stage.forward(x, mode, i);
            x = y;
            stats.extend(seen);
        }
        let (mut x, mut side) = self.with_side(x);
        for (i, (block, prepared)) in self.layers.iter().zip(&prepared.layers).enumerate() {
            let past = carry.as_mut().map(|carry| carry.pass(i, block, &x, mode));
            let (y, seen) = block.forward_beside(&mut side, past, x, prepared, &lengths, mode, i);
            x = y;
            stats.extend(seen);
        }
        if let Some(norm) = &self.norm {
            let padded = self.config.mask_padding && lengths.iter().any(|&len| len < l);
            let lengths = padded.then(|| (&*lengths).into());
            let mode = norm.mode(mode != Mode::Eval, lengths);
            let (y, seen) = norm.forward(self.config.form, x, &mode);
            x = y;
            stats.extend(seen);
        }
        (x, stats)
    }

    /// x `[B, L, H]` as the first layer gets it, and the second stream `[B, l, H]` of mixers that carry one.
    pub(crate) fn with_side(&self, x: Tensor<3>) -> (Tensor<3>, Option<Tensor<3>>) {
        let Some(start) = &self.side else { return (x, None) };
        let placed = self.config.positions != Positions::None;
        let [x, p] = start.begin(x, placed, self.config.form);
        (x, Some(p))
    }

    /// The input as the first layer gets it, `[B, L, H]`, with cls and positions where the model has them, and the lengths.
    pub(crate) fn embedded<'a>(
        &self,
        input: Input,
        lengths: &'a [usize],
    ) -> (Tensor<3>, Cow<'a, [usize]>) {
        let mut x = self.encoder.forward(input, self.config.form);
        let mut lengths = Cow::from(lengths);
        if let Some(cls) = &self.cls {
            x = positions::prepend(cls.val(), x);
            lengths.to_mut().iter_mut().for_each(|len| *len += 1);
        }
        let [_, l, h] = x.dims();
        x = match (&self.positions, self.config.positions) {
            (Some(table), _) => x + table.val().narrow(0, 0, l).unsqueeze(),
            (None, Positions::Fixed) => {
                let (device, dtype) = (x.device(), x.dtype());
                x + positions::fixed(l, h, &device, dtype)
            }
            _ => x,
        };
        (x, lengths)
    }

    /// x `[B, L, C]` as the stages read it: 0 beyond each length, and up to the length of all sequences.
    fn padded(&self, x: Tensor<3>, lengths: &[usize]) -> Tensor<3> {
        let [batch, l, c] = x.dims();
        let (device, dtype) = (x.device(), x.dtype());
        let x = match lengths.iter().any(|&len| len < l) {
            true => x * position_mask(lengths, l, &device, dtype),
            false => x,
        };
        let rest = Tensor::zeros([batch, self.stack_len - l, c], (&device, dtype));
        Tensor::cat(vec![x, rest], 1)
    }

    /// The running statistics after a step of a training: those of the pass count with [`MOMENTUM`].
    ///
    /// # Panics
    /// If there are fewer statistics than BatchNorms.
    pub fn update_stats(self, stats: &[BatchStats]) -> Self {
        self.blend_stats(stats, MOMENTUM)
    }

    /// The running statistics moved towards those of a pass: (1 − share)·running + share·batch.
    ///
    /// # Panics
    /// If there are fewer statistics than BatchNorms.
    pub fn blend_stats(mut self, stats: &[BatchStats], share: f64) -> Self {
        if stats.is_empty() {
            return self;
        }
        let mut stats = stats.iter();
        self.stages =
            self.stages.into_iter().map(|stage| stage.update(&mut stats, share)).collect();
        self.layers =
            self.layers.into_iter().map(|block| block.update(&mut stats, share)).collect();
        self.norm = self.norm.map(|norm| norm.update(&mut stats, share));
        assert!(stats.next().is_none(), "there must be one statistic for each BatchNorm");
        self
    }

    /// The same model for sequences sampled at another rate: `r` is the old rate over the new one, so at half the rate
    /// r = 2, each step covers twice the time and sequences have half the length.
    ///
    /// # Errors
    /// If r is not from 0.001 to 1000, or a mixer cannot follow (S4 with a Δ that is too small for its length).
    pub fn at_rate(mut self, r: f64) -> Result<Self> {
        self.config = self.config.at_step(r)?;
        self.layers =
            self.layers.into_iter().map(|block| block.at_step(r)).collect::<Result<_>>()?;
        self.io.len = length_at_step(self.io.len, r);
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
