//! Performer (Choromanski et al. 2021): attention with weights φ(q)·φ(k), φ either relu or random features whose products
//! are the softmax's weights in expectation (FAVOR+).
//!
//! The tensors of [`AttentionConfig`](super::AttentionConfig) with `project`, and
//!
//! | name | shape | |
//! |------|-------|-|
//! | `features` | `[m, d]` | the random directions of kernel "favor"; not trained |

use serde::{Deserialize, Serialize};

use super::heads::attention_config;
use super::{MixerContext, MixerSettings};
use crate::error::{Error, Result};
use crate::tensors::TensorSpec;

/// φ of Performer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PerformerKernel {
    /// max(x, 0) + 10⁻³.
    #[default]
    Relu,
    /// Positive random features of the softmax.
    Favor,
}

attention_config! {
    /// The settings of Performer.
    PerformerConfig {
        /// Weights of keys: relu, or favor (random features of the softmax).
        kernel: PerformerKernel = PerformerKernel::default(),
        /// Random features m of each head with kernel favor; 0 = 256, or 64 without projections.
        features: usize = 0,
        /// Whether there are projections; false = queries, keys and values are the input itself, as in S4's code.
        project: bool = true,
    }
}

impl PerformerConfig {
    /// m: features of a head of d channels.
    pub fn features_in(&self, d: usize) -> usize {
        match (self.kernel, self.features, self.project) {
            (PerformerKernel::Relu, ..) => d,
            (PerformerKernel::Favor, 0, true) => 256,
            (PerformerKernel::Favor, 0, false) => 64,
            (PerformerKernel::Favor, m, _) => m,
        }
    }

    /// φ of the heads in a model of h channels, ε the number that is added to every feature.
    #[cfg(feature = "kernels")]
    pub fn feature_map(&self, h: usize) -> dss_kernels::kernelised::FeatureMap {
        use dss_kernels::kernelised::FeatureMap;
        let features = self.features_in(self.width_in(h) / self.heads);
        match (self.kernel, self.project) {
            (PerformerKernel::Relu, _) => FeatureMap::Relu { eps: 1e-3 },
            (PerformerKernel::Favor, true) => FeatureMap::Favor { features, eps: 1e-6 },
            (PerformerKernel::Favor, false) => FeatureMap::Favor { features, eps: 1e-4 },
        }
    }

    /// What is added to a sum of weights before it divides.
    pub fn denominator_eps(&self) -> f64 {
        if self.project { 0.0 } else { 1e-6 }
    }
}

impl MixerSettings for PerformerConfig {
    fn title(&self) -> &'static str {
        "Performer"
    }

    fn size(&self) -> String {
        match self.kernel {
            PerformerKernel::Relu => format!("{} heads, relu", self.heads),
            PerformerKernel::Favor => {
                format!("{} heads, m = {} random features", self.heads, self.features_in(0))
            }
        }
    }

    fn validate(&self, context: &MixerContext) -> Result<()> {
        self.frame().validate(context)?;
        if self.kernel == PerformerKernel::Relu && self.features != 0 {
            let what = format!(
                "kernel = \"relu\" has no random features, but features is {}: set it to 0, or kernel to \"favor\"",
                self.features
            );
            return Err(Error::setting(&["model.mixer.features", "model.mixer.kernel"], what));
        }
        if self.project {
            return Ok(());
        }
        if self.bias {
            let what =
                "without projections there are no biases: set bias to false, or project to true";
            return Err(Error::setting(&["model.mixer.bias", "model.mixer.project"], what));
        }
        if self.width_in(context.h) != context.h {
            let what = format!(
                "without projections the width is h = {}, but is {}: set it to 0, or project to true",
                context.h, self.width
            );
            return Err(Error::setting(&["model.mixer.width", "model.mixer.project"], what));
        }
        Ok(())
    }

    fn tensors(&self, context: &MixerContext) -> Vec<TensorSpec> {
        let mut all = if self.project { self.frame().tensors(context) } else { Vec::new() };
        if self.kernel == PerformerKernel::Favor {
            let d = self.width_in(context.h) / self.heads.max(1);
            all.push(TensorSpec::fixed("features", &[self.features_in(d), d]));
        }
        all
    }
}
