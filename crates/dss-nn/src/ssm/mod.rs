//! State spaces: what the kernels of a layer are made of. One file each.

mod dss;
mod s4;
mod s4d;

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};

use crate::config::MixerKind;
use crate::error::Result;
use crate::layer::SsmLayerConfig;
use crate::state::Recurrent;

pub use dss::DssSsm;
pub use s4::S4Ssm;
pub use s4d::S4dSsm;

/// The state space of a layer.
#[derive(Module, Debug)]
pub enum Ssm {
    /// Diagonal (the paper).
    Dss(DssSsm),
    /// Diagonal plus low rank.
    S4(S4Ssm),
    /// Diagonal, in conjugate pairs.
    S4d(S4dSsm),
}

impl Ssm {
    /// The initial numbers of the layer `name`.
    pub(crate) fn new(config: &SsmLayerConfig, name: &str, device: &Device) -> Result<Self> {
        Ok(match config.mixer {
            MixerKind::Dss => Self::Dss(DssSsm::new(config, name, device)?),
            MixerKind::S4 => Self::S4(S4Ssm::new(config, name, device)?),
            MixerKind::S4d => Self::S4d(S4dSsm::new(config, name, device)?),
        })
    }

    pub(crate) fn get(&self) -> &dyn StateSpace {
        match self {
            Self::Dss(ssm) => ssm,
            Self::S4(ssm) => ssm,
            Self::S4d(ssm) => ssm,
        }
    }
}

/// What a layer asks of its state space.
pub(crate) trait StateSpace {
    /// K: `[C, H, taps]` for sequences of length l; an error where [`Self::check_longer`] gives one.
    fn kernel(&self, config: &SsmLayerConfig, l: usize) -> Result<Tensor<3>>;

    /// Sequences of length l, beyond the training length, are possible.
    fn check_longer(&self, config: &SsmLayerConfig, l: usize) -> Result<()>;

    /// How many modes have Re λ > 0.
    fn growing_modes(&self, config: &SsmLayerConfig) -> usize;

    /// With r times the step, `old` and `new` being the layer before and after.
    fn at_step(&self, old: &SsmLayerConfig, new: &SsmLayerConfig, r: f64) -> Result<Ssm>;

    /// `batch` streams before their first step.
    fn recurrence(&self, config: &SsmLayerConfig, batch: usize) -> Result<Box<dyn Recurrent>>;
}

/// A parameter with another value, trained as before.
fn changed<const D: usize>(
    param: &Param<Tensor<D>>,
    f: impl FnOnce(Tensor<D>) -> Tensor<D>,
) -> Param<Tensor<D>> {
    param.clone().map(|x| {
        let trained = x.is_require_grad();
        f(x.detach()).detach().set_require_grad(trained)
    })
}
