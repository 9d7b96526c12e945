//! Neural rough differential equations (Morrill et al. 2021): over each window of a path, the state follows
//! dh/dτ = f(h)·ℓ, ℓ the log-signature of the window. The path is time and a few channels, a linear map of the input.
//!
//! | name | shape | |
//! |------|-------|-|
//! | `path.weight`, `.bias` | `[P, H]`, `[P]` | the path's channels but for time, which is channel 0 |
//! | `initial.weight`, `.bias` | `[H, P + 1]`, `[H]` | the state at the first point |
//! | `field.0.*`, `field.1.*`, `field.2.*` | `[w, H]`, `[w, w]`, `[H·dim, w]` with their biases | f; the second is used field_layers − 1 times |

use super::lipschitz_rnn::SolverKind;
use super::settings::settings;
use super::{MixerContext, MixerSettings};
use crate::error::{Error, Result};
use crate::range::validate_count;
use crate::tensors::{TensorSpec, linear};

settings! {
    /// The settings of NRDE.
    NrdeConfig {
        /// Channels P of the path besides time.
        path: usize = 4,
        /// Depth of the log-signatures: 1, 2 or 3.
        depth: usize = 2,
        /// Steps of a window. A position sees whole windows; with bidirectional = true also the rest of its own.
        window: usize = 4,
        /// Width of the hidden layers of the field f.
        width: usize = 64,
        /// Hidden layers of the field f, at least 2; all but the first share one matrix, as published.
        field_layers: usize = 3,
        /// Rule of a step: euler, midpoint or rk4.
        solver: SolverKind = SolverKind::Rk4,
        /// Steps of the rule over a window.
        substeps: usize = 1,
    }
}

impl NrdeConfig {
    /// Numbers of a log-signature: Lyndon words of P + 1 letters up to the depth.
    pub fn dim(&self) -> usize {
        let channels = self.path.saturating_add(1);
        let pairs = channels.saturating_mul(self.path) / 2;
        let triples = pairs.saturating_mul(channels.saturating_add(1)).saturating_mul(2) / 3;
        let of_length = [channels, pairs, triples];
        of_length.iter().take(self.depth).fold(0, |sum, words| sum.saturating_add(*words))
    }

    /// The recurrence of a state of h, over windows.
    #[cfg(feature = "kernels")]
    pub fn cell(&self, h: usize) -> dss_kernels::recurrent::Nrde {
        let Self { width, field_layers: layers, solver, substeps, .. } = *self;
        let (dim, solver) = (self.dim(), solver.into());
        dss_kernels::recurrent::Nrde { n: h, dim, width, layers, solver, substeps }
    }

    /// The Lyndon words of three of `channels` letters, less than each of their rotations, in order.
    pub fn triples(channels: usize) -> impl Iterator<Item = [usize; 3]> {
        let all = (0..channels.saturating_pow(3))
            .map(move |i| [i / (channels * channels), i / channels % channels, i % channels]);
        all.filter(|&[a, b, c]| [a, b, c] < [b, c, a] && [a, b, c] < [c, a, b])
    }
}

impl MixerSettings for NrdeConfig {
    fn title(&self) -> &'static str {
        "NRDE"
    }

    fn size(&self) -> String {
        format!("log-signatures of depth {} over {} steps", self.depth, self.window)
    }

    fn validate(&self, _context: &MixerContext) -> Result<()> {
        validate_count(&["model.mixer.path"], "path", self.path)?;
        validate_count(&["model.mixer.window"], "window", self.window)?;
        validate_count(&["model.mixer.width"], "width", self.width)?;
        if self.field_layers < 2 {
            let what =
                format!("field_layers must be at least 2, but is {}: try 2", self.field_layers);
            return Err(Error::setting(&["model.mixer.field_layers"], what));
        }
        validate_count(&["model.mixer.substeps"], "substeps", self.substeps)?;
        if (1..=3).contains(&self.depth) {
            return Ok(());
        }
        let nearest = self.depth.clamp(1, 3);
        let what = format!("depth must be 1, 2 or 3, but is {}: try {nearest}", self.depth);
        Err(Error::setting(&["model.mixer.depth"], what))
    }

    fn tensors(&self, context: &MixerContext) -> Vec<TensorSpec> {
        let (h, width) = (context.h, self.width);
        let out = h.saturating_mul(self.dim());
        [
            linear("path", h, self.path),
            linear("initial", self.path.saturating_add(1), h),
            linear("field.0", h, width),
            linear("field.1", width, width),
            linear("field.2", width, out),
        ]
        .concat()
    }
}
