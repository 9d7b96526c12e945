//! S4 (Gu, Goel, Ré 2022): A = Λ − PP*, B, C and Δ, discretised by the bilinear rule.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData};
use dss_kernels::{C64, init, s4};

use super::{Ssm, StateSpace, changed};
use crate::error::{Error, Result};
use crate::layer::SsmLayerConfig;
use crate::linear::parameter;
use crate::ops::{S4Params, S4Spec};
use crate::random::stream;
use crate::state::{Recurrent, S4State};

/// The parameters of an S4 layer's kernels, one of each conjugate pair. Λ, P and B are shared by the channels.
#[derive(Module, Debug)]
pub struct S4Ssm {
    /// Λ_re: `[N/2]`, Re λ = −exp(Λ_re). Λ, P and B start as HiPPO-LegS.
    pub lambda_re: Param<Tensor<1>>,
    /// Λ_im: `[N/2]`.
    pub lambda_im: Param<Tensor<1>>,
    /// P: `[N/2, 2]`.
    pub p: Param<Tensor<2>>,
    /// B: `[N/2, 2]`.
    pub b: Param<Tensor<2>>,
    /// C̃ = C·(I − Ā^L): `[C, H, N/2, 2]`; C starts complex standard normal.
    pub c: Param<Tensor<4>>,
    /// Δ_log: `[H]` ~ U(log Δmin, log Δmax).
    pub delta_log: Param<Tensor<1>>,
}

impl S4Ssm {
    /// With C in place of C̃: see [`Self::corrected`].
    pub(super) fn new(config: &SsmLayerConfig, name: &str, device: &Device) -> Result<Self> {
        let (channels, h, pairs) = (config.channels(), config.h, config.n / 2);
        let stream = |part: &str| stream(config.seed, &format!("{name}.{part}"));
        let init::Nplr { lambda, p, b } = init::nplr_legs(config.n)?;
        let flat = |x: &[C64]| x.iter().flat_map(|z| [z.re, z.im]).collect();
        let c = init::s4_c(channels, h, pairs, &mut stream("c"));
        let (low, high) = (config.delta_min, config.delta_max);
        let delta_log = init::delta_log(h, low, high, &mut stream("delta_log"))?;
        let re = lambda.iter().map(|z| (-z.re).ln()).collect();
        let im = lambda.iter().map(|z| z.im).collect();
        Ok(Self {
            lambda_re: parameter(re, [pairs], device),
            lambda_im: parameter(im, [pairs], device),
            p: parameter(flat(&p), [pairs, 2], device),
            b: parameter(flat(&b), [pairs, 2], device),
            c: parameter(c, [channels, h, pairs, 2], device),
            delta_log: parameter(delta_log, [h], device),
        })
    }

    /// C̃ in place of C.
    pub(crate) fn corrected(mut self, config: &SsmLayerConfig) -> Result<Self> {
        let c = s4::correct_length(&sizes(config), &self.host().params())?;
        self.c = replaced(&self.c, c);
        Ok(self)
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
    fn c_for(&self, config: &SsmLayerConfig, taps: usize) -> Result<Vec<f64>> {
        s4::change_length(&sizes(config), &self.host().params(), taps).map_err(|error| {
            let len = config.len;
            let what = format!(
                "this layer was made for sequences of length up to {len}, and its kernel cannot be made longer: {error}; \
                 shorten the sequence"
            );
            Error::invalid("SsmLayer", what)
        })
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

impl StateSpace for S4Ssm {
    fn kernel(&self, config: &SsmLayerConfig, l: usize) -> Result<Tensor<3>> {
        let (taps, norm_len) = (config.taps(l), config.norm_len());
        let params = self.kernel_params();
        if taps <= norm_len {
            return Ok(config.form.s4_kernel(&params, &S4Spec { taps, norm_len }));
        }
        let c = self.c_for(config, taps)?;
        let params = S4Params {
            lambda_re: params.lambda_re.detach(),
            lambda_im: params.lambda_im.detach(),
            p: params.p.detach(),
            b: params.b.detach(),
            c: like(&params.c, c),
            delta_log: params.delta_log.detach(),
        };
        Ok(config.form.s4_kernel(&params, &S4Spec { taps, norm_len: taps }))
    }

    fn check_longer(&self, config: &SsmLayerConfig, l: usize) -> Result<()> {
        SsmLayerConfig { len: l, ..config.clone() }.validate()?;
        self.c_for(config, config.taps(l)).map(|_| ())
    }

    fn growing_modes(&self, _config: &SsmLayerConfig) -> usize {
        0
    }

    /// C̃ is made anew: both Ā and L are others.
    fn at_step(&self, old: &SsmLayerConfig, new: &SsmLayerConfig, r: f64) -> Result<Ssm> {
        let mut host = self.host();
        host.c = s4::uncorrect_length(&sizes(old), &host.params())?;
        host.delta_log.iter_mut().for_each(|delta| *delta += r.ln());
        let c = s4::correct_length(&sizes(new), &host.params())?;
        let mut next = self.clone();
        next.c = replaced(&self.c, c);
        next.delta_log = replaced(&self.delta_log, host.delta_log);
        Ok(Ssm::S4(next))
    }

    fn recurrence(&self, config: &SsmLayerConfig, batch: usize) -> Result<Box<dyn Recurrent>> {
        let model = s4::Recurrence::new(sizes(config), &self.host().params())?;
        Ok(Box::new(S4State::new(model, batch)))
    }
}

/// The sizes of kernels at the training length.
fn sizes(config: &SsmLayerConfig) -> s4::KernelConfig {
    s4::KernelConfig::new(config.h, config.n, config.norm_len()).channels(config.channels())
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

fn numbers<const D: usize>(param: &Param<Tensor<D>>) -> Vec<f64> {
    param.val().into_data().iter::<f64>().collect()
}

fn replaced<const D: usize>(param: &Param<Tensor<D>>, values: Vec<f64>) -> Param<Tensor<D>> {
    changed(param, |old| like(&old, values))
}

/// Other numbers in the shape and precision of a tensor.
fn like<const D: usize>(x: &Tensor<D>, values: Vec<f64>) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values, x.dims()), (&x.device(), x.dtype()))
}
