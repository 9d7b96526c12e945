//! The second stream of models whose mixers carry one from layer to layer (Luna).

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use dss_format::mixer::LunaConfig;
use dss_format::{Form, NormKind};

use crate::linear::parameter;
use crate::norm::Norm;
use crate::positions;
use crate::random::{normal, stream};

/// What the second stream is before the first layer, and the norms of both streams there.
#[derive(Module, Debug)]
pub struct SideStream {
    /// p₀: `[l, H]` ~ N(0, 1/H).
    pub start: Param<Tensor<2>>,
    /// LayerNorm of the second stream.
    pub norm: Norm,
    /// LayerNorm of the sequence.
    pub input_norm: Norm,
}

impl SideStream {
    pub(crate) fn new(l: usize, h: usize, seed: u64, device: &Device) -> Self {
        let scale = 1.0 / (h as f64).sqrt();
        let values = normal(l * h, &mut stream(seed, "side.start")).into_iter();
        let norm = || Norm::new(NormKind::Layer, LunaConfig::NORM_EPS, h, device);
        Self {
            start: parameter(values.map(|x| scale * x).collect(), [l, h], device),
            norm: norm(),
            input_norm: norm(),
        }
    }

    /// Both streams as the first layer gets them: the norms of x `[B, L, H]` and of √H·p₀, to which the fixed position
    /// vectors are added if `placed`.
    pub(crate) fn begin(&self, x: Tensor<3>, placed: bool, form: Form) -> [Tensor<3>; 2] {
        let ([batch, _, h], start) = (x.dims(), self.start.val());
        let [l, _] = start.dims();
        let mut p = (start * (h as f64).sqrt()).unsqueeze::<3>();
        if placed {
            p = p + positions::fixed(l, h, &x.device(), x.dtype());
        }
        let normed = |norm: &Norm, x| norm.forward(form, x, &norm.mode(false, None)).0;
        [normed(&self.input_norm, x), normed(&self.norm, p).expand([batch, l, h])]
    }
}
