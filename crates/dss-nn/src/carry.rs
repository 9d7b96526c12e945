//! Long streams in windows: what a window leaves behind enters the next one, without gradients (truncated
//! back-propagation through time).
//!
//! With the modes of `composed/kernel.rs` and T steps in a window,
//!
//! | | |
//! |---|---|
//! | what is carried | Y = Σ_t e^{ζ(T−t)}·u_t + e^{ζT}·Y₀ |
//! | what the next window gets of it | past_t = Re Σ_n c_n·Y_n·e^{ζ_n t} |
//!
//! The second is a kernel with the weights W·Y, one per stream; it is differentiated in Λ, Δ and W but not in Y. The
//! first is its transpose: the gradient of a kernel's weights when its taps have the gradients u, backwards in time.
//!
//! Modes with Re λ > 0 have no state that could be carried beyond the training length, so only DSS-exp and
//! DSS-exp-no-scale can do this.

use burn::tensor::{Tensor, TensorData};
use dss_format::mixer::Variant;

use crate::block::{Block, Mode};
use crate::composed::complex::Complex;
use crate::composed::modes;
use crate::dispatch;
use crate::error::{Error, Result};
use crate::mixer::{DssLayer, HasContext};
use crate::model::Model;
use crate::ops::{KernelParams, KernelSpec};

/// The states that B streams through a [`Model`] have left in its layers.
#[derive(Debug, Clone)]
pub struct Carry {
    /// Y of each layer: `[B, H, N, 2]`, (re, im).
    layers: Vec<Tensor<4>>,
}

impl Carry {
    /// The states of `batch` new streams.
    ///
    /// # Errors
    /// If `ModelConfig::check_carry` refuses.
    pub fn new(model: &Model, batch: usize) -> Result<Self> {
        model.config().check_carry()?;
        let start = |block: &Block| block.mixer.get().carried(batch);
        Ok(Self { layers: model.layers.iter().map(start).collect::<Result<_>>()? })
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

    /// What block `i` gets from the windows before, `[B, L, H]`, while it reads x `[B, L, H]`, which is then part of them.
    ///
    /// # Panics
    /// If the batch is another one.
    pub(crate) fn pass(&mut self, i: usize, block: &Block, x: &Tensor<3>, mode: Mode) -> Tensor<3> {
        let y = &mut self.layers[i];
        assert_eq!(y.dims()[0], x.dims()[0], "as many streams as before");
        block.mixer.get().carry(y, block.mixer_input(x, mode))
    }
}

/// past: `[B, L, H]`, of Y `[B, H, N, 2]`.
pub(crate) fn past(layer: &DssLayer, y: &Tensor<4>, l: usize) -> Tensor<3> {
    let (config, context) = (layer.config(), layer.context());
    let KernelParams { lambda, delta_log, w } = layer.kernel_params();
    let y = if w.device().is_autodiff() { y.clone().autodiff() } else { y.clone() };
    let w = Complex::pairs(w).mul(Complex::pairs(y));
    let params = KernelParams { lambda, delta_log, w: Tensor::cat(vec![w.re, w.im], 3) };
    let (variant, delta) = (config.variant, config.delta);
    let spec = KernelSpec { variant, delta, taps: l, norm_len: context.len };
    dispatch::kernel(context.form, &params, &spec).swap_dims(1, 2)
}

/// Y after the inputs u `[B, L, H]`.
pub(crate) fn after(layer: &DssLayer, y: Tensor<4>, u: Tensor<3>) -> Tensor<4> {
    let (config, form) = (layer.config(), layer.context().form);
    let ([batch, l, h], n) = (u.dims(), config.n);
    let KernelParams { lambda, delta_log, .. } = layer.kernel_params();
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
    let gradients = (dispatch::kernel(form, &lifted, &spec) * taps).sum().backward();
    let added = w.grad(&gradients).expect("the weights' gradient");
    let added = Complex::pairs(added).conj();

    let dtype = y.dtype();
    let one = Tensor::zeros([1, h, n, 2], (&y.device(), dtype));
    let zeta = modes(&KernelParams { lambda, delta_log, w: one }, variant, 1).zeta;
    let decay = zeta.map(|x| x * l as f64).exp().reshape([1, h, n, 1]).map(|x| x.cast(dtype));
    let kept = Complex::pairs(y).mul(decay);
    Tensor::cat(vec![kept.re + added.re, kept.im + added.im], 3)
}
