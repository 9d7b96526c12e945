//! Mega's damped exponential moving average (Ma et al. 2023, §3.1): x' = (1 − α·δ)·x + α·β·u, y = Σ η·x/√N, N real
//! dimensions for each channel and direction. It is the convolution with K_l = Σ_n η·α·β·(1 − α·δ)^l/√N, a kernel of
//! DSS-exp-no-scale with Re λ = ln(1 − α·δ), Im λ = 0, Δ = 1 and a Λ of its own for every channel.

use burn::module::{Module, Param};
use burn::tensor::Tensor;
use burn::tensor::activation::sigmoid;
use dss_format::MixerContext;
use dss_format::mixer::{Delta, MegaEmaConfig, Variant};

use super::modes::numbers;
use super::state::{ModesState, Recurrent};
use super::state_space::{SsmParts, StateSpace, d_and_out};
use super::{Init, ModeStep, Modes};
use crate::composed;
use crate::dispatch;
use crate::error::Result;
use crate::linear::{Linear, parameter};
use crate::ops::{KernelParams, KernelSpec};
use crate::random::normal;

/// A layer of moving averages.
#[derive(Module, Debug)]
pub struct MegaEmaLayer {
    /// α = σ of this: `[C, H, N]` ~ N(0, 0.2²).
    pub alpha: Param<Tensor<3>>,
    /// δ = σ of this: `[C, H, N]` ~ N(0, 0.2²).
    pub delta: Param<Tensor<3>>,
    /// β: `[C, H, N]` ~ N(±1, 0.02²), the sign alternating along N.
    pub beta: Param<Tensor<3>>,
    /// η: `[C, H, N]` ~ N(0, 1).
    pub eta: Param<Tensor<3>>,
    /// D: `[H]` ~ N(0, 1).
    pub d: Param<Tensor<1>>,
    /// The output projection, `[H, H]` or `[2H, H]`.
    pub out: Linear,
    #[module(skip)]
    config: MegaEmaConfig,
    #[module(skip)]
    pub(super) context: MixerContext,
}

impl MegaEmaLayer {
    pub(super) fn init(config: &MegaEmaConfig, context: MixerContext, init: &Init) -> Result<Self> {
        let shape = [context.kernels(), context.h, config.n];
        let draw = |name, size: f64, mean: fn(usize) -> f64| {
            let values = normal(shape.iter().product(), &mut init.stream(name));
            let values = values.into_iter().enumerate();
            let values = values.map(|(i, x)| mean(i % shape[2]) + size * x).collect();
            parameter(values, shape, init.device)
        };
        let (d, out) = d_and_out(config.glu, context.h, init);
        Ok(Self {
            alpha: draw("alpha", 0.2, |_| 0.0),
            delta: draw("delta", 0.2, |_| 0.0),
            beta: draw("beta", 0.02, |n| if n % 2 == 0 { 1.0 } else { -1.0 }),
            eta: draw("eta", 1.0, |_| 0.0),
            d,
            out,
            config: *config,
            context,
        })
    }

    /// As a DSS-exp-no-scale kernel of C·H channels with a Λ each.
    fn kernel_params(&self) -> KernelParams {
        let [c, h, n] = self.alpha.val().dims();
        let (alpha, delta) = (sigmoid(self.alpha.val()), sigmoid(self.delta.val()));
        let fade = -(-(alpha.clone() * delta)).log1p();
        let weight = alpha * self.beta.val() * self.eta.val() * (1.0 / (n as f64).sqrt());
        let pair = |re: Tensor<3>| {
            let re = re.reshape([c * h * n, 1]);
            let im = re.zeros_like();
            Tensor::<2>::cat(vec![re, im], 1)
        };
        let delta_log = Tensor::zeros([c * h, 1], (&weight.device(), weight.dtype()));
        KernelParams {
            lambda: pair(fade.log()),
            delta_log,
            w: pair(weight).reshape([1, c * h, n, 2]),
        }
    }
}

impl StateSpace for MegaEmaLayer {
    fn parts(&self) -> SsmParts<'_> {
        SsmParts { settings: self.config.shared(), d: &self.d, out: &self.out }
    }

    fn make_kernel(&self, l: usize) -> Result<Tensor<3>> {
        let taps = self.taps(l);
        let (variant, delta) = (Variant::ExpNoScale, Delta::Tied);
        let spec = KernelSpec { variant, delta, taps, norm_len: taps };
        let k = dispatch::kernel(self.context.form, &self.kernel_params(), &spec);
        Ok(k.reshape([self.context.kernels(), self.context.h, taps]))
    }

    fn lambda_and_delta(&self) -> Modes {
        let sigma = |x: f64| 1.0 / (1.0 + (-x).exp());
        let both = numbers(&self.alpha).into_iter().zip(numbers(&self.delta));
        let channels = self.context.kernels() * self.context.h;
        Modes {
            lambda: both.map(|(a, d)| [(-sigma(a) * sigma(d)).ln_1p(), 0.0]).collect(),
            delta_log_re: vec![0.0; channels],
            delta_log_im: vec![0.0; channels],
            tied: true,
            systems: channels,
            step: ModeStep::Exponential,
            initial: Vec::new(),
            initial_name: "",
        }
    }

    fn recurrence(&self, batch: usize) -> Result<Box<dyn Recurrent>> {
        let KernelParams { lambda, delta_log, w } = self.kernel_params();
        let params =
            KernelParams { lambda: lambda.inner(), delta_log: delta_log.inner(), w: w.inner() };
        let modes = composed::modes(&params, Variant::ExpNoScale, 1);
        Ok(Box::new(ModesState::new(modes, 0, self.norm_len(), batch)))
    }
}
