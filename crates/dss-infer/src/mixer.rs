//! What mixes along time: kernels for whole sequences, recurrences for streams, of DSS, S4 and S4D.

use dss_kernels::kernel::{self, KernelConfig, Params};
use dss_kernels::{C64, Recurrence, s4, s4d};

use crate::config::{Delta, Discretisation, ModelConfig, Variant};
use crate::error::{Error, Result};

/// A layer's parameters, as they stand in the file.
pub(crate) enum Mixer {
    Dss {
        lambda_re: Vec<f32>,
        lambda_im: Vec<f32>,
        delta_log: Vec<f32>,
        w: Vec<f32>,
    },
    S4 {
        lambda_re: Vec<f32>,
        lambda_im: Vec<f32>,
        p: Vec<f32>,
        b: Vec<f32>,
        c: Vec<f32>,
        delta_log: Vec<f32>,
    },
    S4d {
        lambda_re: Vec<f32>,
        lambda_im: Vec<f32>,
        c: Vec<f32>,
        delta_log: Vec<f32>,
    },
}

/// A layer as a recurrence.
pub(crate) enum Recurrent {
    Diagonal(Recurrence<f32>),
    S4(s4::Recurrence),
}

/// A stream's state of one layer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum MixerState {
    Diagonal(dss_kernels::State<f32>),
    S4(s4::State),
}

/// Sizes of a mixer: the model's settings and its training length.
#[derive(Clone, Copy)]
pub(crate) struct Sizes<'a> {
    pub config: &'a ModelConfig,
    pub len: usize,
}

impl Sizes<'_> {
    /// The length of the softmax, and the one that C̃ of S4 is corrected for.
    fn norm_len(&self) -> usize {
        self.config.taps(self.len)
    }

    fn dss(&self, taps: usize) -> KernelConfig {
        let ModelConfig { h, n, variant, delta, .. } = *self.config;
        let variant = match variant {
            Variant::Softmax => kernel::Variant::Softmax,
            Variant::Exp => kernel::Variant::Exp,
            Variant::ExpNoScale => kernel::Variant::ExpNoScale,
        };
        let delta = match delta {
            Delta::Separate => kernel::Delta::Separate,
            Delta::Tied => kernel::Delta::Tied,
        };
        KernelConfig::new(variant, h, n, taps)
            .delta(delta)
            .channels(self.config.channels())
            .norm_len(self.norm_len())
    }

    fn s4(&self, taps: usize) -> s4::KernelConfig {
        let ModelConfig { h, n, .. } = *self.config;
        s4::KernelConfig::new(h, n, taps).channels(self.config.channels()).norm_len(self.norm_len())
    }

    fn s4d(&self, taps: usize) -> s4d::KernelConfig {
        let ModelConfig { h, n, discretisation, .. } = *self.config;
        let discretisation = match discretisation {
            Discretisation::Zoh => s4d::Discretisation::ZeroOrderHold,
            Discretisation::Bilinear => s4d::Discretisation::Bilinear,
        };
        s4d::KernelConfig::new(discretisation, h, n, taps)
            .channels(self.config.channels())
            .systems(1)
    }
}

impl Mixer {
    /// How many modes have Re λ > 0 and a kernel that ends with the softmax.
    pub(crate) fn growing_modes(&self, config: &ModelConfig) -> usize {
        match self {
            Self::Dss { lambda_re, .. } if config.variant == Variant::Softmax => {
                lambda_re.iter().filter(|&&re| re > 0.0).count()
            }
            _ => 0,
        }
    }

    /// K: `[C, H, taps]`.
    pub(crate) fn kernel(&self, sizes: Sizes<'_>, taps: usize) -> Result<Vec<f32>> {
        let mut k = vec![0.0; sizes.config.channels() * sizes.config.h * taps];
        match self {
            Self::Dss { lambda_re, lambda_im, delta_log, w } => {
                let params = Params { lambda_re, lambda_im, delta_log, w };
                kernel::Kernel::new(sizes.dss(taps))?.forward(&params, &mut k)?;
            }
            Self::S4 { lambda_re, lambda_im, p, b, c, delta_log } => {
                let config = sizes.s4(taps.min(sizes.norm_len()));
                let params = s4::Params { lambda_re, lambda_im, p, b, c, delta_log };
                if taps <= sizes.norm_len() {
                    s4::Kernel::new(config)?.forward(&params, &mut k)?;
                } else {
                    let c = &s4::change_length(&config, &params, taps)?;
                    let config = s4::KernelConfig { len: taps, norm_len: taps, ..config };
                    s4::Kernel::new(config)?.forward(&s4::Params { c, ..params }, &mut k)?;
                }
            }
            Self::S4d { lambda_re, lambda_im, c, delta_log } => {
                let params = s4d::Params { lambda_re, lambda_im, b: None, c, delta_log };
                s4d::Kernel::new(sizes.s4d(taps))?.forward(&params, &mut k)?;
            }
        }
        Ok(k)
    }

    /// The recurrence that gives the same as the kernel.
    pub(crate) fn recurrent(&self, sizes: Sizes<'_>) -> dss_kernels::Result<Recurrent> {
        let len = sizes.norm_len();
        Ok(match self {
            Self::Dss { lambda_re, lambda_im, delta_log, w } => {
                let params = Params { lambda_re, lambda_im, delta_log, w };
                Recurrent::Diagonal(Recurrence::new(sizes.dss(len), &params)?)
            }
            Self::S4 { lambda_re, lambda_im, p, b, c, delta_log } => {
                let params = s4::Params { lambda_re, lambda_im, p, b, c, delta_log };
                Recurrent::S4(s4::Recurrence::new(sizes.s4(len), &params)?)
            }
            Self::S4d { lambda_re, lambda_im, c, delta_log } => {
                let params = s4d::Params { lambda_re, lambda_im, b: None, c, delta_log };
                Recurrent::Diagonal(s4d::recurrence(sizes.s4d(len), &params)?)
            }
        })
    }

    /// The same system read with r times the step; `old` and `new` are its sizes before and after.
    pub(crate) fn at_step(&mut self, old: Sizes<'_>, new: Sizes<'_>, r: f64) -> Result<()> {
        let moved = |delta_log: &mut [f32]| {
            delta_log.iter_mut().for_each(|delta| *delta += r.ln() as f32);
        };
        match self {
            Self::Dss { delta_log, w, .. } => {
                moved(delta_log);
                if old.config.variant == Variant::ExpNoScale {
                    w.iter_mut().for_each(|w| *w *= r as f32);
                }
            }
            Self::S4d { delta_log, .. } => moved(delta_log),
            Self::S4 { lambda_re, lambda_im, p, b, c, delta_log } => {
                // C̃ = C·(I − Ā^L) changes with Δ and with L.
                let system = s4::Params { lambda_re, lambda_im, p, b, c, delta_log };
                let plain = s4::uncorrect_length(&old.s4(old.norm_len()), &system)?;
                let mut delta = delta_log.clone();
                moved(&mut delta);
                let system = s4::Params { c: &plain, delta_log: &delta, ..system };
                let corrected = s4::correct_length(&new.s4(new.norm_len()), &system)?;
                (*c, *delta_log) = (corrected, delta);
            }
        }
        Ok(())
    }
}

impl Recurrent {
    pub(crate) fn state(&self) -> MixerState {
        match self {
            Self::Diagonal(model) => MixerState::Diagonal(model.state()),
            Self::S4(model) => MixerState::S4(model.state()),
        }
    }

    /// One step of many streams: u, v `[B, H]`.
    pub(crate) fn step<X>(
        &self,
        streams: &mut [X],
        state_of: impl Fn(&mut X) -> &mut MixerState,
        u: &[f32],
        v: &mut [f32],
    ) -> Result<()> {
        match self {
            Self::Diagonal(model) => {
                model.step_streams(streams, |x| state_of(x).diagonal(), u, v)?;
            }
            Self::S4(model) => model.step_streams(streams, |x| state_of(x).s4(), u, v)?,
        }
        Ok(())
    }

    /// Many steps of one stream: u, v `[L, H]`.
    pub(crate) fn run(&self, state: &mut MixerState, u: &[f32], v: &mut [f32]) -> Result<()> {
        match self {
            Self::Diagonal(model) => model.run(state.diagonal(), u, v)?,
            Self::S4(model) => model.run(state.s4(), u, v)?,
        }
        Ok(())
    }

    /// The numbers of a state, and whether f32 holds them exactly.
    pub(crate) fn values(&self, state: &MixerState) -> (Vec<C64>, bool) {
        match (self, state) {
            (Self::Diagonal(model), MixerState::Diagonal(state)) => {
                (model.values(state), self.single())
            }
            (Self::S4(model), MixerState::S4(state)) => (model.values(state), self.single()),
            _ => unreachable!("a state is checked to be of its model"),
        }
    }

    /// f32 holds the states exactly.
    pub(crate) fn single(&self) -> bool {
        matches!(self, Self::Diagonal(model) if model.growing_modes() == 0)
    }

    /// How many complex numbers a state has.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Diagonal(model) => model.config().h * model.config().n,
            Self::S4(model) => model.config().h * model.config().pairs(),
        }
    }

    /// A state with the given numbers.
    pub(crate) fn state_from(&self, position: usize, values: &[C64]) -> Result<MixerState> {
        let refused = |e: dss_kernels::Error| Error::State(e.to_string());
        Ok(match self {
            Self::Diagonal(model) => {
                MixerState::Diagonal(model.state_from(position, values).map_err(refused)?)
            }
            Self::S4(model) => MixerState::S4(model.state_from(position, values).map_err(refused)?),
        })
    }
}

impl MixerState {
    fn diagonal(&mut self) -> &mut dss_kernels::State<f32> {
        match self {
            Self::Diagonal(state) => state,
            Self::S4(_) => unreachable!("a state is checked to be of its model"),
        }
    }

    fn s4(&mut self) -> &mut s4::State {
        match self {
            Self::S4(state) => state,
            Self::Diagonal(_) => unreachable!("a state is checked to be of its model"),
        }
    }

    pub(crate) fn reset(&mut self) {
        match self {
            Self::Diagonal(state) => state.reset(),
            Self::S4(state) => state.reset(),
        }
    }
}
