//! The model: its numbers, ready to run.

use std::path::Path;
use std::sync::OnceLock;

use dss_kernels::frozen::{Linear, Norm, Scratch};

use crate::config::{InputKind, Meta, ModelConfig, OutputKind};
use crate::error::{Error, Result};
use crate::file::ModelFile;
use crate::hash::Hash;
use crate::layer::Layer;
use crate::mixer::{Recurrent, Sizes};

/// A trained model. Immutable; share it by reference or in an `Arc`.
pub struct Model {
    meta: Meta,
    pub(crate) encoder: Encoder,
    pub(crate) layers: Vec<Layer>,
    pub(crate) norm: Norm<f32>,
    pub(crate) head: Head,
    /// Of all numbers and settings: a state belongs to the model with the same one.
    pub(crate) hash: u64,
    /// Made when the first stream begins.
    recurrent: OnceLock<dss_kernels::Result<Vec<Recurrent>>>,
}

/// The first layer.
pub(crate) enum Encoder {
    /// `[V, H]`
    Tokens(Vec<f32>),
    Values(Linear<f32>),
}

/// The last layer.
pub(crate) enum Head {
    Linear(Linear<f32>),
    /// A GELU network on [a, b, a − b, a·b] of two sequences.
    Pair {
        hidden: Linear<f32>,
        out: Linear<f32>,
    },
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
    pub(crate) fn new(
        meta: Meta,
        encoder: Encoder,
        layers: Vec<Layer>,
        norm: Norm<f32>,
        head: Head,
        hash: u64,
    ) -> Self {
        Self { meta, encoder, layers, norm, head, hash, recurrent: OnceLock::new() }
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
    pub fn meta(&self) -> &Meta {
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
    /// If r is not from 0.001 to 1000.
    pub fn at_rate(mut self, r: f64) -> Result<Self> {
        if !(1e-3..=1e3).contains(&r) {
            let what = format!("the ratio of the rates must be from 0.001 to 1000, but is {r}");
            return Err(Error::input(what));
        }
        let scaled = |len: usize| ((len as f64 / r).ceil() as usize).max(usize::from(len > 0));
        let old = self.meta.clone();
        self.meta.io.len = scaled(old.io.len);
        self.meta.model.kernel_len = scaled(old.model.kernel_len);
        let [old, new] = [&old, &self.meta].map(|m| Sizes { config: &m.model, len: m.io.len });
        for layer in &mut self.layers {
            layer.mixer.at_step(old, new, r)?;
        }
        let mut hash = Hash(self.hash);
        hash.bytes(&r.to_bits().to_le_bytes());
        Ok(Self { hash: hash.0, recurrent: OnceLock::new(), ..self })
    }

    pub(crate) fn config(&self) -> &ModelConfig {
        &self.meta.model
    }

    pub(crate) fn sizes(&self) -> Sizes<'_> {
        Sizes { config: &self.meta.model, len: self.meta.io.len }
    }

    /// The kernels of one layer for sequences of length l: `[C, H, taps]`, where taps is l unless the model cuts them.
    ///
    /// # Errors
    /// If there is no such layer, or its kernels end before l.
    pub fn kernel(&self, layer: usize, l: usize) -> Result<Vec<f32>> {
        let Some(found) = self.layers.get(layer) else {
            let what = format!("there is no layer {layer}: the model has {}", self.layers.len());
            return Err(Error::input(what));
        };
        self.check_len(l)?;
        found.mixer.kernel(self.sizes(), self.config().taps(l))
    }

    /// The most positions of a stream; `None` if it may go on for ever.
    pub fn max_len(&self) -> Option<usize> {
        let cut = Some(self.config().kernel_len).filter(|&len| len > 0);
        match self.growing_modes() {
            0 => cut,
            _ => Some(self.config().taps(self.meta.io.len)),
        }
    }

    fn growing_modes(&self) -> usize {
        self.layers.iter().map(|layer| layer.mixer.growing_modes(self.config())).sum()
    }

    /// Sequences of length l are possible.
    pub(crate) fn check_len(&self, l: usize) -> Result<()> {
        if l == 0 {
            return Err(Error::input("a sequence must have at least one position"));
        }
        let length = self.config().taps(self.meta.io.len);
        match self.growing_modes() {
            growing if growing > 0 && self.config().taps(l) > length => {
                Err(Error::PastEnd { length, why: why_growing(growing) })
            }
            _ => Ok(()),
        }
    }

    /// A stream at `position` may take `steps` more.
    pub(crate) fn check_steps(&self, position: u64, steps: usize) -> Result<()> {
        let Some(length) = self.max_len() else { return Ok(()) };
        if position + steps as u64 <= length as u64 {
            return Ok(());
        }
        let why = match self.growing_modes() {
            0 => "its kernels are cut there (kernel_len)".into(),
            growing => why_growing(growing),
        };
        Err(Error::PastEnd { length, why })
    }

    /// The recurrences of all layers.
    ///
    /// # Errors
    /// If the model takes whole sequences only.
    pub(crate) fn recurrent(&self) -> Result<&[Recurrent]> {
        let config = self.config();
        let refused = |why: &str| Err(Error::CannotStream(why.into()));
        if config.bidirectional {
            return refused("it looks ahead (bidirectional)");
        }
        if config.kernel_len != 0 && config.kernel_len < self.meta.io.len {
            return refused("its kernels are cut (kernel_len)");
        }
        if matches!(self.meta.io.output, OutputKind::Pair { .. }) {
            return refused("it compares two sequences");
        }
        let make = || self.layers.iter().map(|layer| layer.mixer.recurrent(self.sizes())).collect();
        match self.recurrent.get_or_init(make) {
            Ok(all) => Ok(all),
            Err(error) => Err(Error::CannotStream(error.to_string())),
        }
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

    /// x: `[positions, H]` of a checked input.
    pub(crate) fn encode(
        &self,
        input: Input<'_>,
        x: &mut [f32],
        scratch: &mut Scratch<f32>,
    ) -> Result<()> {
        let h = self.config().h;
        match (&self.encoder, input) {
            (Encoder::Tokens(table), Input::Tokens(tokens)) => {
                for (x, &token) in x.chunks_exact_mut(h).zip(tokens) {
                    x.copy_from_slice(&table[token as usize * h..][..h]);
                }
                Ok(())
            }
            (Encoder::Values(map), Input::Values(values)) => Ok(map.forward(values, x, scratch)?),
            _ => unreachable!("the input was checked"),
        }
    }
}

fn why_growing(growing: usize) -> String {
    format!(
        "{growing} of its modes have Re λ > 0, and their softmax kernel ends at the training length"
    )
}
