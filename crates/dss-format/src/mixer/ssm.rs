//! What all state spaces share: a layer y = Out(GELU(K * u + D·u)) whose kernel K is made of a state space's parameters.
//!
//! | name | shape | |
//! |------|-------|-|
//! | `d` | `[H]` | weight of the input itself |
//! | `out.weight`, `.bias` | `[H or 2H, H]`, `[H or 2H]` | output projection, 2H with GLU |

use super::MixerContext;
use crate::config::Gelu;
use crate::error::{Error, Result};
use crate::range::validate_count;
use crate::tensors::{TensorSpec, linear};

/// The most states of Skew-HiPPO.
pub const MAX_N: usize = 512;

/// Settings of a state space that do not depend on its kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SsmSettings {
    /// N: states per channel.
    pub n: usize,
    /// S: systems, each with a Λ of its own; channel h belongs to system h mod S.
    pub ssms: usize,
    /// The least Δ at initialisation.
    pub delta_min: f64,
    /// The greatest Δ at initialisation.
    pub delta_max: f64,
    /// 0: the kernel is as long as the sequence; else the length at which it is cut.
    pub kernel_len: usize,
    /// Whether the output projection is gated.
    pub glu: bool,
    /// Which GELU is before it.
    pub gelu: Gelu,
}

impl SsmSettings {
    /// How many taps the kernel has for sequences of length l.
    pub fn taps(&self, l: usize) -> usize {
        if self.kernel_len == 0 { l } else { l.min(self.kernel_len) }
    }

    pub(super) fn size(&self) -> String {
        format!("N = {} states", self.n)
    }

    /// Every number is in its range.
    pub(super) fn validate(&self) -> Result<()> {
        validate_count(&["model.mixer.n"], "n", self.n)?;
        validate_deltas(self.delta_min, self.delta_max)
    }

    /// N is even: one of each conjugate pair is stored.
    pub(super) fn validate_pairs(&self, mixer: &str) -> Result<()> {
        let (n, most) = (self.n, 2 * MAX_N);
        if n > 0 && n.is_multiple_of(2) && n <= most {
            return Ok(());
        }
        let nearest = n.saturating_add(1).clamp(2, most);
        let what = format!(
            "n must be even and from 2 to {most} with mixer = \"{mixer}\", but is {n}: try {nearest}"
        );
        Err(Error::setting(&["model.mixer.n"], what))
    }

    /// S divides H.
    pub(super) fn validate_systems(&self, h: usize) -> Result<()> {
        let ssms = self.ssms;
        if ssms > 0 && h.is_multiple_of(ssms) {
            return Ok(());
        }
        let nearest = (1..=h).filter(|s| h.is_multiple_of(*s));
        let nearest = nearest.min_by_key(|s| s.abs_diff(ssms)).unwrap_or(1);
        let what = format!("ssms must divide h = {h}, but is {ssms}: try {nearest}");
        Err(Error::setting(&["model.mixer.ssms", "model.h"], what))
    }

    /// The shape of what each system has its own of: without the leading S if there is one.
    pub(super) fn per_system(&self, shape: &[usize]) -> Vec<usize> {
        let systems = (self.ssms > 1).then_some(self.ssms);
        systems.into_iter().chain(shape.iter().copied()).collect()
    }

    /// D and the output projection.
    pub(super) fn tensors(&self, h: usize) -> Vec<TensorSpec> {
        d_and_out(h, self.glu)
    }
}

/// The range that Δ begins in.
pub(super) fn validate_deltas(low: f64, high: f64) -> Result<()> {
    if 0.0 < low && low <= high && high.is_finite() {
        return Ok(());
    }
    let what = format!("0 < delta_min <= delta_max must hold, but they are {low} and {high}");
    Err(Error::setting(&["model.mixer.delta_min", "model.mixer.delta_max"], what))
}

/// D and the output projection, gated or not.
pub(super) fn d_and_out(h: usize, glu: bool) -> Vec<TensorSpec> {
    let outputs = if glu { h.saturating_mul(2) } else { h };
    let mut all = vec![TensorSpec::other("d", &[h])];
    all.extend(linear("out", h, outputs));
    all
}

impl MixerContext {
    /// C: kernels per channel of a state space.
    pub fn kernels(&self) -> usize {
        if self.bidirectional { 2 } else { 1 }
    }
}

/// Settings of a state space: those of all of them, and its own; `systems` gives S.
macro_rules! ssm_config {
    ($(#[$meta:meta])* $name:ident { $($own:tt)* }, systems = $systems:expr) => {
        $crate::mixer::settings::settings! {
            $(#[$meta])*
            $name {
                /// States N per channel: at most 512 with skew-hippo; even for s4 and s4d, which store N/2 conjugate pairs.
                n: usize = 64,
                $($own)*
                /// Smallest Δ at initialisation.
                delta_min: f64 = 0.001,
                /// Largest Δ at initialisation.
                delta_max: f64 = 0.1,
                /// Length of the convolution kernel: a layer sees no further back than this; 0 = the length of the sequence.
                kernel_len: usize = 0,
                /// Whether the output projection is gated: 2H outputs, one half gating the other.
                glu: bool = false,
                /// GELU between convolution and output projection: erf, or tanh (its approximation).
                ssm_gelu: $crate::Gelu = $crate::Gelu::Erf,
            }
        }

        impl $name {
            /// What it shares with the other state spaces.
            pub fn shared(&self) -> $crate::mixer::ssm::SsmSettings {
                let Self { n, delta_min, delta_max, kernel_len, glu, ssm_gelu: gelu, .. } = *self;
                let ssms: fn(&Self) -> usize = $systems;
                let ssms = ssms(self);
                $crate::mixer::ssm::SsmSettings { n, ssms, delta_min, delta_max, kernel_len, glu, gelu }
            }

            /// For input with r times the step.
            pub fn with_step(&self, r: f64) -> Self {
                Self { kernel_len: $crate::mixer::length_at_step(self.kernel_len, r), ..*self }
            }
        }
    };
}
pub(super) use ssm_config;
