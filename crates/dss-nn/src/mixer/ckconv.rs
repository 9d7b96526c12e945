//! CKConv (Romero et al. 2022): y_t = b + Σ_j K(j)·u_{t−j}, dense over the channels, then relu. K(j) `[H, H]` is a
//! network of the place r = 1 − 2j/(L − 1) ∈ [−1, 1] of a lag, L the training length:
//! K = W₂·sin(ω(W₁·sin(ω(W₀·r + b₀)) + b₁)) + b₂, each W weight-normed row by row.
//!
//! So all H·H kernels are mixtures of w + 1 functions of the lag, the last sines and 1: only these are transformed.

use burn::module::{Module, Param};
use burn::tensor::Tensor;
use burn::tensor::activation::relu;
use dss_format::MixerContext;
use dss_format::mixer::CkconvConfig;

use super::state::MixerState;
use super::{Init, Pass, Portrait, SequenceMixer, Subject, up_to, whole_only};
use crate::composed::{constant, conv_mixture};
use crate::error::Result;
use crate::linear::parameter;
use crate::prepared::Prepared;
use crate::random::uniform;

/// Numbers of kernels that inspection gets, if there are more.
const SHOWN: usize = 1 << 22;

/// A CKConv layer.
#[derive(Module, Debug)]
pub struct CkconvLayer {
    /// The network of the kernels: `[w, 1]`, `[w, w]`, `[H·H, w]`.
    pub kernel: Vec<WeightNormed>,
    /// b: `[H]`, 0 at first.
    pub bias: Param<Tensor<1>>,
    #[module(skip)]
    config: CkconvConfig,
    #[module(skip)]
    pub(super) context: MixerContext,
}

/// x·Wᵀ + b with W = g·v/|v| row by row.
#[derive(Module, Debug)]
pub struct WeightNormed {
    /// `[out, in]`: ~ U(±1) in the first map, U(±√(6/in)/ω) in the others.
    pub v: Param<Tensor<2>>,
    /// `[out]`: |v| at first.
    pub g: Param<Tensor<1>>,
    /// `[out]` ~ U(±1).
    pub bias: Param<Tensor<1>>,
}

impl WeightNormed {
    fn init(name: &str, (inputs, outputs): (usize, usize), bound: f64, init: &Init) -> Self {
        let draw = |part: &str, count, bound| {
            uniform(count, bound, &mut init.stream(&format!("{name}.{part}")))
        };
        let v = draw("v", outputs * inputs, bound);
        let norm = |row: &[f64]| row.iter().map(|x| x * x).sum::<f64>().sqrt();
        let g = v.chunks_exact(inputs).map(norm).collect();
        Self {
            v: parameter(v, [outputs, inputs], init.device),
            g: parameter(g, [outputs], init.device),
            bias: parameter(draw("bias", outputs, 1.0), [outputs], init.device),
        }
    }

    fn weight(&self) -> Tensor<2> {
        let v = self.v.val();
        let size = v.clone().square().sum_dim(1).sqrt();
        v * (self.g.val().unsqueeze_dim::<2>(1) * size.recip())
    }

    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        x.matmul(self.weight().transpose()) + self.bias.val().unsqueeze()
    }
}

impl CkconvLayer {
    pub(super) fn init(config: &CkconvConfig, context: MixerContext, init: &Init) -> Result<Self> {
        let h = context.h;
        let maps = config.maps(h).into_iter().enumerate().map(|(i, size)| {
            let bound = if i == 0 { 1.0 } else { (6.0 / size.0 as f64).sqrt() / config.omega };
            WeightNormed::init(&format!("kernel.{i}"), size, bound, init)
        });
        let bias = parameter(vec![0.0; h], [h], init.device);
        Ok(Self { kernel: maps.collect(), bias, config: *config, context })
    }

    /// The last sines at the lags below `taps`: `[taps, w]`.
    fn sines(&self, taps: usize) -> Tensor<2> {
        let bias = self.bias.val();
        let span = (self.context.len - 1).max(1) as f64;
        let places = (0..taps).map(|lag| 1.0 - 2.0 * lag as f64 / span).collect();
        let mut x: Tensor<2> = constant(places, [taps, 1], &bias.device(), bias.dtype());
        for map in &self.kernel[..2] {
            x = (map.forward(x) * self.config.omega).sin();
        }
        x
    }

    /// The functions of the lag that the kernels are mixtures of, at the lags below `taps`: `[1, w + 1, taps]`.
    pub fn functions(&self, taps: usize) -> Tensor<3> {
        let sines = self.sines(taps);
        let one = sines.ones_like().narrow(1, 0, 1);
        Tensor::cat(vec![sines, one], 1).transpose().unsqueeze()
    }

    /// K: `[H, H, taps]`, outputs first, of the lags below `taps`.
    fn kernels(&self, taps: usize) -> Tensor<3> {
        let h = self.context.h;
        self.kernel[2].forward(self.sines(taps)).transpose().reshape([h, h, taps])
    }

    /// The convolution of u `[B, L, H]` alone, with its bias, by these [`Self::functions`].
    pub fn convolve(&self, u: Tensor<3>, functions: Tensor<3>) -> Tensor<3> {
        let (h, last) = (self.context.h, &self.kernel[2]);
        let shares = Tensor::cat(vec![last.weight(), last.bias.val().unsqueeze_dim(1)], 1); // [H·H, w + 1]
        let matrices = shares.transpose().reshape([-1, h as i64, h as i64]).swap_dims(1, 2);
        conv_mixture(u, functions.squeeze_dim(0), matrices) + self.bias.val().unsqueeze()
    }
}

impl SequenceMixer for CkconvLayer {
    fn check_len(&self, l: usize) -> Result<()> {
        up_to("the kernels of CKConv are", l, self.context.len)
    }

    fn prepare(&self, l: usize) -> Result<Prepared> {
        self.check_len(l)?;
        Ok(Prepared::with_kernel(self.functions(l)))
    }

    fn mix(&self, u: Tensor<3>, prepared: &Prepared, pass: &Pass) -> Tensor<3> {
        pass.dropped(relu(self.convolve(u, prepared.expect_kernel())), 0)
    }

    fn state(&self, _batch: usize) -> Result<MixerState> {
        whole_only(
            "the kernels of CKConv have a value of their own for every lag, which no state of fixed size can hold",
        )
    }

    fn kernel(&self, l: usize) -> Option<Tensor<3>> {
        Some(self.kernels(l))
    }

    fn portraits(&self, u: Tensor<3>, _side: Option<&Tensor<3>>) -> Vec<Portrait> {
        // All lags if that is not too much to look at, else those of the example.
        let (h, len) = (self.context.h, self.context.len);
        let taps = (SHOWN / (h * h)).min(len).max(u.dims()[1].min(len));
        let subject = Subject::Kernels(self.kernels(taps));
        vec![Portrait { name: "kernels", subject }]
    }

    fn past_end(&self) -> String {
        "the kernels end at the training length".to_owned()
    }
}
