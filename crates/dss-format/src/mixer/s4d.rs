//! S4D: diagonal, one of each conjugate pair of states stored; B = 1.
//!
//! | name | shape | |
//! |------|-------|-|
//! | `lambda_re`, `lambda_im` | `[N/2]` each, `[S, N/2]` for S > 1 | Re λ = −exp(Λ_re) |
//! | `c` | `[C, H, N/2, 2]` | |
//! | `delta_log` | `[H]` | |

use serde::{Deserialize, Serialize};

use super::ssm::{SsmSettings, ssm_config};
use super::{MixerConfig, MixerContext, MixerSettings};
use crate::error::Result;
use crate::tensors::{ParamGroup, TensorSpec};

/// How Λ starts out; Re λ = −½ in all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum S4dInit {
    /// As Λ of S4: the normal part of HiPPO-LegS.
    #[default]
    Legs,
    /// Im λ_n = πn.
    Lin,
    /// Im λ_n = (N/π)·(N/(2n+1) − 1).
    Inv,
}

/// How the continuous system becomes steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Discretisation {
    /// Zero-order hold: the input is constant over a step.
    #[default]
    Zoh,
    /// Tustin's rule, as in S4.
    Bilinear,
}

ssm_config! {
    /// The settings of S4D.
    S4dConfig {
        /// Initial Λ: legs, lin or inv.
        lambda_init: S4dInit = S4dInit::default(),
        /// Discretisation: zoh (zero-order hold) or bilinear.
        discretisation: Discretisation = Discretisation::default(),
        /// Systems S: channel h has the Λ of system h mod S; a divisor of h, 1 = one Λ for all channels.
        ssms: usize = 1,
    }, systems = |config| config.ssms
}

impl MixerSettings for S4dConfig {
    fn title(&self) -> &'static str {
        "S4D"
    }

    fn size(&self) -> String {
        self.shared().size()
    }

    fn validate(&self, context: &MixerContext) -> Result<()> {
        self.shared().validate_pairs("s4d")?;
        self.shared().validate()?;
        self.shared().validate_systems(context.h)
    }

    fn tensors(&self, context: &MixerContext) -> Vec<TensorSpec> {
        let (h, pairs) = (context.h, self.n / 2);
        let lambda = self.shared().per_system(&[pairs]);
        let mut all = vec![
            TensorSpec::new("lambda_re", &lambda, ParamGroup::Lambda),
            TensorSpec::new("lambda_im", &lambda, ParamGroup::Lambda),
            TensorSpec::new("c", &[context.kernels(), h, pairs, 2], ParamGroup::W),
            TensorSpec::new("delta_log", &[h], ParamGroup::Delta),
        ];
        all.extend(self.shared().tensors(h));
        all
    }

    fn at_step(&self, r: f64) -> Option<MixerConfig> {
        Some(self.with_step(r).into())
    }

    fn ssm(&self) -> Option<SsmSettings> {
        Some(self.shared())
    }
}

#[cfg(feature = "kernels")]
mod kernels {
    impl From<super::S4dInit> for dss_kernels::init::S4dInit {
        fn from(init: super::S4dInit) -> Self {
            match init {
                super::S4dInit::Legs => Self::Legs,
                super::S4dInit::Lin => Self::Lin,
                super::S4dInit::Inv => Self::Inv,
            }
        }
    }

    impl From<super::Discretisation> for dss_kernels::s4d::Discretisation {
        fn from(discretisation: super::Discretisation) -> Self {
            match discretisation {
                super::Discretisation::Zoh => Self::ZeroOrderHold,
                super::Discretisation::Bilinear => Self::Bilinear,
            }
        }
    }
}
