//! S4: A = Λ − PP*, with B, C̃ = C·(I − Ā^L) and Δ; one of each conjugate pair of states stored.

use dss_format::MixerContext;
use dss_format::mixer::ssm::SsmSettings;
use dss_format::mixer::{MixerSettings, S4Config};
use dss_kernels::C64;
use dss_kernels::s4::{self, Kernel, KernelConfig, Params, Recurrence};

use super::StateValue;
use super::state_space::{Recurrent, StateSpace};
use crate::arrays::Arrays;
use crate::error::{Error, Result};

pub(super) struct S4 {
    config: S4Config,
    context: MixerContext,
    lambda_re: Vec<f32>,
    lambda_im: Vec<f32>,
    p: Vec<f32>,
    b: Vec<f32>,
    c: Vec<f32>,
    delta_log: Vec<f32>,
}

impl S4 {
    pub(super) fn new(config: S4Config, context: MixerContext, arrays: &mut Arrays<'_>) -> Self {
        Self {
            config,
            context,
            lambda_re: arrays.take("lambda_re"),
            lambda_im: arrays.take("lambda_im"),
            p: arrays.take("p"),
            b: arrays.take("b"),
            c: arrays.take("c"),
            delta_log: arrays.take("delta_log"),
        }
    }

    fn sizes(&self, taps: usize) -> KernelConfig {
        KernelConfig::new(self.context.h, self.config.n, taps)
            .channels(self.context.kernels())
            .norm_len(self.norm_len())
    }

    fn params(&self) -> Params<'_, f32> {
        let Self { lambda_re, lambda_im, p, b, c, delta_log, .. } = self;
        Params { lambda_re, lambda_im, p, b, c, delta_log }
    }

    /// S4 makes its kernel at full length, whatever is used of it.
    fn check_len(&self, len: usize) -> Result<()> {
        let context = MixerContext { len, ..self.context };
        self.config.validate(&context).map_err(|e| Error::input(e.to_string()))
    }
}

impl StateSpace for S4 {
    type Recurrence = Recurrence;

    fn settings(&self) -> SsmSettings {
        self.config.shared()
    }

    fn context(&self) -> &MixerContext {
        &self.context
    }

    /// Beyond the training length, of a C̃ made for these taps.
    fn write_kernel(&self, taps: usize, k: &mut [f32]) -> Result<()> {
        let params = self.params();
        if taps <= self.norm_len() {
            return Ok(Kernel::new(self.sizes(taps))?.forward(&params, k)?);
        }
        self.check_len(taps)?;
        let config = self.sizes(self.norm_len());
        let c = &s4::change_length(&config, &params, taps)?;
        let config = KernelConfig { len: taps, norm_len: taps, ..config };
        Ok(Kernel::new(config)?.forward(&Params { c, ..params }, k)?)
    }

    fn recurrence(&self) -> dss_kernels::Result<Recurrence> {
        Recurrence::new(self.sizes(self.norm_len()), &self.params())
    }

    /// C̃ is made again: both Ā and L are others.
    fn set_step(&mut self, r: f64) -> Result<()> {
        let plain = s4::uncorrect_length(&self.sizes(self.norm_len()), &self.params())?;
        self.delta_log.iter_mut().for_each(|delta| *delta += r.ln() as f32);
        (self.config, self.context) = (self.config.with_step(r), self.context.at_step(r));
        self.check_len(self.context.len)?;
        let params = Params { c: &plain, ..self.params() };
        self.c = s4::correct_length(&self.sizes(self.norm_len()), &params)?;
        Ok(())
    }
}

impl StateValue for s4::State {
    fn reset(&mut self) {
        self.reset();
    }
}

impl Recurrent for Recurrence {
    type State = s4::State;

    fn state(&self) -> Self::State {
        self.state()
    }

    fn step(
        &self,
        streams: &mut [Option<&mut Self::State>],
        u: &[f32],
        v: &mut [f32],
    ) -> dss_kernels::Result<()> {
        self.step_streams(streams, |state| state.as_deref_mut().expect("a state"), u, v)
    }

    fn run(&self, state: &mut Self::State, u: &[f32], v: &mut [f32]) -> dss_kernels::Result<()> {
        self.run(state, u, v)
    }

    fn values(&self, state: &Self::State) -> Vec<C64> {
        self.values(state)
    }

    fn is_single(&self) -> bool {
        false
    }

    fn state_from(&self, position: usize, values: &[C64]) -> dss_kernels::Result<Self::State> {
        self.state_from(position, values)
    }
}
