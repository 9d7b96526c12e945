//! A layer's kernels as a recurrence (§3.4): one position at a time, in constant time and memory.
//!
//! With the modes of `composed/kernel.rs`, y_k = Re Σ_n c_n·r_n·s_n and
//!
//! | modes | step | r |
//! |-------|------|---|
//! | Re λ ≤ 0 | s ← e^ζ·s + u_k | 1 |
//! | Re λ > 0 | s ← s + e^{ζk}·u_k | e^{ζ(L−1−k)} |
//!
//! In the second row only numbers of modulus ≤ 1 are exponentiated; it ends at k = L−1, where the kernel ends.

use std::sync::Arc;

use burn::tensor::Tensor;

use crate::composed::complex::Complex;
use crate::composed::modes;
use crate::error::{Error, Result};
use crate::layer::DssLayer;
use crate::ops::KernelParams;

/// Where B streams through a [`DssLayer`] stand.
#[derive(Debug, Clone)]
pub struct DssState {
    model: Arc<Recurrence>,
    /// `[B, H, N]`.
    s: Complex<3>,
    position: usize,
}

/// The layer's parameters as they were when the state was made, `[1, H, N]` each.
#[derive(Debug)]
struct Recurrence {
    /// e^ζ, or 1 for a mode with Re λ > 0.
    a: Complex<3>,
    c: Complex<3>,
    growing: Option<Growing>,
    norm_len: usize,
}

/// What modes with Re λ > 0 need: ζ, and 0 in place of the other modes.
#[derive(Debug)]
struct Growing {
    zeta: Complex<3>,
    modes: usize,
}

impl DssState {
    pub(crate) fn new(layer: &DssLayer, batch: usize) -> Result<Self> {
        let config = layer.config();
        let refuse = |why: &str| {
            let what = format!("{why}: such a layer takes whole sequences only");
            Err(Error::invalid("DssLayer::state", what))
        };
        if config.bidirectional {
            return refuse("the layer looks ahead (bidirectional)");
        }
        if config.kernel_len != 0 && config.kernel_len < config.len {
            return refuse("the kernel is cut (kernel_len)");
        }
        let params = layer.kernel_params();
        let params = KernelParams {
            lambda: params.lambda.inner(),
            delta_log: params.delta_log.inner(),
            w: params.w.inner(),
        };
        let norm_len = config.taps(config.len);
        let modes = modes(&params, config.variant, norm_len);
        let (h, n) = (config.h, config.n);
        let growing = layer.growing_modes();
        // ζ of the decaying modes, 0 for the others; and the other way round.
        let step = modes.zeta.clone().scale(modes.decaying.clone());
        let growing = (growing > 0).then(|| Growing {
            zeta: modes.zeta.scale(-modes.decaying + 1.0).reshape([1, h, n]),
            modes: growing,
        });
        let a = step.exp().reshape([1, h, n]);
        let zeros = || Tensor::zeros([batch, h, n], (&a.re.device(), a.re.dtype()));
        let s = Complex::new(zeros(), zeros());
        Ok(Self {
            model: Arc::new(Recurrence { a, c: modes.c, growing, norm_len }),
            s,
            position: 0,
        })
    }

    /// Steps taken.
    pub fn position(&self) -> usize {
        self.position
    }

    /// K * u at the next position: u `[B, H]` -> `[B, H]`.
    pub(crate) fn step(&mut self, u: Tensor<2>) -> Result<Tensor<2>> {
        let [batch, h, _] = self.s.re.dims();
        if u.dims() != [batch, h] {
            let what = format!("u must be [B, H] = [{batch}, {h}], but is {:?}", u.dims());
            return Err(Error::invalid("DssLayer::step", what));
        }
        let Recurrence { a, c, growing, norm_len } = &*self.model;
        let dtype = u.dtype();
        let u = u.inner().cast(a.re.dtype()).unsqueeze_dim::<3>(2);
        let moved = self.s.clone().mul(a.clone());
        let (mut c, mut s) = (c.clone(), Complex::new(moved.re + u.clone(), moved.im));
        if let Some(Growing { zeta, modes }) = growing {
            let (k, len) = (self.position, *norm_len);
            if k >= len {
                let what = format!(
                    "the stream is at its end: {modes} modes have Re λ > 0, and their kernel has only L = {len} taps"
                );
                return Err(Error::invalid("DssLayer::step", what));
            }
            let power = |k: usize| zeta.clone().map(|x| x * k as f64);
            // e^{ζk} − 1 is 0 for the other modes.
            let more = power(k).expm1().scale(u);
            s = Complex::new(s.re + more.re, s.im + more.im);
            c = c.mul(power(len - 1 - k).exp());
        }
        let y = c.re * s.re.clone() - c.im * s.im.clone();
        self.s = s;
        self.position += 1;
        Ok(y.sum_dim(2).squeeze_dim::<2>(2).cast(dtype))
    }
}
