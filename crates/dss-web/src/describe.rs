//! The description of a model for the page.

use dss_format::encoder::{Encoder, EncoderError, LmEncoder, Unit};
use dss_format::feed::SoundFeed;
use dss_infer::{InputKind, Model, OutputKind};
use serde::Serialize;

use crate::engine::{Result, text};

/// A model in words and numbers.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Description {
    /// The paper's name of the mixer.
    mixer: &'static str,
    layers: usize,
    h: usize,
    n: usize,
    /// Rows of a picture of kernels.
    kernels: usize,
    /// The training length, at the rate asked for.
    len: usize,
    /// The most positions of a stream; null if there is no limit.
    max_len: Option<usize>,
    labels: Vec<String>,
    task: String,
    /// Which instructions compute.
    simd: &'static str,
    #[serde(flatten)]
    pub usage: Usage,
}

/// What can be done with a model here.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "camelCase", tag = "use")]
pub(crate) enum Usage {
    /// It classifies sound.
    Sound {
        /// Samples per second that the model takes.
        rate: f64,
        /// Samples per second that it was trained with.
        trained_rate: f64,
        #[serde(skip)]
        feed: SoundFeed,
    },
    /// It continues a text.
    Text {
        unit: Unit,
        #[serde(skip)]
        encoder: LmEncoder,
    },
    /// Its kernels can be looked at.
    Kernels {
        /// Why nothing else.
        why: String,
    },
}

impl Description {
    pub(crate) fn new(model: &Model, ratio: f64) -> Result<Self> {
        let meta = model.meta();
        let config = &meta.model;
        Ok(Self {
            mixer: config.mixer.settings().title(),
            layers: config.layers,
            h: config.h,
            n: config.mixer.settings().ssm().map_or(0, |ssm| ssm.n),
            kernels: model.kernels(),
            len: meta.io.len,
            max_len: model.max_len(),
            labels: names(model),
            task: meta.task_name().unwrap_or_default().into(),
            simd: dss_kernels::simd_name(),
            usage: usage(model, ratio)?,
        })
    }
}

/// A name for every output.
fn names(model: &Model) -> Vec<String> {
    match model.labels() {
        [] => (0..model.outputs()).map(|i| i.to_string()).collect(),
        labels => labels.to_vec(),
    }
}

fn usage(model: &Model, ratio: f64) -> Result<Usage> {
    let meta = model.meta();
    let kernels = |why: &str| Ok(Usage::Kernels { why: why.into() });
    if let Err(error) = model.state() {
        return kernels(&text(error));
    }
    let encoder = match Encoder::from_extra(&meta.extra) {
        Ok(encoder) => encoder,
        Err(EncoderError::Missing) => {
            return kernels("the file does not say how sound or text becomes its input");
        }
        Err(error) => return Err(text(error)),
    };
    match (encoder, meta.io.input, meta.io.output) {
        (
            Encoder::Speech(encoder),
            InputKind::Values { channels: 1 },
            OutputKind::Sequence { .. },
        ) => {
            let feed = SoundFeed::new(&encoder)?;
            Ok(Usage::Sound { rate: feed.rate / ratio, trained_rate: feed.rate, feed })
        }
        (Encoder::Speech(_), ..) => kernels("it takes features of sound, not sound itself"),
        (Encoder::Lm(encoder), InputKind::Tokens { vocab }, OutputKind::Position { outputs })
            if vocab == outputs =>
        {
            let symbols = encoder.vocab();
            if symbols != vocab {
                return Err(format!("the file has {symbols} symbols for {vocab} tokens"));
            }
            Ok(Usage::Text { unit: encoder.unit, encoder })
        }
        _ => kernels("it takes neither sound nor text to continue; try `dss predict`"),
    }
}
