//! Nyströmformer (Xiong et al. 2021): softmax attention through a few landmarks, means of neighbouring positions.
//!
//! | name | shape | |
//! |------|-------|-|
//! | `q.*`, `k.*`, `v.*`, `out.*` | `[H, H]` each, with biases | queries, keys, values, output projection |
//! | `conv.weight` | `[heads, taps]` | depthwise convolution of the values over the length; with `conv` > 0 |

use super::heads::{CHANNELS, validate_heads, validate_looks_ahead};
use super::settings::settings;
use super::{MixerContext, MixerSettings, saturating_product};
use crate::error::{Error, Result};
use crate::range::validate_count;
use crate::tensors::{TensorSpec, linear};

settings! {
    /// The settings of Nyströmformer; the defaults are those of its Long Range Arena runs.
    NystromConfig {
        /// Number of heads; they divide h.
        heads: usize = 2,
        /// Landmarks; a model for sequences of at most as many positions is plain attention.
        landmarks: usize = 128,
        /// Taps of the convolution of the values, an odd number; 0 = none.
        conv: usize = 35,
        /// The length that landmarks are spread over, a multiple of their number; 0 = the training length, rounded up to one.
        padded_len: usize = 0,
    }
}

impl NystromConfig {
    /// Steps of the iteration for the pseudo-inverse. It has not converged after them: they are part of the model.
    pub const ITERATIONS: usize = 6;

    /// The length that every sequence is padded to, for the landmarks, in a model of length `len`.
    pub fn length(&self, len: usize) -> usize {
        match self.padded_len {
            0 => len.checked_next_multiple_of(self.landmarks).unwrap_or(usize::MAX),
            padded => padded,
        }
    }
}

impl MixerSettings for NystromConfig {
    fn title(&self) -> &'static str {
        "Nyströmformer"
    }

    fn size(&self) -> String {
        format!("{} heads, {} landmarks", self.heads, self.landmarks)
    }

    fn validate(&self, context: &MixerContext) -> Result<()> {
        let Self { heads, landmarks, conv, padded_len } = *self;
        validate_looks_ahead("nystromformer", context)?;
        validate_heads(heads, context.h, CHANNELS)?;
        validate_count(&["model.mixer.landmarks"], "landmarks", landmarks)?;
        if conv > 0 && conv.is_multiple_of(2) {
            let what = format!("conv must be odd, or 0, but is {conv}: try {}", conv - 1);
            return Err(Error::setting(&["model.mixer.conv"], what));
        }
        if padded_len == 0 {
            return Ok(());
        }
        let least = context.len.max(1).checked_next_multiple_of(landmarks).unwrap_or(usize::MAX);
        let keys = &["model.mixer.padded_len", "model.mixer.landmarks"];
        if !padded_len.is_multiple_of(landmarks) {
            let below = padded_len - padded_len % landmarks;
            let nearest =
                if padded_len - below <= landmarks / 2 { below } else { below + landmarks };
            let nearest = nearest.max(least);
            let what = format!(
                "landmarks must divide padded_len, but {landmarks} does not divide {padded_len}: try padded_len = \
                 {nearest}"
            );
            return Err(Error::setting(keys, what));
        }
        if padded_len < context.len {
            let what = format!(
                "padded_len must be at least the {} positions of a sequence, but is {padded_len}: try {least}",
                context.len
            );
            return Err(Error::setting(keys, what));
        }
        Ok(())
    }

    fn tensors(&self, context: &MixerContext) -> Vec<TensorSpec> {
        let h = context.h;
        let mut all: Vec<_> =
            ["q", "k", "v", "out"].into_iter().flat_map(|name| linear(name, h, h)).collect();
        if self.conv > 0 {
            all.push(TensorSpec::other("conv.weight", &[self.heads, self.conv]));
        }
        all
    }

    /// The weights between positions and landmarks, in both directions, with what leads to them.
    fn kept_per_sequence(&self, context: &MixerContext) -> u64 {
        saturating_product(&[self.heads, context.len, self.landmarks.min(context.len), 4, 4])
    }
}
