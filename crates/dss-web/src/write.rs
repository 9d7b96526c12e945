//! Text, token by token: the same as `dss_infer::Model::generator`, which borrows its model.

use dss_infer::generate::{Sampler, Sampling};
use dss_infer::{Input, Model, State};

use crate::engine::{Result, text};

/// A stream that takes its own output as input.
pub(crate) struct Writer {
    state: State,
    sampler: Sampler,
    /// `[V]`: what the model says about the token to come.
    logits: Vec<f32>,
}

impl Writer {
    pub(crate) fn new(model: &Model, prompt: &[u32], sampling: Sampling) -> Result<Self> {
        let generator = model.generator(prompt, sampling).map_err(text)?;
        Ok(Self {
            state: generator.state().clone(),
            logits: generator.logits().to_vec(),
            sampler: Sampler::new(sampling).map_err(text)?,
        })
    }

    pub(crate) fn next(&mut self, model: &Model) -> Result<u32> {
        let token = self.sampler.sample(&self.logits);
        let input = Input::Tokens(std::slice::from_ref(&token));
        model.step(&mut self.state, input, &mut self.logits).map_err(text)?;
        Ok(token)
    }
}
