//! The convolution mixer of all state spaces (§3.2): y = Out(GELU(K * u + D·u)), K made of the parameters of a state
//! space. Alone, a layer takes the fused form for its kernel only; the block around it is fused as a whole.

use std::fmt::Debug;

use burn::module::Param;
use burn::tensor::Tensor;
use dss_format::MixerContext;
use dss_format::mixer::ssm::SsmSettings;

use super::heads::cut;
use super::state::{MixerState, Recurrent};
use super::{
    BlockNorm, HasContext, Init, Mixer, Modes, Pass, SequenceMixer, at_least_one, check_forwards,
    no_carry, no_step, whole_only,
};
use crate::composed;
use crate::dispatch;
use crate::error::Result;
use crate::linear::{Linear, parameter};
use crate::ops::{BatchStats, BlockParams, BlockSpec};
use crate::prepared::Prepared;
use crate::random::normal;

/// What every state space has.
pub(crate) struct SsmParts<'a> {
    /// Those that it shares with the other kinds.
    pub settings: SsmSettings,
    /// D: `[H]`.
    pub d: &'a Param<Tensor<1>>,
    /// The output projection, `[H, H]` or `[2H, H]`.
    pub out: &'a Linear,
}

/// What the shared layer asks of a kind of state space.
pub(crate) trait StateSpace: HasContext + Debug {
    /// What every state space has.
    fn parts(&self) -> SsmParts<'_>;

    /// K: `[C, H, taps]` for sequences of length l; an error where [`Self::check_longer`] gives one.
    fn make_kernel(&self, l: usize) -> Result<Tensor<3>>;

    /// Sequences of length l, beyond the training length, are possible.
    fn check_longer(&self, _l: usize) -> Result<()> {
        Ok(())
    }

    /// Λ and Δ.
    fn lambda_and_delta(&self) -> Modes;

    /// What is special about sequences longer than those of training; nothing, for most.
    fn beyond_training(&self) -> Option<String> {
        None
    }

    /// With r times the step: Δ becomes r·Δ, lengths L/r (rounded up). Kernels then are sums over r taps of the old one,
    /// up to the error of the bilinear rule.
    fn with_step(&self, _r: f64) -> Result<Mixer> {
        Err(no_step())
    }

    /// `batch` streams before their first step.
    fn recurrence(&self, batch: usize) -> Result<Box<dyn Recurrent>>;

    /// As [`SequenceMixer::carried`].
    fn carry_start(&self, _batch: usize) -> Result<Tensor<4>> {
        Err(no_carry())
    }

    /// As [`SequenceMixer::carry`].
    fn carry_window(&self, _carried: &mut Tensor<4>, _u: Tensor<3>) -> Tensor<3> {
        panic!("{}", no_carry())
    }

    /// How many taps the kernel has for sequences of length l.
    fn taps(&self, l: usize) -> usize {
        self.parts().settings.taps(l)
    }

    /// The taps at the training length: what the softmax's normaliser and S4's C̃ go by.
    fn norm_len(&self) -> usize {
        self.taps(self.context().len)
    }
}

/// The initial D `[H]` ~ N(0, 1) and output projection `[H, H]` or `[2H, H]`.
pub(super) fn d_and_out(glu: bool, h: usize, init: &Init) -> (Param<Tensor<1>>, Linear) {
    let d = normal(h, &mut init.stream("d"));
    let outputs = if glu { 2 * h } else { h };
    (parameter(d, [h], init.device), init.linear("out", h, outputs))
}

impl<S: StateSpace> SequenceMixer for S {
    /// The kernel of a softmax layer with Re λ > 0 ends at the training length; S4 has a longer one unless its Δ is too
    /// small.
    fn check_len(&self, l: usize) -> Result<()> {
        at_least_one(l)?;
        if self.taps(l) <= self.norm_len() {
            return Ok(());
        }
        self.check_longer(l)
    }

    /// K. Of S4, K beyond the training length has no gradients.
    fn prepare(&self, l: usize) -> Result<Prepared> {
        self.check_len(l)?;
        Ok(Prepared::with_kernel(self.make_kernel(l)?))
    }

    fn mix(&self, u: Tensor<3>, prepared: &Prepared, pass: &Pass) -> Tensor<3> {
        let bidirectional = self.context().bidirectional;
        let SsmParts { settings, d, out } = self.parts();
        let u = cut(u, pass.lengths.as_deref().filter(|_| bidirectional));
        let y =
            composed::mix(u, prepared.expect_kernel(), d.val(), pass.past.clone(), bidirectional);
        let y = pass.dropped(composed::activated(y, settings.gelu), 0);
        composed::project(y, out.weight.val(), out.bias.val(), settings.glu)
    }

    fn block(
        &self,
        x: &Tensor<3>,
        prepared: &Prepared,
        pass: &Pass,
        norm: &BlockNorm,
    ) -> Option<(Tensor<3>, Option<BatchStats>)> {
        let MixerContext { bidirectional, form, .. } = *self.context();
        let SsmParts { settings, d, out } = self.parts();
        let params = BlockParams {
            k: prepared.expect_kernel(),
            d: d.val(),
            out_weight: out.weight.val(),
            out_bias: out.bias.val(),
            gamma: norm.norm.gamma.val(),
            beta: norm.norm.beta.val(),
            past: pass.past.clone(),
        };
        let spec = BlockSpec {
            prenorm: norm.prenorm,
            norm: norm.mode.clone(),
            glu: settings.glu,
            gelu: settings.gelu,
            bidirectional,
            lengths: pass.lengths.clone().filter(|_| bidirectional),
            masks: pass.masks.clone(),
        };
        Some(dispatch::block(form, x.clone(), &params, &spec))
    }

    fn state(&self, batch: usize) -> Result<MixerState> {
        let MixerContext { h, len, .. } = *self.context();
        check_forwards(self.context())?;
        if (1..len).contains(&self.parts().settings.kernel_len) {
            return whole_only("the kernel is cut (kernel_len)");
        }
        Ok(MixerState::new(self.recurrence(batch)?, [batch, h]))
    }

    fn step(&self, state: &mut MixerState, u: Tensor<2>) -> Result<Tensor<2>> {
        let SsmParts { settings, d, out } = self.parts();
        let y = state.step(u.clone())?;
        let y = composed::activated(y + u * d.val().unsqueeze(), settings.gelu);
        Ok(composed::project(y, out.weight.val(), out.bias.val(), settings.glu))
    }

    fn at_step(&self, r: f64) -> Result<Mixer> {
        self.with_step(r)
    }

    fn carried(&self, batch: usize) -> Result<Tensor<4>> {
        self.carry_start(batch)
    }

    fn carry(&self, carried: &mut Tensor<4>, u: Tensor<3>) -> Tensor<3> {
        self.carry_window(carried, u)
    }

    fn kernel(&self, l: usize) -> Option<Tensor<3>> {
        Some(self.prepare(l).unwrap_or_else(|error| panic!("{error}")).expect_kernel())
    }

    fn modes(&self) -> Option<Modes> {
        Some(self.lambda_and_delta())
    }

    fn past_end(&self) -> String {
        match self.parts().settings.kernel_len {
            0 => self
                .beyond_training()
                .unwrap_or_else(|| "the kernel does not depend on the length".to_owned()),
            cut => format!("every layer sees {} steps at most", cut.min(self.context().len)),
        }
    }
}
