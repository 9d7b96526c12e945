//! What all state spaces share: v = K * u by convolution with their kernels, or by a recurrence that gives the same. D,
//! GELU and the output projection that follow are fused with norm and residual.

use std::sync::OnceLock;

use dss_format::mixer::ssm::SsmSettings;
use dss_format::{MixerConfig, MixerContext};
use dss_kernels::frozen::{Norm, Rows, RowsParams};
use dss_kernels::{C64, Conv, Recurrence, s4};

use super::{
    LengthLimit, MixerState, SequenceMixer, StateValue, Workspace, check_forwards, no_step,
    own_state, own_workspace, read_own_state,
};
use crate::arrays::Arrays;
use crate::error::{Error, Result};
use crate::layer::{NormAndResidual, Residual};
use crate::linear::LinearWeights;
use crate::state::{Bytes, State};

/// What the shared mixer asks of a kind of state space.
pub(super) trait StateSpace: Send + Sync + 'static {
    type Recurrence: Recurrent;

    /// K: `[C, H, taps]`.
    fn write_kernel(&self, sizes: &Sizes, taps: usize, k: &mut [f32]) -> Result<()>;

    /// The recurrence that gives the same as the kernel.
    fn recurrence(&self, sizes: &Sizes) -> dss_kernels::Result<Self::Recurrence>;

    /// How many modes have Re λ > 0 and a kernel that ends at the training length.
    fn growing_modes(&self) -> usize {
        0
    }

    /// As [`SequenceMixer::set_step`], with the sizes before and after.
    fn set_step(&mut self, _old: &Sizes, _new: &Sizes, _r: f64) -> Result<()> {
        Err(no_step())
    }
}

/// Sizes of a state space.
pub(super) struct Sizes {
    pub h: usize,
    pub n: usize,
    /// S: systems, each with a Λ of its own.
    pub ssms: usize,
    /// C: per channel.
    pub kernels: usize,
    /// The taps at the training length: what the softmax's normaliser and S4's C̃ go by.
    pub norm_len: usize,
}

/// Δ becomes r·Δ.
pub(super) fn moved(delta_log: &mut [f32], r: f64) {
    delta_log.iter_mut().for_each(|delta| *delta += r.ln() as f32);
}

/// What the recurrences of `dss_kernels` have in common.
pub(super) trait Recurrent: Send + Sync + 'static {
    type State: StateValue;
    fn state(&self) -> Self::State;
    /// One step of each of several streams; there is a state in each place.
    fn step(
        &self,
        streams: &mut [Option<&mut Self::State>],
        u: &[f32],
        v: &mut [f32],
    ) -> dss_kernels::Result<()>;
    fn run(&self, state: &mut Self::State, u: &[f32], v: &mut [f32]) -> dss_kernels::Result<()>;
    fn values(&self, state: &Self::State) -> Vec<C64>;
    /// f32 holds the values exactly.
    fn is_single(&self) -> bool;
    fn state_from(&self, position: usize, values: &[C64]) -> dss_kernels::Result<Self::State>;
}

struct StateSpaceMixer<S: StateSpace> {
    system: S,
    config: MixerConfig,
    context: MixerContext,
    /// Made when the first stream begins.
    recurrence: OnceLock<dss_kernels::Result<S::Recurrence>>,
}

/// Streams that take a step together, at most.
const GROUP: usize = 64;

pub(super) fn load<S: StateSpace>(
    system: S,
    config: &MixerConfig,
    context: MixerContext,
    arrays: &mut Arrays<'_>,
    residual: Residual,
) -> Result<(Box<dyn SequenceMixer>, NormAndResidual)> {
    let config = config.clone();
    let mixer = StateSpaceMixer { system, config, context, recurrence: OnceLock::new() };
    let (d, out) = (arrays.take("d"), arrays.linear("out"));
    let around = NormAndResidual::Fused(rows(&d, out, residual, &mixer.settings())?);
    Ok((Box::new(mixer), around))
}

/// The rows, with a BatchNorm behind the block folded into it: scale·(x + W·g + b) + shift is
/// scale·x + (scale·W)·g + (scale·b + shift), and in a gated unit scale·a·σ(b) = (scale·a)·σ(b).
fn rows(
    d: &[f32],
    out: LinearWeights,
    residual: Residual,
    settings: &SsmSettings,
) -> Result<Rows<f32>> {
    let LinearWeights { mut weight, mut bias } = out;
    let Residual { norm, prenorm, h } = residual;
    let (mut skip, mut offset) = (vec![1.0; h], vec![0.0; h]);
    let (before, after) = match (prenorm, norm) {
        (true, norm) => (norm, Norm::Identity),
        (false, Norm::Affine { scale, shift }) => {
            for (i, &scale) in scale.iter().enumerate() {
                weight[i * h..][..h].iter_mut().for_each(|w| *w *= scale);
                bias[i] *= scale;
            }
            (skip, offset) = (scale, shift);
            (Norm::Identity, Norm::Identity)
        }
        (false, norm) => (Norm::Identity, norm),
    };
    if !settings.glu {
        offset.iter_mut().zip(&bias).for_each(|(offset, bias)| *offset += bias);
        bias.clear();
    }
    let params = RowsParams {
        d,
        out_weight: &weight,
        gate_bias: &bias,
        skip: &skip,
        offset: &offset,
        before,
        after,
        gelu: settings.gelu.into(),
    };
    Ok(Rows::new(params)?)
}

impl<S: StateSpace> StateSpaceMixer<S> {
    fn settings(&self) -> SsmSettings {
        self.config.settings().ssm().expect("a state space")
    }

    fn sizes(&self) -> Sizes {
        let (settings, context) = (self.settings(), &self.context);
        let norm_len = settings.taps(context.len);
        let SsmSettings { n, ssms, .. } = settings;
        Sizes { h: context.h, n, ssms, kernels: context.kernels(), norm_len }
    }

    /// Kernels can be made for sequences of length `len`.
    fn check_len(&self, len: usize) -> Result<()> {
        let context = MixerContext { len, ..self.context };
        self.config.settings().validate(&context).map_err(|e| Error::input(e.to_string()))
    }

    fn recurrence(&self) -> Result<&S::Recurrence> {
        if self.recurrence.get().is_none() {
            // Made outside of the cell: a process forked meanwhile would find it busy for ever.
            let made = self.system.recurrence(&self.sizes());
            let _section = dss_kernels::fork::section();
            let _ = self.recurrence.set(made);
        }
        let made = self.recurrence.get().expect("just set");
        made.as_ref().map_err(Error::cannot_stream)
    }
}

impl<S: StateSpace> SequenceMixer for StateSpaceMixer<S> {
    fn max_len(&self) -> Option<LengthLimit> {
        let (growing, length) = (self.system.growing_modes(), self.sizes().norm_len);
        let ends = growing > 0 && self.settings().taps(usize::MAX) > length;
        ends.then(|| {
            let why = format!(
                "{growing} modes of a layer have Re λ > 0, and their softmax kernel ends at the training length"
            );
            LengthLimit { length, why }
        })
    }

    /// K.
    fn prepare(&self, l: usize) -> Result<Vec<f32>> {
        self.check_len(l)?;
        let (sizes, taps) = (self.sizes(), self.settings().taps(l));
        let mut k = vec![0.0; sizes.kernels * sizes.h * taps];
        self.system.write_kernel(&sizes, taps, &mut k)?;
        Ok(k)
    }

    fn workspace(&self, l: usize) -> Result<Workspace> {
        Ok(Box::new(Conv::<f32>::new(1, l, self.context.h)?))
    }

    fn mix(
        &self,
        prepared: &[f32],
        workspace: &mut Workspace,
        u: &[f32],
        v: &mut [f32],
    ) -> Result<()> {
        let conv: &mut Conv<f32> = own_workspace(workspace);
        if self.context.bidirectional {
            conv.set_kernel_bidirectional(prepared)?;
        } else {
            conv.set_kernel(prepared)?;
        }
        Ok(conv.forward(u, v)?)
    }

    fn max_steps(&self) -> Option<LengthLimit> {
        let cut = self.settings().kernel_len;
        let cut = (cut > 0).then(|| LengthLimit {
            length: cut,
            why: "its kernels are cut there (kernel_len)".into(),
        });
        self.max_len().or(cut)
    }

    fn state(&self) -> Result<Box<dyn MixerState>> {
        check_forwards(&self.context)?;
        if (1..self.context.len).contains(&self.settings().kernel_len) {
            return Err(Error::cannot_stream("its kernels are cut (kernel_len)"));
        }
        Ok(Box::new(self.recurrence()?.state()))
    }

    fn step(&self, streams: &mut [State], layer: usize, u: &[f32], v: &mut [f32]) -> Result<()> {
        let (recurrence, width) = (self.recurrence()?, GROUP * self.context.h);
        let rows = u.chunks(width).zip(v.chunks_mut(width));
        for (streams, (u, v)) in streams.chunks_mut(GROUP).zip(rows) {
            let mut states = [const { None }; GROUP];
            let count = streams.len();
            for (state, stream) in states.iter_mut().zip(streams) {
                *state = Some(own_state(&mut *stream.layers[layer]));
            }
            recurrence.step(&mut states[..count], u, v)?;
        }
        Ok(())
    }

    fn run(&self, state: &mut dyn MixerState, u: &[f32], v: &mut [f32]) -> Result<()> {
        Ok(self.recurrence()?.run(own_state(state), u, v)?)
    }

    fn write_state(&self, state: &dyn MixerState, bytes: &mut Vec<u8>) -> Result<()> {
        let recurrence = self.recurrence()?;
        let values = recurrence.values(read_own_state(state));
        let parts = values.iter().flat_map(|z| [z.re, z.im]);
        if recurrence.is_single() {
            bytes.extend(parts.flat_map(|x| (x as f32).to_le_bytes()));
        } else {
            bytes.extend(parts.flat_map(f64::to_le_bytes));
        }
        Ok(())
    }

    fn read_state(&self, position: usize, bytes: &mut Bytes<'_>) -> Result<Box<dyn MixerState>> {
        let recurrence = self.recurrence()?;
        let single = recurrence.is_single();
        let mut values = recurrence.values(&recurrence.state());
        for value in &mut values {
            let mut part = || if single { bytes.f32().map(f64::from) } else { bytes.f64() };
            *value = C64::new(part()?, part()?);
        }
        let state = recurrence.state_from(position, &values);
        Ok(Box::new(state.map_err(|e| Error::State(e.to_string()))?))
    }

    fn set_step(&mut self, r: f64) -> Result<()> {
        let old = self.sizes();
        self.config = self.config.at_step(r)?;
        self.context = self.context.at_step(r);
        self.check_len(self.context.len)?;
        self.recurrence = OnceLock::new();
        self.system.set_step(&old, &self.sizes(), r)
    }

    fn kernel(&self, l: usize) -> Option<Result<Vec<f32>>> {
        Some(self.prepare(l))
    }
}

macro_rules! recurrent {
    ($recurrence:ty, $state:ty, $is_single:expr) => {
        impl StateValue for $state {
            fn reset(&mut self) {
                self.reset();
            }
        }

        impl Recurrent for $recurrence {
            type State = $state;

            fn state(&self) -> $state {
                self.state()
            }

            fn step(
                &self,
                streams: &mut [Option<&mut $state>],
                u: &[f32],
                v: &mut [f32],
            ) -> dss_kernels::Result<()> {
                self.step_streams(
                    streams,
                    |state| state.as_deref_mut().expect("a state in each place"),
                    u,
                    v,
                )
            }

            fn run(&self, state: &mut $state, u: &[f32], v: &mut [f32]) -> dss_kernels::Result<()> {
                self.run(state, u, v)
            }

            fn values(&self, state: &$state) -> Vec<C64> {
                self.values(state)
            }

            fn is_single(&self) -> bool {
                $is_single(self)
            }

            fn state_from(&self, position: usize, values: &[C64]) -> dss_kernels::Result<$state> {
                self.state_from(position, values)
            }
        }
    };
}
// Of diagonal systems; modes with Re λ > 0 have sums in f64.
recurrent!(Recurrence<f32>, dss_kernels::RecurrentState<f32>, |model: &Self| model.growing_modes()
    == 0);
recurrent!(s4::Recurrence, s4::S4State, |_| false);
