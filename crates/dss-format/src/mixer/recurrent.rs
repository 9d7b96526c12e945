//! What the settings of recurrent nets share: their state has the width h of the model, and they read forwards only.

use super::MixerContext;
use crate::error::{Error, Result};
use crate::tensors::{ParamGroup, TensorSpec};

/// Positions do not see what follows them.
pub(super) fn validate_forwards(mixer: &'static str, context: &MixerContext) -> Result<()> {
    if !context.bidirectional {
        return Ok(());
    }
    let what =
        format!("mixer = \"{mixer}\" reads its sequence forwards only: set bidirectional to false");
    Err(Error::setting(&["model.bidirectional"], what))
}

/// A tensor of the recurrent part: no weight decay, and the learning rate of Λ.
pub(super) fn recurrent_tensor(name: &str, shape: &[usize]) -> TensorSpec {
    TensorSpec::new(name, shape, ParamGroup::Lambda)
}
