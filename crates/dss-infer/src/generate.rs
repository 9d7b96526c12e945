//! Text and other tokens, one after the other: each is drawn from the model's distribution given all before it.
//!
//! The same seed gives the same tokens wherever the model gives the same logits: random numbers come from ChaCha8, and
//! probabilities are made in f64 in a fixed order with an exponential of our own library, in a browser as anywhere
//! else.

use dss_format::{InputKind, OutputKind};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::error::{Error, Result};
use crate::model::{Input, Model};
use crate::state::State;

/// How the next token is chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampling {
    /// Logits are divided by this; 0 always takes the likeliest.
    pub temperature: f64,
    /// Only this many of the likeliest are candidates; 0: all.
    pub top_k: usize,
    /// Only the likeliest whose probabilities together reach this are candidates; 1: all.
    pub top_p: f64,
    /// The random seed.
    pub seed: u64,
}

impl Default for Sampling {
    fn default() -> Self {
        Self { temperature: 1.0, top_k: 0, top_p: 1.0, seed: 0 }
    }
}

/// Draws tokens.
#[derive(Debug, Clone)]
pub struct Sampler {
    sampling: Sampling,
    rng: ChaCha8Rng,
    /// Candidates: token and logit, then probability.
    candidates: Vec<(u32, f64)>,
}

impl Sampler {
    /// # Errors
    /// If the temperature is negative or not finite, or top_p is not above 0 and at most 1.
    pub fn new(sampling: Sampling) -> Result<Self> {
        let Sampling { temperature, top_p, seed, .. } = sampling;
        if !(temperature >= 0.0 && temperature.is_finite()) {
            let what = format!("the temperature must be at least 0, but is {temperature}");
            return Err(Error::input(what));
        }
        if !(top_p > 0.0 && top_p <= 1.0) {
            let what = format!("top-p must be above 0 and at most 1, but is {top_p}");
            return Err(Error::input(what));
        }
        let rng = ChaCha8Rng::seed_from_u64(seed);
        Ok(Self { sampling, rng, candidates: Vec::new() })
    }

    /// Chooses a token by its logit.
    ///
    /// # Panics
    /// If there are no logits.
    pub fn sample(&mut self, logits: &[f32]) -> u32 {
        assert!(!logits.is_empty(), "there is nothing to choose from");
        let Sampling { temperature, top_k, top_p, .. } = self.sampling;
        let all = &mut self.candidates;
        all.clear();
        all.extend((0..).zip(logits.iter().map(|&x| f64::from(x))));
        // The likeliest first; equal ones in the order of their numbers.
        all.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        if temperature == 0.0 {
            return all[0].0;
        }
        if top_k > 0 {
            all.truncate(top_k);
        }
        let most = all[0].1;
        let mut total = 0.0;
        for (_, x) in all.iter_mut() {
            *x = libm::exp((*x - most) / temperature);
            total += *x;
        }
        let mut kept = 0.0;
        let enough = all.iter().position(|(_, p)| {
            kept += p;
            kept >= top_p * total
        });
        all.truncate(enough.map_or(all.len(), |last| last + 1));
        // 53 random bits: a number in [0, 1).
        let draw = (self.rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let mut left = draw * all.iter().map(|(_, p)| p).sum::<f64>();
        for &(token, p) in all.iter() {
            left -= p;
            if left < 0.0 {
                return token;
            }
        }
        all[all.len() - 1].0
    }
}

/// A stream that takes its own output as input.
#[derive(Debug, Clone)]
pub struct Generator {
    state: State,
    sampler: Sampler,
    logits: Vec<f32>,
}

impl Model {
    /// Begins with a prompt of at least one token.
    ///
    /// # Errors
    /// If the model does not say at every position which token comes next, cannot stream, or has no such tokens.
    pub fn generator(&self, prompt: &[u32], sampling: Sampling) -> Result<Generator> {
        let io = self.meta().io;
        match (io.input, io.output) {
            (InputKind::Tokens { vocab }, OutputKind::Position { outputs }) if vocab == outputs => {
            }
            _ => {
                return Err(Error::input(
                    "this model does not say which token comes next: train one with `dss train lm`",
                ));
            }
        }
        if prompt.is_empty() {
            return Err(Error::input("the prompt must have at least one token"));
        }
        let mut state = self.state()?;
        let mut logits = vec![0.0; self.outputs()];
        for part in prompt.chunks(256) {
            self.block_step(&mut state, Input::Tokens(part), &mut logits)?;
        }
        Ok(Generator { state, sampler: Sampler::new(sampling)?, logits })
    }
}

impl Generator {
    /// The next token; the model is the one that made the generator.
    ///
    /// # Errors
    /// As [`Model::step`].
    pub fn next_token(&mut self, model: &Model) -> Result<u32> {
        let token = self.sampler.sample(&self.logits);
        model.step(&mut self.state, Input::Tokens(&[token]), &mut self.logits)?;
        Ok(token)
    }

    /// The logits of the next token: `[V]`.
    pub fn logits(&self) -> &[f32] {
        &self.logits
    }

    /// The stream's state.
    pub fn state(&self) -> &State {
        &self.state
    }
}
