//! A stream of sound, as one long sequence or through a window that moves on.

use dss_format::feed::SoundFeed;
use dss_infer::{Input, Model, State};

use crate::engine::{Result, text};

/// Listens with one stream, or with several of which one begins every `hop` samples, each `window` samples long. The
/// oldest one answers: it has heard between `window − hop` and `window` samples.
pub(crate) struct Listener {
    feed: SoundFeed,
    window: usize,
    hop: usize,
    /// The stream of slot k begins at k·hop, and at every multiple of the window after.
    streams: Vec<State>,
    position: usize,
    input: Vec<f32>,
    answer: Vec<f32>,
}

/// The most streams of one listener.
const MAX_STREAMS: usize = 64;

impl Listener {
    pub(crate) fn new(model: &Model, feed: &SoundFeed, window: usize, hop: usize) -> Result<Self> {
        let count = if window == 0 { 1 } else { window / hop.max(1) };
        if window != 0 && (hop == 0 || !window.is_multiple_of(hop) || count > MAX_STREAMS) {
            return Err(format!(
                "the window must be 1 to {MAX_STREAMS} hops long, but is {window} samples, with hops of {hop}"
            ));
        }
        let fresh = model.state().map_err(text)?;
        Ok(Self {
            feed: feed.clone(),
            window,
            hop,
            streams: vec![fresh; count],
            position: 0,
            input: Vec::new(),
            answer: vec![0.0; model.outputs()],
        })
    }

    /// The probabilities after these samples.
    pub(crate) fn push(&mut self, model: &Model, mut samples: &[f32]) -> Result<&[f32]> {
        while !samples.is_empty() {
            // Up to the next hop.
            let room = match self.window {
                0 => samples.len(),
                _ => self.hop - self.position % self.hop,
            };
            let (now, rest) = samples.split_at(room.min(samples.len()));
            self.advance(model, now, rest.is_empty())?;
            samples = rest;
        }
        Ok(&self.answer)
    }

    /// Samples within one hop; the answer is made if it is asked for.
    fn advance(&mut self, model: &Model, samples: &[f32], answer: bool) -> Result<()> {
        let Self { feed, window, hop, streams, position, input, answer: out } = self;
        input.clear();
        input.extend(samples.iter().map(|&x| feed.value(x)));
        let slots = streams.len();
        let now = position.checked_div(*hop).unwrap_or(0);
        // Slots that have begun: all of them after the first window.
        let begun = slots.min(now + 1);
        // Of these the oldest: the one that ends next.
        let oldest = if now < slots { 0 } else { (now + 1) % slots };
        for (slot, state) in streams.iter_mut().enumerate().take(begun) {
            if *window != 0 && *position % *window == slot * *hop {
                state.reset();
            }
            let wanted = if answer && slot == oldest { &mut out[..] } else { &mut [] };
            model.block_step(state, Input::Values(input), wanted).map_err(text)?;
        }
        *position += samples.len();
        if answer {
            softmax(out);
        }
        Ok(())
    }
}

/// Probabilities of logits.
fn softmax(x: &mut [f32]) {
    let most = x.iter().copied().fold(f32::MIN, f32::max);
    x.iter_mut().for_each(|x| *x = libm::expf(*x - most));
    let total: f32 = x.iter().sum();
    x.iter_mut().for_each(|x| *x /= total);
}
