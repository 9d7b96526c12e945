//! Sums of exponentials as a recurrence: DSS and S4D.
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

use super::Recurrent;
use crate::composed::Modes;
use crate::composed::complex::Complex;
use crate::error::{Error, Result};

/// B streams through the modes of a layer.
#[derive(Debug, Clone)]
pub(crate) struct ModesState {
    params: Arc<StreamParams>,
    /// `[B, H, N]`.
    s: Complex<3>,
}

/// The layer's parameters as they were when the state was made, `[1, H, N]` each.
#[derive(Debug)]
struct StreamParams {
    /// e^ζ, or 1 for a mode with Re λ > 0.
    a: Complex<3>,
    c: Complex<3>,
    growing: Option<GrowingModes>,
    norm_len: usize,
}

/// What modes with Re λ > 0 need: ζ, and 0 in place of the other modes.
#[derive(Debug)]
struct GrowingModes {
    zeta: Complex<3>,
    modes: usize,
}

impl ModesState {
    /// For `growing` modes with Re λ > 0, whose kernel has `norm_len` taps.
    pub fn new(modes: Modes, growing: usize, norm_len: usize, batch: usize) -> Self {
        let [h, n] = modes.zeta.re.dims();
        // ζ of the decaying modes, 0 for the others; and the other way round.
        let step = modes.zeta.clone().scale(modes.decaying.clone());
        let growing = (growing > 0).then(|| GrowingModes {
            zeta: modes.zeta.scale(-modes.decaying + 1.0).reshape([1, h, n]),
            modes: growing,
        });
        let a = step.exp().reshape([1, h, n]);
        let zeros = || Tensor::zeros([batch, h, n], (&a.re.device(), a.re.dtype()));
        let s = Complex::new(zeros(), zeros());
        Self { params: Arc::new(StreamParams { a, c: modes.c, growing, norm_len }), s }
    }
}

impl Recurrent for ModesState {
    fn step(&mut self, k: usize, u: Tensor<2>) -> Result<Tensor<2>> {
        let StreamParams { a, c, growing, norm_len } = &*self.params;
        let dtype = u.dtype();
        let u = u.inner().cast(a.re.dtype()).unsqueeze_dim::<3>(2);
        let moved = self.s.clone().mul(a.clone());
        let (mut c, mut s) = (c.clone(), Complex::new(moved.re + u.clone(), moved.im));
        if let Some(GrowingModes { zeta, modes }) = growing {
            let len = *norm_len;
            if k >= len {
                let what = format!(
                    "the stream is at its end: {modes} modes have Re λ > 0, and their kernel has only L = {len} taps"
                );
                return Err(Error::refused(what));
            }
            let power = |k: usize| zeta.clone().map(|x| x * k as f64);
            // e^{ζk} − 1 is 0 for the other modes.
            let more = power(k).expm1().scale(u);
            s = Complex::new(s.re + more.re, s.im + more.im);
            c = c.mul(power(len - 1 - k).exp());
        }
        let y = c.re * s.re.clone() - c.im * s.im.clone();
        self.s = s;
        Ok(y.sum_dim(2).squeeze_dim::<2>(2).cast(dtype))
    }

    fn boxed_clone(&self) -> Box<dyn Recurrent> {
        Box::new(self.clone())
    }
}
