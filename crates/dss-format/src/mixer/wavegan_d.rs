//! The discriminator of WaveGAN (Donahue et al. 2019) as a classifier: strided convolutions that shorten the sequence
//! and widen it, then a linear map of all that is left. Not a mixer of blocks but a stack of its own: `model.layers` is
//! the number of its stages, `model.h` the width of the first, and each is twice as wide as the one before.
//!
//! | name | shape | |
//! |------|-------|-|
//! | `stages.{i}.res.{j}.conv.weight`, `.bias` | `[C, C, 25]`, `[C]` | residual convolutions of the ported form |
//! | `stages.{i}.down.conv.weight`, `.bias` | `[2C, C, 25]`, `[2C]` | the convolution with stride 4 |
//! | `stages.{i}.res.{j}.norm.*`, `stages.{i}.down.norm.*` | | norms of the ported form |
//!
//! Numbers enter the first stage as they are, without an encoder.

use serde::{Deserialize, Serialize};

use super::heads::validate_looks_ahead;
use super::settings::settings;
use super::{MixerContext, MixerSettings, Stages};
use crate::config::{ModelConfig, Pool, Positions};
use crate::error::{Error, Result};
use crate::io::{InputKind, ModelIo, OutputKind};
use crate::range::validate_count;
use crate::tensors::TensorSpec;

/// Which of the two published nets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaveganVariant {
    /// With residual convolutions and norms, as run for the paper's table: zeros up to a power of two; per stage
    /// x ← norm(x + leaky(conv(x))), then norm(strided conv(x)).
    #[default]
    Ported,
    /// That of WaveGAN: leaky(strided conv(x)) per stage.
    Original,
}

settings! {
    /// The settings of WaveGAN-D.
    WaveganDConfig {
        /// The net: ported (residual convolutions and norms, the one in the paper's table) or original.
        variant: WaveganVariant = WaveganVariant::default(),
        /// Convolutions per stage, the strided one included; the original has 1.
        convs: usize = 2,
        /// Phase shuffle of the original in training: activations move by up to this many positions; 0 = none, published 2.
        shuffle: usize = 0,
    }
}

impl WaveganDConfig {
    /// Taps of all convolutions.
    pub const TAPS: usize = 25;
    /// By how much a stage shortens its sequence.
    pub const STRIDE: usize = 4;
    /// Slope of the leaky relu below 0.
    pub const SLOPE: f64 = 0.2;
    /// Channels of the widest stage, at most.
    const WIDEST: usize = 1 << 16;
    /// Positions that phase shuffle moves, at most.
    const FURTHEST: usize = 16;

    /// Zeros before and after l positions with which a strided convolution gives ⌈l/4⌉, one more after than before if
    /// their number is odd.
    pub fn same_padding(l: usize) -> [usize; 2] {
        let total = ((l.div_ceil(Self::STRIDE) - 1) * Self::STRIDE + Self::TAPS).saturating_sub(l);
        [total / 2, total - total / 2]
    }

    /// The length that every sequence is padded to with zeros, in a model of length `len`.
    pub fn padded_len(&self, len: usize) -> usize {
        match self.variant {
            WaveganVariant::Ported => len.checked_next_power_of_two().unwrap_or(usize::MAX),
            WaveganVariant::Original => len,
        }
    }

    /// Channels that the first stage reads: those of numbers as they are, h of tokens.
    pub fn input_channels(&self, model: &ModelConfig, io: &ModelIo) -> usize {
        match io.input {
            InputKind::Values { channels } => channels,
            InputKind::Tokens { .. } => model.h,
        }
    }

    /// Input and output channels of each stage.
    pub fn widths(&self, model: &ModelConfig, io: &ModelIo) -> Vec<(usize, usize)> {
        let mut from = self.input_channels(model, io);
        // No valid model has as many: the rest of a file that says so is not looked at.
        let stages = 0..model.layers.min(64);
        let width =
            |i: usize| model.h.saturating_mul(1usize.checked_shl(i as u32).unwrap_or(usize::MAX));
        stages.map(|i| (std::mem::replace(&mut from, width(i)), width(i))).collect()
    }
}

impl MixerSettings for WaveganDConfig {
    fn title(&self) -> &'static str {
        "WaveGAN-D"
    }

    fn size(&self) -> String {
        match self.variant {
            WaveganVariant::Ported => format!("{} convolutions per stage", self.convs),
            WaveganVariant::Original => "original form".to_owned(),
        }
    }

    fn validate(&self, context: &MixerContext) -> Result<()> {
        let Self { variant, convs, shuffle } = *self;
        validate_looks_ahead("wavegan-d", context)?;
        validate_count(&["model.mixer.convs"], "convs", convs)?;
        let keys = &["model.mixer.convs", "model.mixer.variant"];
        if variant == WaveganVariant::Original && convs != 1 {
            let what = format!(
                "variant = \"original\" has one convolution per stage, but convs is {convs}: try 1"
            );
            return Err(Error::setting(keys, what));
        }
        if convs > 64 {
            return Err(Error::setting(
                keys,
                format!("convs must be at most 64, but is {convs}: try 64"),
            ));
        }
        let keys = &["model.mixer.shuffle", "model.mixer.variant"];
        if variant == WaveganVariant::Ported && shuffle != 0 {
            let what = "variant = \"ported\" has no phase shuffle: set shuffle to 0";
            return Err(Error::setting(keys, what));
        }
        if shuffle > Self::FURTHEST {
            let most = Self::FURTHEST;
            let what = format!("shuffle must be at most {most}, but is {shuffle}: try {most}");
            return Err(Error::setting(keys, what));
        }
        Ok(())
    }

    /// What only blocks have is refused, so that no setting is without effect.
    fn validate_model(&self, model: &ModelConfig) -> Result<()> {
        let ModelConfig { layers, h, .. } = *model;
        let most = (Self::WIDEST / h.max(1)).max(1).ilog2() as usize + 1;
        if layers > most {
            let what = format!(
                "each stage of wavegan-d is twice as wide as the one before, and none may have more than {} channels: \
                 with h = {h}, layers must be at most {most}, but is {layers}: try {most}",
                Self::WIDEST
            );
            return Err(Error::setting(&["model.layers", "model.h"], what));
        }
        let refused: [(bool, &'static [&'static str], &str); 7] = [
            (model.ff > 0, &["model.ff"], "ff to 0"),
            (model.prenorm, &["model.prenorm"], "prenorm to false"),
            (model.dropout > 0.0, &["model.dropout"], "dropout to 0"),
            (model.mask_padding, &["model.mask_padding"], "mask_padding to false"),
            (model.positions != Positions::None, &["model.positions"], "positions to \"none\""),
            (model.pool != Pool::Mean, &["model.pool"], "pool to \"mean\", which it does not use"),
            (model.head_hidden > 0, &["model.head_hidden"], "head_hidden to 0"),
        ];
        match refused.into_iter().find(|(wrong, ..)| *wrong) {
            Some((_, keys, cure)) => {
                let what =
                    format!("wavegan-d is a stack of convolutions and not of blocks: set {cure}");
                Err(Error::setting(keys, what))
            }
            None => Ok(()),
        }
    }

    fn validate_io(&self, io: &ModelIo) -> Result<()> {
        match io.output {
            OutputKind::Position { .. } => {
                let what = "wavegan-d answers about whole sequences, not about every position: take another mixer";
                Err(Error::setting(&["model.mixer.kind"], what))
            }
            OutputKind::Sequence { .. } | OutputKind::Pair { .. } => Ok(()),
        }
    }

    /// None: it has no blocks.
    fn tensors(&self, _context: &MixerContext) -> Vec<TensorSpec> {
        Vec::new()
    }

    fn stages(&self, model: &ModelConfig, io: &ModelIo) -> Option<Stages> {
        let mut tensors = Vec::new();
        let (mut l, mut activations) = (self.padded_len(io.len), 0usize);
        let widths = self.widths(model, io);
        for (i, &(from, to)) in widths.iter().enumerate() {
            let residual = self.convs.saturating_sub(1).min(64);
            let shorter = l.div_ceil(Self::STRIDE);
            let numbers =
                [l.saturating_mul(from).saturating_mul(residual), shorter.saturating_mul(to)];
            activations = numbers.into_iter().fold(activations, usize::saturating_add);
            l = shorter;
            let residual = (0..residual).map(|j| (format!("res.{j}"), from));
            for (part, outputs) in residual.chain([("down".to_owned(), to)]) {
                let name = format!("stages.{i}.{part}");
                let other = |tensor: &str, shape: &[usize]| {
                    TensorSpec::other(&format!("{name}.conv.{tensor}"), shape)
                };
                tensors.push(other("weight", &[outputs, from, Self::TAPS]));
                tensors.push(other("bias", &[outputs]));
                if self.variant == WaveganVariant::Ported {
                    tensors.extend(model.norm_tensors(&format!("{name}.norm"), outputs));
                }
            }
        }
        let width = widths.last().map_or(0, |&(_, to)| to);
        let features = width.saturating_mul(l);
        let encoded = matches!(io.input, InputKind::Tokens { .. });
        Some(Stages {
            tensors,
            features,
            activations,
            encoded,
            padded_len: self.padded_len(io.len),
        })
    }
}
