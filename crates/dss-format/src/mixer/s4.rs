//! S4: diagonal plus low rank, one of each conjugate pair of states stored.
//!
//! | name | shape | |
//! |------|-------|-|
//! | `lambda_re`, `lambda_im` | `[N/2]` each, `[S, N/2]` for S > 1 | Re λ = −exp(Λ_re) |
//! | `p`, `b` | `[N/2, 2]` each, `[S, N/2, 2]` for S > 1 | A = Λ − PP* |
//! | `c` | `[C, H, N/2, 2]` | C̃ = C·(I − Ā^L), L the training length or `kernel_len` |
//! | `delta_log` | `[H]` | |

use super::ssm::{SsmSettings, ssm_config};
use super::{MixerConfig, MixerContext, MixerSettings, saturating_product};
use crate::config::Form;
use crate::error::{Error, Result};
use crate::tensors::{ParamGroup, TensorSpec};

/// The longest kernel, which is always computed at its full length.
const MAX_TAPS: usize = 1 << 24;

ssm_config! {
    /// The settings of S4.
    S4Config {
        /// Systems S: channel h has the Λ, P and B of system h mod S; a divisor of h, 1 = one of each for all channels.
        ssms: usize = 1,
    }, systems = |config| config.ssms
}

impl MixerSettings for S4Config {
    fn title(&self) -> &'static str {
        "S4"
    }

    fn size(&self) -> String {
        self.shared().size()
    }

    fn validate(&self, context: &MixerContext) -> Result<()> {
        self.shared().validate_pairs("s4")?;
        self.shared().validate()?;
        self.shared().validate_systems(context.h)?;
        let taps = self.shared().taps(context.len);
        if taps > MAX_TAPS {
            let what = format!(
                "S4 makes kernels of at most {MAX_TAPS} taps, but its length is {taps}: set kernel_len"
            );
            return Err(Error::setting(&["model.mixer.kernel_len"], what));
        }
        Ok(())
    }

    fn tensors(&self, context: &MixerContext) -> Vec<TensorSpec> {
        let (h, pairs) = (context.h, self.n / 2);
        let lambda = self.shared().per_system(&[pairs]);
        let vector = self.shared().per_system(&[pairs, 2]);
        let mut all = vec![
            TensorSpec::new("lambda_re", &lambda, ParamGroup::Lambda),
            TensorSpec::new("lambda_im", &lambda, ParamGroup::Lambda),
            TensorSpec::new("p", &vector, ParamGroup::Lambda),
            TensorSpec::new("b", &vector, ParamGroup::Lambda),
            TensorSpec::new("c", &[context.kernels(), h, pairs, 2], ParamGroup::W),
            TensorSpec::new("delta_log", &[h], ParamGroup::Delta),
        ];
        all.extend(self.shared().tensors(h));
        all
    }

    fn at_step(&self, r: f64) -> Option<MixerConfig> {
        Some(self.with_step(r).into())
    }

    /// The composed kernels: some ten tensors `[H, N/2, L/2]` in f64.
    fn kept_for_backward(&self, context: &MixerContext) -> u64 {
        if context.form != Form::Composed {
            return 0;
        }
        saturating_product(&[context.h, self.n / 2, self.shared().taps(context.len) / 2, 8, 10])
    }

    fn ssm(&self) -> Option<SsmSettings> {
        Some(self.shared())
    }
}
