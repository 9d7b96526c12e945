//! CKConv (Romero et al. 2022): a dense causal convolution whose kernels are a function of the lag, a small network with
//! sines (SIREN) and weight-normed maps W = g·v/|v|; then relu.
//!
//! | name | shape | |
//! |------|-------|-|
//! | `kernel.{0,1,2}.v` | `[w, 1]`, `[w, w]`, `[H·H, w]` | directions of the rows |
//! | `kernel.{0,1,2}.g`, `.bias` | `[w]`, `[w]`, `[H·H]` each | their lengths, and offsets |
//! | `bias` | `[H]` | |

use super::recurrent::validate_forwards;
use super::settings::settings;
use super::{MixerContext, MixerSettings, saturating_product};
use crate::error::Result;
use crate::range::{validate_count, validate_positive};
use crate::tensors::TensorSpec;

settings! {
    /// The settings of CKConv; ω is that published for MFCC.
    CkconvConfig {
        /// Width of the hidden layers of the kernel network.
        width: usize = 32,
        /// Frequency ω of its sines.
        omega: f64 = 30.9,
    }
}

impl CkconvConfig {
    /// Inputs and outputs of the maps of the kernel network.
    pub fn maps(&self, h: usize) -> [(usize, usize); 3] {
        [(1, self.width), (self.width, self.width), (self.width, h.saturating_mul(h))]
    }
}

impl MixerSettings for CkconvConfig {
    fn title(&self) -> &'static str {
        "CKConv"
    }

    fn size(&self) -> String {
        format!("kernels of a network of width {}", self.width)
    }

    fn validate(&self, context: &MixerContext) -> Result<()> {
        validate_forwards("ckconv", context)?;
        validate_count(&["model.mixer.width"], "width", self.width)?;
        validate_positive(&["model.mixer.omega"], "omega", self.omega, Self::default().omega)
    }

    fn tensors(&self, context: &MixerContext) -> Vec<TensorSpec> {
        let mut all = vec![TensorSpec::other("bias", &[context.h])];
        for (i, (inputs, outputs)) in self.maps(context.h).into_iter().enumerate() {
            all.push(TensorSpec::other(&format!("kernel.{i}.v"), &[outputs, inputs]));
            let rows = ["g", "bias"].map(|part| format!("kernel.{i}.{part}"));
            all.extend(rows.map(|name| TensorSpec::other(&name, &[outputs])));
        }
        all
    }

    /// The spectra of the kernels.
    fn kept_for_backward(&self, context: &MixerContext) -> u64 {
        let frequencies = context.len.checked_next_power_of_two().unwrap_or(usize::MAX);
        saturating_product(&[context.h, context.h, frequencies, 2, 4])
    }
}
