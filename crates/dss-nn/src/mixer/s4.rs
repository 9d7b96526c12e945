//! S4 (Gu, Goel, Ré 2022): A = Λ − PP*, with B, C̃ and Δ.

use burn::module::{Module, Param};
use burn::tensor::{Tensor, TensorData};
use dss_format::MixerContext;
use dss_format::mixer::{MixerSettings, S4Config};
use dss_kernels::{C64, init, s4};

use super::modes::{left_lambda, numbers, pairs};
use super::state::{Recurrent, S4Streams};
use super::state_space::{SsmParts, StateSpace, d_and_out};
use super::{Init, Mixer, ModeStep, Modes, changed};
use crate::dispatch;
use crate::error::{Error, Result};
use crate::linear::{Linear, parameter};
use crate::ops::{S4Params, S4Spec};

/// An S4 layer, one of each conjugate pair of states stored. Channels with the same h mod S share Λ, P and B.
#[derive(Module, Debug)]
pub struct S4Layer {
    /// Λ_re: `[S·N/2]`, Re λ = −exp(Λ_re). Λ, P and B start as HiPPO-LegS.
    pub lambda_re: Param<Tensor<1>>,
    /// Λ_im: `[S·N/2]`.
    pub lambda_im: Param<Tensor<1>>,
    /// P: `[S·N/2, 2]`.
    pub p: Param<Tensor<2>>,
    /// B: `[S·N/2, 2]`.
    pub b: Param<Tensor<2>>,
    /// C̃ = C·(I − Ā^L): `[C, H, N/2, 2]`; C starts complex standard normal.
    pub c: Param<Tensor<4>>,
    /// Δ_log: `[H]` ~ U(log Δmin, log Δmax).
    pub delta_log: Param<Tensor<1>>,
    /// D: `[H]` ~ N(0, 1).
    pub d: Param<Tensor<1>>,
    /// The output projection, `[H, H]` or `[2H, H]`.
    pub out: Linear,
    #[module(skip)]
    config: S4Config,
    #[module(skip)]
    pub(super) context: MixerContext,
}

impl S4Layer {
    /// C is drawn and C̃ made of it, O(H·N³·log L), unless a checkpoint's replaces it.
    pub(super) fn init(config: &S4Config, context: MixerContext, init: &Init) -> Result<Self> {
        let S4Config { n, ssms, delta_min: low, delta_max: high, .. } = *config;
        let (channels, h, pairs) = (context.kernels(), context.h, n / 2);
        let init::Nplr { lambda, p, b } = init::nplr_legs(n)?;
        let flat = |x: &[C64]| x.repeat(ssms).iter().flat_map(|z| [z.re, z.im]).collect();
        let lambda = lambda.repeat(ssms);
        let c = init::s4_c(channels, h, pairs, &mut init.stream("c"));
        let delta_log = init::delta_log(h, low, high, &mut init.stream("delta_log"))?;
        let re = lambda.iter().map(|z| (-z.re).ln()).collect();
        let im = lambda.iter().map(|z| z.im).collect();
        let (d, out) = d_and_out(config.glu, h, init);
        let mut layer = Self {
            lambda_re: parameter(re, [ssms * pairs], init.device),
            lambda_im: parameter(im, [ssms * pairs], init.device),
            p: parameter(flat(&p), [ssms * pairs, 2], init.device),
            b: parameter(flat(&b), [ssms * pairs, 2], init.device),
            c: parameter(c, [channels, h, pairs, 2], init.device),
            delta_log: parameter(delta_log, [h], init.device),
            d,
            out,
            config: *config,
            context,
        };
        if !init.replaced {
            let c = s4::correct_length(&layer.sizes(), &layer.host().params())?;
            layer.c = replaced(&layer.c, c);
        }
        Ok(layer)
    }

    /// As the operations take them.
    pub fn kernel_params(&self) -> S4Params {
        S4Params {
            lambda_re: self.lambda_re.val(),
            lambda_im: self.lambda_im.val(),
            p: self.p.val(),
            b: self.b.val(),
            c: self.c.val(),
            delta_log: self.delta_log.val(),
        }
    }

    /// C̃ for kernels of `taps`.
    fn c_for(&self, taps: usize) -> Result<Vec<f64>> {
        s4::change_length(&self.sizes(), &self.host().params(), taps).map_err(|error| {
            let len = self.context.len;
            let what = format!(
                "this layer was made for sequences of length up to {len}, and its kernel cannot be made longer: {error}; \
                 shorten the sequence"
            );
            Error::refused(what)
        })
    }

    /// The sizes of kernels at the training length.
    fn sizes(&self) -> s4::KernelConfig {
        let channels = self.context.kernels();
        let S4Config { n, ssms, .. } = self.config;
        s4::KernelConfig::new(self.context.h, n, self.norm_len()).channels(channels).systems(ssms)
    }

    fn host(&self) -> Host {
        Host {
            lambda_re: numbers(&self.lambda_re),
            lambda_im: numbers(&self.lambda_im),
            p: numbers(&self.p),
            b: numbers(&self.b),
            c: numbers(&self.c),
            delta_log: numbers(&self.delta_log),
        }
    }
}

impl StateSpace for S4Layer {
    fn parts(&self) -> SsmParts<'_> {
        SsmParts { settings: self.config.shared(), d: &self.d, out: &self.out }
    }

    fn make_kernel(&self, l: usize) -> Result<Tensor<3>> {
        let (taps, norm_len, form) = (self.taps(l), self.norm_len(), self.context.form);
        let params = self.kernel_params();
        if taps <= norm_len {
            return Ok(dispatch::s4_kernel(form, &params, &S4Spec { taps, norm_len }));
        }
        let c = self.c_for(taps)?;
        let params = S4Params {
            lambda_re: params.lambda_re.detach(),
            lambda_im: params.lambda_im.detach(),
            p: params.p.detach(),
            b: params.b.detach(),
            c: like(&params.c, c),
            delta_log: params.delta_log.detach(),
        };
        Ok(dispatch::s4_kernel(form, &params, &S4Spec { taps, norm_len: taps }))
    }

    fn check_longer(&self, l: usize) -> Result<()> {
        self.config.validate(&MixerContext { len: l, ..self.context })?;
        self.c_for(self.taps(l)).map(|_| ())
    }

    fn lambda_and_delta(&self) -> Modes {
        let delta_log = numbers(&self.delta_log);
        Modes {
            lambda: left_lambda(&self.lambda_re, &self.lambda_im),
            delta_log_re: delta_log.clone(),
            delta_log_im: delta_log,
            tied: true,
            systems: self.config.ssms,
            step: ModeStep::LowRank,
            initial: pairs(&init::skew_hippo(self.config.n / 2).unwrap_or_default()),
            initial_name: "initial (HiPPO-LegS)",
        }
    }

    /// C̃ is made again: both Ā and L are others.
    fn with_step(&self, r: f64) -> Result<Mixer> {
        let mut host = self.host();
        host.c = s4::uncorrect_length(&self.sizes(), &host.params())?;
        host.delta_log.iter_mut().for_each(|delta| *delta += r.ln());
        let mut next = self.clone();
        next.context = self.context.at_step(r);
        next.config = self.config.with_step(r);
        next.config.validate(&next.context)?;
        let c = s4::correct_length(&next.sizes(), &host.params())?;
        next.c = replaced(&self.c, c);
        next.delta_log = replaced(&self.delta_log, host.delta_log);
        Ok(Mixer::S4(next))
    }

    fn recurrence(&self, batch: usize) -> Result<Box<dyn Recurrent>> {
        let model = s4::Recurrence::new(self.sizes(), &self.host().params())?;
        Ok(Box::new(S4Streams::new(model, batch)))
    }
}

/// The parameters in f64 on the host.
struct Host {
    lambda_re: Vec<f64>,
    lambda_im: Vec<f64>,
    p: Vec<f64>,
    b: Vec<f64>,
    c: Vec<f64>,
    delta_log: Vec<f64>,
}

impl Host {
    fn params(&self) -> s4::Params<'_, f64> {
        s4::Params {
            lambda_re: &self.lambda_re,
            lambda_im: &self.lambda_im,
            p: &self.p,
            b: &self.b,
            c: &self.c,
            delta_log: &self.delta_log,
        }
    }
}

fn replaced<const D: usize>(param: &Param<Tensor<D>>, values: Vec<f64>) -> Param<Tensor<D>> {
    changed(param, |old| like(&old, values))
}

/// Other numbers in the shape and precision of a tensor.
fn like<const D: usize>(x: &Tensor<D>, values: Vec<f64>) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values, x.dims()), (&x.device(), x.dtype()))
}
