//! Long streams in windows: what a window leaves behind enters the next one, without gradients (truncated
//! back-propagation through time).
//!
//! With the modes of `composed/kernel.rs` and T steps in a window,
//!
//! | | |
//! |---|---|
//! | what is carried | Y = Σ_t e^{ζ(T−t)}·u_t + e^{ζT}·Y₀ |
//! | what the next window hears of it | past_t = Re Σ_n c_n·Y_n·e^{ζ_n t} |
//!
//! The second is a kernel with the weights W·Y, one per stream; it is differentiated in Λ, Δ and W but not in Y. The
//! first is its transpose: the gradient of a kernel's weights when its taps have the gradients u, backwards in time.
//!
//! Modes with Re λ > 0 have no state that could be carried beyond the training length, so only DSS-exp and
//! DSS-exp-no-scale can do this.

use burn::tensor::{Tensor, TensorData};

use crate::block::{Block, Mode};
use crate::composed::complex::Complex;
use crate::composed::modes;
use crate::config::{MixerKind, ModelConfig, Variant};
use crate::error::{Error, Result};
use crate::layer::SsmLayer;
use crate::model::Model;
use crate::ops::{KernelParams, KernelSpec};
use crate::ssm::Ssm;

/// What B streams through a [`Model`] left behind in its layers.
#[derive(Debug, Clone)]
pub struct Carry {
    /// Y of each layer: `[B, H, N, 2]`, (re, im).
    layers: Vec<Tensor<4>>,
}

impl ModelConfig {
    /// Whether the layers of such a model can go on from window to window.
    pub fn check_carry(&self) -> Result<()> {
        let refuse = |keys: &'static [&'static str], what: &str| {
            Err(Error::config(keys, format!("a state cannot be carried: {what}")))
        };
        if self.mixer != MixerKind::Dss || self.variant == Variant::Softmax {
            let what = "set variant to \"exp\" or \"exp-no-scale\" (of mixer = \"dss\")";
            return refuse(&["mixer", "variant"], what);
        }
        if self.bidirectional {
            return refuse(&["bidirectional"], "set bidirectional to false");
        }
        match self.kernel_len {
            0 => Ok(()),
            _ => refuse(&["kernel_len"], "set kernel_len to 0"),
        }
    }
}

impl Carry {
    /// Of `batch` streams that begin.
    ///
    /// # Errors
    /// If [`ModelConfig::check_carry`] refuses.
    pub fn new(model: &Model, batch: usize) -> Result<Self> {
        model.config().check_carry()?;
        let ModelConfig { h, n, .. } = *model.config();
        let zeros = |block: &Block| {
            let d = block.mixer.d.val().inner();
            Tensor::zeros([batch, h, n, 2], (&d.device(), d.dtype()))
        };
        Ok(Self { layers: model.layers.iter().map(zeros).collect() })
    }

    /// The numbers of all layers.
    pub fn to_data(&self) -> Vec<TensorData> {
        self.layers.iter().map(Tensor::to_data).collect()
    }

    /// The streams whose numbers these are, as many as `self` has.
    ///
    /// # Errors
    /// If they are of another model or batch.
    pub fn with_data(mut self, data: Vec<TensorData>) -> Result<Self> {
        let fits = |(y, data): (&Tensor<4>, &TensorData)| {
            data.shape().as_slice() == y.dims() && data.dtype() == y.dtype()
        };
        if data.len() != self.layers.len() || !self.layers.iter().zip(&data).all(fits) {
            return Err(Error::invalid("Carry", "a state of another model or batch"));
        }
        for (y, data) in self.layers.iter_mut().zip(data) {
            *y = Tensor::from_data(data, (&y.device(), y.dtype()));
        }
        Ok(self)
    }

    /// What block `i` hears of the past `[B, L, H]` while it reads x `[B, L, H]`, which then is past too.
    ///
    /// # Panics
    /// If the batch is another one.
    pub(crate) fn pass(&mut self, i: usize, block: &Block, x: &Tensor<3>, mode: Mode) -> Tensor<3> {
        let y = &mut self.layers[i];
        let [batch, l, _] = x.dims();
        assert_eq!(y.dims()[0], batch, "as many streams as before");
        let past = past(&block.mixer, y, l);
        *y = after(&block.mixer, y.clone(), block.layer_input(x, mode));
        past
    }
}

fn params(layer: &SsmLayer) -> KernelParams {
    match &layer.ssm {
        Ssm::Dss(ssm) => ssm.kernel_params(),
        Ssm::S4(_) | Ssm::S4d(_) => unreachable!("check_carry refuses other mixers"),
    }
}

/// past: `[B, L, H]`, of Y `[B, H, N, 2]`.
fn past(layer: &SsmLayer, y: &Tensor<4>, l: usize) -> Tensor<3> {
    let config = layer.config();
    let KernelParams { lambda, delta_log, w } = params(layer);
    let y = if w.device().is_autodiff() { y.clone().autodiff() } else { y.clone() };
    let w = Complex::pairs(w).mul(Complex::pairs(y));
    let params = KernelParams { lambda, delta_log, w: Tensor::cat(vec![w.re, w.im], 3) };
    let (variant, delta) = (config.variant, config.delta);
    let spec = KernelSpec { variant, delta, taps: l, norm_len: config.norm_len() };
    config.form.kernel(&params, &spec).swap_dims(1, 2)
}

/// Y after the inputs u `[B, L, H]`.
fn after(layer: &SsmLayer, y: Tensor<4>, u: Tensor<3>) -> Tensor<4> {
    let config = layer.config();
    let ([batch, l, h], n) = (u.dims(), config.n);
    let KernelParams { lambda, delta_log, .. } = params(layer);
    let (lambda, delta_log) = (lambda.inner(), delta_log.inner());
    let variant = Variant::ExpNoScale;

    // Tap τ = 1..L has u_{L−τ}.
    let none = Tensor::zeros([batch, h, 1], (&u.device(), u.dtype()));
    let taps = Tensor::cat(vec![none, u.swap_dims(1, 2).flip([2])], 2).autodiff();
    let w = Tensor::zeros([batch, h, n, 2], (&y.device(), y.dtype())).autodiff().require_grad();
    let spec = KernelSpec { variant, delta: config.delta, taps: l + 1, norm_len: l + 1 };
    let lifted = KernelParams {
        lambda: lambda.clone().autodiff(),
        delta_log: delta_log.clone().autodiff(),
        w: w.clone(),
    };
    let gradients = (config.form.kernel(&lifted, &spec) * taps).sum().backward();
    let heard = w.grad(&gradients).expect("the weights' gradient");
    let heard = Complex::pairs(heard).conj();

    let dtype = y.dtype();
    let one = Tensor::zeros([1, h, n, 2], (&y.device(), dtype));
    let zeta = modes(&KernelParams { lambda, delta_log, w: one }, variant, 1).zeta;
    let decay = zeta.map(|x| x * l as f64).exp().reshape([1, h, n, 1]).map(|x| x.cast(dtype));
    let kept = Complex::pairs(y).mul(decay);
    Tensor::cat(vec![kept.re + heard.re, kept.im + heard.im], 3)
}
