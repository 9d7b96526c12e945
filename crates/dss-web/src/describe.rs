//! What the page has to know about a model.

use dss_infer::{InputKind, Model, OutputKind};
use serde::Serialize;

use crate::alphabet::Alphabet;
use crate::engine::{Result, text};
use crate::sound::Sound;

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
    /// The most positions of a stream; null if it may go on for ever.
    max_len: Option<usize>,
    labels: Vec<String>,
    task: String,
    /// Which instructions compute.
    simd: &'static str,
    #[serde(flatten)]
    pub usage: Use,
}

/// What can be done with a model here.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "use")]
pub(crate) enum Use {
    /// It names what it hears.
    Sound(Sound),
    /// It goes on with a text.
    Text(Alphabet),
    /// Its kernels can be looked at.
    Kernels {
        /// Why nothing else.
        why: String,
    },
}

impl Description {
    pub(crate) fn of(model: &Model, ratio: f64) -> Result<Self> {
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
            task: meta.task.get("name").and_then(|x| x.as_str()).unwrap_or_default().into(),
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

fn usage(model: &Model, ratio: f64) -> Result<Use> {
    let meta = model.meta();
    let kernels = |why: &str| Ok(Use::Kernels { why: why.into() });
    if let Err(error) = model.state() {
        return kernels(&text(error));
    }
    let encoder: serde_json::Value = match meta.extra.get("encoder") {
        Some(encoder) => serde_json::from_str(encoder)
            .map_err(|e| format!("the file's description of its input is damaged: {e}"))?,
        None => return kernels("the file does not say how sound or text becomes its input"),
    };
    let kind = encoder["kind"].as_str().unwrap_or_default();
    match (kind, meta.io.input, meta.io.output) {
        ("speech", InputKind::Values { channels: 1 }, OutputKind::Sequence { .. }) => {
            Ok(Use::Sound(Sound::new(encoder, ratio)?))
        }
        ("speech", ..) => kernels("it takes features of sound, not sound itself"),
        ("lm", InputKind::Tokens { vocab }, OutputKind::Position { outputs })
            if vocab == outputs =>
        {
            Ok(Use::Text(Alphabet::new(encoder, vocab)?))
        }
        _ => kernels("it takes neither sound nor text to go on with; try `dss predict`"),
    }
}
