//! A text that a language model has written.

use dss_format::encoder::{Encoder, LmEncoder};
use dss_infer::Model;
use dss_infer::generate::Sampling;

use super::run::Run;
use crate::text::escape;

const TOKENS: usize = 600;
const SAMPLING: Sampling = Sampling { temperature: 0.8, top_k: 0, top_p: 1.0, seed: 0 };

/// The text; nothing for other models, or without a checkpoint that can be read.
pub(super) fn html(run: &Run) -> String {
    let encoder = run.meta.as_ref().map(|meta| Encoder::from_extra(&meta.extra));
    let (Some(Ok(Encoder::Lm(encoder))), Some(path)) = (encoder, &run.checkpoint) else {
        return String::new();
    };
    let text = Model::load(path).ok().and_then(|model| sample(&model, &encoder));
    let Some(text) = text.filter(|text| !text.is_empty()) else { return String::new() };
    format!(
        "<pre class=\"input\">{}</pre>\n<p class=\"quiet\">Written by the model after a line break (temperature {}, \
         seed {}). More: <code>dss generate {} --prompt TEXT</code></p>\n",
        escape(&text),
        SAMPLING.temperature,
        SAMPLING.seed,
        escape(&run.dir)
    )
}

fn sample(model: &Model, encoder: &LmEncoder) -> Option<String> {
    // A text without line breaks: then after the first of its characters.
    let prompt = encoder.encode(b"\n").unwrap_or_else(|_| vec![0]);
    let mut generator = model.generator(&prompt, SAMPLING).ok()?;
    // A model with positions of its own ends at its length.
    let tokens: Vec<u32> = (0..TOKENS).map_while(|_| generator.next_token(model).ok()).collect();
    Some(String::from_utf8_lossy(&encoder.decode(&tokens)?).into_owned())
}
