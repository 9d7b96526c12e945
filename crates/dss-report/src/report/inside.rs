//! The pictures of what the model has learned.

use burn::tensor::Device;

use super::run::Run;
use crate::inspect::{Inspection, pictures};
use crate::text::escape;

/// One `<figure>` per picture; nothing without a model that can be looked into.
pub(super) fn html(run: &Run) -> String {
    let Some(path) = &run.checkpoint else { return String::new() };
    // What is wrong with a checkpoint is for those commands to say that need it.
    let Ok(found) = Inspection::load(path, &Device::flex()) else { return String::new() };
    let figure = |scene: crate::draw::Scene| {
        let (summary, svg) = (escape(&scene.summary), scene.inline_svg());
        format!("<figure>\n{svg}<figcaption>{summary}</figcaption>\n</figure>\n")
    };
    pictures(&found).into_iter().map(figure).collect()
}
