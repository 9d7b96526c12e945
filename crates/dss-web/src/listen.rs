//! A stream of sound, and the probabilities of its classes.

use dss_format::feed::SoundFeed;
use dss_infer::{Input, Listener, Model, Window};

use crate::engine::{Result, text};

/// Listens to samples in [-1, 1].
pub(crate) struct SoundListener {
    feed: SoundFeed,
    listener: Listener,
    input: Vec<f32>,
    probabilities: Vec<f32>,
}

impl SoundListener {
    /// One long stream if `length` is 0, else a window of this many samples.
    pub(crate) fn new(model: &Model, feed: &SoundFeed, length: usize, hop: usize) -> Result<Self> {
        let window = (length > 0).then_some(Window { length, hop });
        Ok(Self {
            feed: feed.clone(),
            listener: Listener::new(model, window).map_err(text)?,
            input: Vec::new(),
            probabilities: vec![0.0; model.outputs()],
        })
    }

    /// The probabilities after these samples.
    pub(crate) fn push(&mut self, model: &Model, samples: &[f32]) -> Result<&[f32]> {
        if !samples.is_empty() {
            self.input.clear();
            self.input.extend(samples.iter().map(|&x| self.feed.value(x)));
            let out = &mut self.probabilities;
            self.listener.push(model, Input::Values(&self.input), out).map_err(text)?;
            softmax(out);
        }
        Ok(&self.probabilities)
    }
}

/// Probabilities of logits.
fn softmax(x: &mut [f32]) {
    let most = x.iter().copied().fold(f32::MIN, f32::max);
    x.iter_mut().for_each(|x| *x = libm::expf(*x - most));
    let total: f32 = x.iter().sum();
    x.iter_mut().for_each(|x| *x /= total);
}
