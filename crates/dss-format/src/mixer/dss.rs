//! DSS (§3.1 of the paper): Λ, Δ and W.
//!
//! | name | shape | |
//! |------|-------|-|
//! | `lambda` | `[N, 2]`, `[S, N, 2]` for S > 1 | (re, im); for the exp variants the first column is log(−Re λ) |
//! | `delta_log` | `[H, 2]`, or `[H]` if tied | |
//! | `w` | `[C, H, N, 2]` | |

use serde::{Deserialize, Serialize};

use super::ssm::{MAX_N, SsmSettings, ssm_config};
use super::{MixerConfig, MixerContext, MixerSettings};
use crate::error::{Error, Result};
use crate::tensors::{ParamGroup, TensorSpec};

/// The three kernels of the paper (§3.1, §4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// Prop. 1(b): rows normalised by their sum; Re λ may have any sign.
    #[default]
    Softmax,
    /// Prop. 1(a) with Λ = −exp(Λ_re) + i·Λ_im.
    Exp,
    /// As `Exp`, without the factor Λ⁻¹(e^{ΛΔ} − I).
    ExpNoScale,
}

/// One Δ per channel, or one for the real and one for the imaginary part of Λ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Delta {
    /// Δ_log: `[H, 2]`, (re, im) (the code that made the paper's numbers).
    #[default]
    Separate,
    /// Δ_log: `[H]` (the paper's text).
    Tied,
}

impl Delta {
    /// Values of Δ_log per channel.
    pub fn per_channel(self) -> usize {
        match self {
            Self::Separate => 2,
            Self::Tied => 1,
        }
    }
}

/// How Λ starts out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LambdaInit {
    /// Eigenvalues of the skew-symmetric part of HiPPO (§3.3).
    #[default]
    SkewHippo,
    /// Both parts ~ N(0, 1) (§4.1); folded to Re λ < 0 for the exp variants.
    Random,
}

ssm_config! {
    /// The settings of DSS.
    DssConfig {
        /// Kernel: softmax, exp or exp-no-scale.
        variant: Variant = Variant::default(),
        /// Time scales Δ: separate (one for Re Λ, one for Im Λ) or tied (one per channel).
        delta: Delta = Delta::default(),
        /// Initial Λ: skew-hippo or random.
        lambda_init: LambdaInit = LambdaInit::default(),
        /// Systems S: channel h has the Λ of system h mod S; a divisor of h, 1 = one Λ for all channels.
        ssms: usize = 1,
    }, systems = |config| config.ssms
}

impl MixerSettings for DssConfig {
    fn title(&self) -> &'static str {
        match self.variant {
            Variant::Softmax => "DSS-softmax",
            Variant::Exp => "DSS-exp",
            Variant::ExpNoScale => "DSS-exp-no-scale",
        }
    }

    fn size(&self) -> String {
        self.shared().size()
    }

    fn validate(&self, context: &MixerContext) -> Result<()> {
        let n = self.n;
        if self.lambda_init == LambdaInit::SkewHippo && n > MAX_N {
            let what = format!(
                "n must be at most {MAX_N} with lambda_init = \"skew-hippo\", but is {n}: try {MAX_N}"
            );
            return Err(Error::setting(&["model.mixer.n"], what));
        }
        self.shared().validate_systems(context.h)?;
        self.shared().validate()
    }

    fn tensors(&self, context: &MixerContext) -> Vec<TensorSpec> {
        let (h, n) = (context.h, self.n);
        let delta = match self.delta {
            Delta::Separate => vec![h, 2],
            Delta::Tied => vec![h],
        };
        let mut all = vec![
            TensorSpec::new("lambda", &self.shared().per_system(&[n, 2]), ParamGroup::Lambda),
            TensorSpec::new("delta_log", &delta, ParamGroup::Delta),
            TensorSpec::new("w", &[context.kernels(), h, n, 2], ParamGroup::W),
        ];
        all.extend(self.shared().tensors(h));
        all
    }

    fn at_step(&self, r: f64) -> Option<MixerConfig> {
        Some(self.with_step(r).into())
    }

    /// Modes with Re λ > 0 have no state that could be carried beyond the training length.
    fn check_carry(&self) -> Result<()> {
        if self.variant == Variant::Softmax {
            let what = "set variant to \"exp\" or \"exp-no-scale\"";
            return Err(Error::setting(&["model.mixer.variant"], what));
        }
        if self.kernel_len != 0 {
            return Err(Error::setting(&["model.mixer.kernel_len"], "set kernel_len to 0"));
        }
        Ok(())
    }

    fn ssm(&self) -> Option<SsmSettings> {
        Some(self.shared())
    }
}

#[cfg(feature = "kernels")]
mod kernels {
    use dss_kernels::kernel;

    impl From<super::Variant> for kernel::Variant {
        fn from(variant: super::Variant) -> Self {
            match variant {
                super::Variant::Softmax => Self::Softmax,
                super::Variant::Exp => Self::Exp,
                super::Variant::ExpNoScale => Self::ExpNoScale,
            }
        }
    }

    impl From<super::Delta> for kernel::Delta {
        fn from(delta: super::Delta) -> Self {
            match delta {
                super::Delta::Separate => Self::Separate,
                super::Delta::Tied => Self::Tied,
            }
        }
    }
}
