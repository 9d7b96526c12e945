//! The model: its numbers, ready to run.

use std::path::Path;

use dss_format::mixer::length_at_step;
use dss_format::{
    CheckpointMeta, InputKind, MixerContext, ModelConfig, ModelFile, OutputKind, Pool, Positions,
};
use dss_kernels::frozen::{Linear, Norm, Scratch};

use crate::error::{Error, Result};
use crate::hash::Hash;
use crate::layer::Layer;
use crate::linear::{RowBuffers, TwoLayers};
use crate::mixer::LengthLimit;
use crate::positions::PositionVectors;
use crate::side::SideStream;
use crate::stage::Stack;

/// A trained model. Immutable; share it by reference or in an `Arc`.
pub struct Model {
    meta: CheckpointMeta,
    pub(crate) numbers: ModelParts,
    /// Of all numbers and settings: a state belongs to the model with the same one.
    pub(crate) hash: u64,
    /// The most positions that the blocks can see, of a whole sequence and of a stream.
    max_len: Option<LengthLimit>,
    max_steps: Option<LengthLimit>,
}

/// What a model computes with, from its input to its output.
pub(crate) struct ModelParts {
    pub encoder: Encoder,
    /// `[H]`: what is put in front of the sequence.
    pub cls: Option<Vec<f32>>,
    pub positions: PositionVectors,
    /// None in a stack of its own.
    pub layers: Vec<Layer>,
    /// What a stack of its own has in place of layers.
    pub stack: Option<Stack>,
    /// The second stream before the first layer, where there is one.
    pub side: Option<SideStream>,
    pub norm: Norm<f32>,
    pub head: Head,
}

/// The first layer.
pub(crate) enum Encoder {
    /// `[V, H]`
    Tokens(Vec<f32>),
    Values(Linear<f32>),
    /// Numbers as they are.
    Raw,
}

/// The last layer; of pairs, on [a, b, a − b, a·b] of two sequences.
pub(crate) enum Head {
    Linear(Linear<f32>),
    Hidden(TwoLayers),
}

impl Head {
    /// x `[R, in]` -> `[R, O]`.
    pub(crate) fn forward(
        &self,
        x: &[f32],
        out: &mut [f32],
        buffers: &mut RowBuffers,
    ) -> Result<()> {
        match self {
            Self::Linear(map) => Ok(map.forward(x, out, &mut buffers.scratch)?),
            Self::Hidden(maps) => maps.forward(x, out, buffers),
        }
    }
}

/// Positions of one sequence, or one position of several streams.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Input<'a> {
    /// Token ids.
    Tokens(&'a [u32]),
    /// Numbers: `[positions, channels]`.
    Values(&'a [f32]),
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model").field("meta", &self.meta).finish_non_exhaustive()
    }
}

impl Model {
    pub(crate) fn new(meta: CheckpointMeta, numbers: ModelParts, hash: u64) -> Self {
        let config = &meta.model;
        let learned = || {
            let length = config.positions_for(meta.io.len);
            let why = "it has learned one vector for each position up to there";
            (config.positions == Positions::Learned)
                .then(|| LengthLimit { length, why: why.into() })
        };
        let mixers = || numbers.layers.iter().map(|layer| &layer.mixer);
        let padded = numbers.stack.as_ref().map(|stack| LengthLimit {
            length: stack.padded_len,
            why: "its convolutions end in a map of so many positions (WaveGAN-D)".into(),
        });
        let max_len = mixers().filter_map(|mixer| mixer.max_len()).chain(learned()).chain(padded);
        let max_len = max_len.min_by_key(|limit| limit.length);
        let max_steps = mixers().filter_map(|mixer| mixer.max_steps()).chain(learned());
        let max_steps = max_steps.min_by_key(|limit| limit.length);
        Self { meta, numbers, hash, max_len, max_steps }
    }

    /// Reads the model file at `path`: a checkpoint of `dss train`, or what `dss export` made of it.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        Self::from_file(ModelFile::load(path)?)
    }

    /// The model of a file's bytes.
    ///
    /// # Errors
    /// If they are not a whole model file, or one with numbers that are not finite. Nothing is believed before it is
    /// checked, and memory stays within a small multiple of the bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::from_file(ModelFile::from_bytes(bytes)?)
    }

    /// What the file says: settings, labels, task.
    pub fn meta(&self) -> &CheckpointMeta {
        &self.meta
    }

    /// Names of the classes; empty if there are none.
    pub fn labels(&self) -> &[String] {
        &self.meta.labels
    }

    /// O: numbers in an output vector.
    pub fn outputs(&self) -> usize {
        self.meta.io.output.outputs()
    }

    /// The model for input sampled at another rate: `r` is the old rate over the new one, so at half the rate r = 2. Each
    /// step then covers r times the time, and lengths are divided by r.
    ///
    /// # Errors
    /// If r is not from 0.001 to 1000, or the model cannot follow: its positions have vectors, or its mixer no step.
    pub fn at_rate(mut self, r: f64) -> Result<Self> {
        self.meta.model = self.meta.model.at_step(r).map_err(|e| Error::input(e.to_string()))?;
        self.meta.io.len = length_at_step(self.meta.io.len, r);
        for layer in &mut self.numbers.layers {
            layer.mixer.set_step(r)?;
        }
        let mut hash = Hash(self.hash);
        hash.bytes(&r.to_bits().to_le_bytes());
        Ok(Self::new(self.meta, self.numbers, hash.0))
    }

    /// Numbers of a sequence that the head reads.
    pub(crate) fn features(&self) -> usize {
        self.config().stages(&self.meta.io).map_or(self.config().h, |stages| stages.features)
    }

    pub(crate) fn config(&self) -> &ModelConfig {
        &self.meta.model
    }

    /// C·H: how many convolution kernels each layer has; 0 if its mixer has none.
    pub fn kernels(&self) -> usize {
        let context = MixerContext::new(self.config(), self.meta.io.len);
        match self.config().mixer.settings().ssm() {
            Some(_) => context.kernels() * context.h,
            None => 0,
        }
    }

    /// The kernels of one layer for sequences of length l: `[C, H, taps]`, where taps is l unless the model cuts them.
    ///
    /// # Errors
    /// If there is no such layer, its kernels end before l, or its mixer has none.
    pub fn kernel(&self, layer: usize, l: usize) -> Result<Vec<f32>> {
        let layers = &self.numbers.layers;
        let Some(found) = layers.get(layer) else {
            let what = format!("there is no layer {layer}: the model has {}", layers.len());
            return Err(Error::input(what));
        };
        self.check_len(l)?;
        found.mixer.kernel(l).unwrap_or_else(|| Err(Error::input("this model has no kernels")))
    }

    /// The most positions of a stream; `None` if there is no end.
    pub fn max_len(&self) -> Option<usize> {
        self.max_steps.as_ref().map(|limit| limit.length)
    }

    /// Sequences of length l are possible.
    pub(crate) fn check_len(&self, l: usize) -> Result<()> {
        if l == 0 {
            return Err(Error::input("a sequence must have at least one position"));
        }
        self.check_end(&self.max_len, self.config().positions_for(l) as u64)
    }

    /// A stream at `position` may take `steps` more.
    pub(crate) fn check_steps(&self, position: u64, steps: usize) -> Result<()> {
        self.check_end(&self.max_steps, position.saturating_add(steps as u64))
    }

    fn check_end(&self, limit: &Option<LengthLimit>, positions: u64) -> Result<()> {
        match limit {
            Some(LengthLimit { length, why }) if positions > *length as u64 => {
                let length = length - self.config().positions_for(0);
                Err(Error::PastEnd { length, why: why.clone() })
            }
            _ => Ok(()),
        }
    }

    /// The model can take one position after the other, as far as its two ends go.
    pub(crate) fn check_stream(&self) -> Result<()> {
        if matches!(self.meta.io.output, OutputKind::Pair { .. }) {
            return Err(Error::cannot_stream("it compares two sequences"));
        }
        if self.numbers.stack.is_some() {
            let why = "its convolutions see what follows and shorten the sequence (WaveGAN-D)";
            return Err(Error::cannot_stream(why));
        }
        if self.config().pool == Pool::Cls {
            let why =
                "its first position, which it answers by, sees the whole sequence (pool = \"cls\")";
            return Err(Error::cannot_stream(why));
        }
        Ok(())
    }

    /// How many positions an input has, after a look at every number.
    pub(crate) fn check_input(&self, input: Input<'_>) -> Result<usize> {
        match (self.meta.io.input, input) {
            (InputKind::Tokens { vocab }, Input::Tokens(tokens)) => {
                match tokens.iter().position(|&t| t as usize >= vocab) {
                    Some(at) => Err(Error::input(format!(
                        "the token {} at {at} is not below {vocab}, the size of the vocabulary",
                        tokens[at]
                    ))),
                    None => Ok(tokens.len()),
                }
            }
            (InputKind::Values { channels }, Input::Values(values)) => {
                if !values.len().is_multiple_of(channels) {
                    let count = values.len();
                    let what =
                        format!("{count} numbers are not whole positions of {channels} each");
                    return Err(Error::input(what));
                }
                match values.iter().position(|x| !x.is_finite()) {
                    Some(at) => Err(Error::input(format!(
                        "the input has {} at position {}; every number must be finite",
                        values[at],
                        at / channels
                    ))),
                    None => Ok(values.len() / channels),
                }
            }
            (InputKind::Tokens { .. }, _) => {
                Err(Error::input("this model takes token ids, but got numbers"))
            }
            (InputKind::Values { .. }, _) => {
                Err(Error::input("this model takes numbers, but got token ids"))
            }
        }
    }

    /// `count` positions of a checked input, from `start` on.
    pub(crate) fn part<'a>(&self, input: Input<'a>, start: usize, count: usize) -> Input<'a> {
        match (self.meta.io.input, input) {
            (InputKind::Values { channels }, Input::Values(values)) => {
                Input::Values(&values[start * channels..][..count * channels])
            }
            (_, Input::Tokens(tokens)) => Input::Tokens(&tokens[start..][..count]),
            _ => unreachable!("the input was checked"),
        }
    }

    /// x: `[positions, H]` of a checked input.
    pub(crate) fn encode(
        &self,
        input: Input<'_>,
        x: &mut [f32],
        scratch: &mut Scratch<f32>,
    ) -> Result<()> {
        let h = self.config().h;
        match (&self.numbers.encoder, input) {
            (Encoder::Tokens(table), Input::Tokens(tokens)) => {
                for (x, &token) in x.chunks_exact_mut(h).zip(tokens) {
                    x.copy_from_slice(&table[token as usize * h..][..h]);
                }
                Ok(())
            }
            (Encoder::Values(map), Input::Values(values)) => Ok(map.forward(values, x, scratch)?),
            (Encoder::Raw, Input::Values(values)) => {
                x.copy_from_slice(values);
                Ok(())
            }
            _ => unreachable!("the input was checked"),
        }
    }
}
