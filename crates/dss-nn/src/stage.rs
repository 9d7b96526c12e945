//! The stages of WaveGAN-D (Donahue et al. 2019): what such a model has in place of blocks. Convolutions of 25 taps, the
//! last one of a stage with stride 4, so that a stage gives a quarter of the positions.
//!
//! | form | a stage |
//! |------|---------|
//! | ported | x ← norm(x + leaky(conv(x))) for each residual convolution, then norm(strided conv(x)); padding of 12 at both ends |
//! | original | leaky(strided conv(x)), padded as evenly as possible to ⌈L/4⌉ positions ("SAME"); in training moved by a random phase, but for the last stage |

use burn::module::{Module, Param};
use burn::tensor::activation::leaky_relu;
use burn::tensor::module::conv1d;
use burn::tensor::ops::ConvOptions;
use burn::tensor::{Device, Int, Tensor, TensorData};
use dss_format::mixer::{WaveganDConfig, WaveganVariant};
use dss_format::{Form, MixerConfig, ModelConfig, ModelIo};

use crate::block::Mode;
use crate::linear::parameter;
use crate::mixer::{Portrait, Subject};
use crate::norm::Norm;
use crate::ops::BatchStats;
use crate::random::{normal, stream};

/// One stage: `[B, L, C]` -> `[B, ⌈L/4⌉, C']`.
#[derive(Module, Debug)]
pub struct Stage {
    /// The residual convolutions of the ported form.
    pub res: Vec<NormedConvolution>,
    /// The convolution with stride 4.
    pub down: NormedConvolution,
    #[module(skip)]
    config: WaveganDConfig,
    #[module(skip)]
    form: Form,
    /// Whether it is the last one.
    #[module(skip)]
    last: bool,
}

/// A convolution and the norm after it.
#[derive(Module, Debug)]
pub struct NormedConvolution {
    /// The convolution.
    pub conv: Convolution,
    /// The norm; none in the original form.
    pub norm: Option<Norm>,
}

/// y_t = b + Σ_j W_j·x_{st + j − left}, 0 beyond both ends.
#[derive(Module, Debug)]
pub struct Convolution {
    /// `[out, in, taps]` ~ N(0, 2/(in·taps)).
    pub weight: Param<Tensor<3>>,
    /// `[out]` ~ U(±1/√(in·taps)).
    pub bias: Param<Tensor<1>>,
}

const TAPS: usize = WaveganDConfig::TAPS;
const STRIDE: usize = WaveganDConfig::STRIDE;

impl Convolution {
    fn new(inputs: usize, outputs: usize, seed: u64, name: &str, device: &Device) -> Self {
        let count = (inputs * TAPS) as f64;
        let weight = normal(outputs * inputs * TAPS, &mut stream(seed, &format!("{name}.weight")));
        let weight = weight.into_iter().map(|x| x * (2.0 / count).sqrt()).collect();
        let bias = &mut stream(seed, &format!("{name}.bias"));
        Self {
            weight: parameter(weight, [outputs, inputs, TAPS], device),
            bias: parameter(
                crate::random::uniform(outputs, count.sqrt().recip(), bias),
                [outputs],
                device,
            ),
        }
    }

    /// x `[B, L, C]` -> `[B, L', C']`, with this stride and so many zeros before and after.
    fn forward(&self, x: Tensor<3>, stride: usize, [left, right]: [usize; 2]) -> Tensor<3> {
        let [batch, _, c] = x.dims();
        let zeros = |count| Tensor::zeros([batch, count, c], (&x.device(), x.dtype()));
        // The common part of both ends is the operation's own padding.
        let both = left.min(right);
        let mut parts = vec![x.clone()];
        if left > both {
            parts.insert(0, zeros(left - both));
        }
        if right > both {
            parts.push(zeros(right - both));
        }
        let x = Tensor::cat(parts, 1).swap_dims(1, 2);
        let options = ConvOptions::new([stride], [both], [1], 1);
        conv1d(x, self.weight.val(), Some(self.bias.val()), options).swap_dims(1, 2)
    }
}

/// x `[B, L, C]` moved by `phase` positions, mirrored at both ends: y_t = x_{t − phase}.
pub fn phase_shuffle(x: Tensor<3>, phase: i64) -> Tensor<3> {
    let l = x.dims()[1] as i64;
    if phase == 0 || l == 1 {
        return x;
    }
    let mirrored = |t: i64| {
        let t = t.rem_euclid(2 * (l - 1));
        t.min(2 * (l - 1) - t)
    };
    let places: Vec<i64> = (0..l).map(|t| mirrored(t - phase)).collect();
    let places = Tensor::<1, Int>::from_data(TensorData::from(&places[..]), &x.device());
    x.select(1, places)
}

impl NormedConvolution {
    /// The norm of x, and in training what a BatchNorm saw.
    fn normed(&self, x: Tensor<3>, mode: Mode, form: Form) -> (Tensor<3>, Option<BatchStats>) {
        let Some(norm) = &self.norm else { return (x, None) };
        norm.forward(form, x, &norm.mode(mode != Mode::Eval, None))
    }
}

impl Stage {
    /// All stages of such a model; none if it is made of blocks.
    pub(crate) fn all(model: &ModelConfig, io: &ModelIo, seed: u64, device: &Device) -> Vec<Self> {
        let MixerConfig::WaveganD(config) = model.mixer else { return Vec::new() };
        let widths = config.widths(model, io).into_iter().enumerate();
        let stages = widths.map(|(i, (from, to))| {
            let part = |name: &str, outputs: usize| NormedConvolution {
                conv: Convolution::new(
                    from,
                    outputs,
                    seed,
                    &format!("stages.{i}.{name}.conv"),
                    device,
                ),
                norm: (config.variant == WaveganVariant::Ported)
                    .then(|| Norm::new(model.norm, model.norm_eps, outputs, device)),
            };
            Self {
                res: (1..config.convs).map(|j| part(&format!("res.{}", j - 1), from)).collect(),
                down: part("down", to),
                config,
                form: model.form,
                last: i + 1 == model.layers,
            }
        });
        stages.collect()
    }

    /// x `[B, L, C]` -> `[B, ⌈L/4⌉, C']`, and in training what its BatchNorms saw. `index` is its place in the stack.
    pub fn forward(&self, x: Tensor<3>, mode: Mode, index: usize) -> (Tensor<3>, Vec<BatchStats>) {
        match self.config.variant {
            WaveganVariant::Ported => self.ported(x, mode),
            WaveganVariant::Original => (self.original(x, mode, index), Vec::new()),
        }
    }

    fn ported(&self, mut x: Tensor<3>, mode: Mode) -> (Tensor<3>, Vec<BatchStats>) {
        let (mut stats, ends) = (Vec::new(), [TAPS / 2; 2]);
        for part in &self.res {
            let y = leaky_relu(part.conv.forward(x.clone(), 1, ends), WaveganDConfig::SLOPE);
            let (y, seen) = part.normed(x + y, mode, self.form);
            x = y;
            stats.extend(seen);
        }
        let (y, seen) = self.down.normed(self.down.conv.forward(x, STRIDE, ends), mode, self.form);
        stats.extend(seen);
        (y, stats)
    }

    fn original(&self, x: Tensor<3>, mode: Mode, index: usize) -> Tensor<3> {
        let ends = WaveganDConfig::same_padding(x.dims()[1]);
        let y = leaky_relu(self.down.conv.forward(x, STRIDE, ends), WaveganDConfig::SLOPE);
        match mode {
            Mode::Train { dropout } if self.config.shuffle > 0 && !self.last => {
                phase_shuffle(y, dropout.phase(index, self.config.shuffle))
            }
            _ => y,
        }
    }

    /// The activations after the last stage as one vector per sequence: channel by channel in the ported form, position
    /// by position in the original.
    pub(crate) fn flatten(&self, x: Tensor<3>) -> Tensor<2> {
        let [batch, l, c] = x.dims();
        let x = match self.config.variant {
            WaveganVariant::Ported => x.swap_dims(1, 2),
            WaveganVariant::Original => x,
        };
        x.reshape([batch, l * c])
    }

    /// The kernels of its strided convolution.
    pub(crate) fn portraits(&self) -> Vec<Portrait> {
        let subject = Subject::Kernels(self.down.conv.weight.val());
        vec![Portrait { name: "strided convolution", subject }]
    }

    /// The running statistics of its norms moved towards the next of `stats`.
    pub(crate) fn update<'a>(
        mut self,
        stats: &mut impl Iterator<Item = &'a BatchStats>,
        share: f64,
    ) -> Self {
        let mut moved = |mut part: NormedConvolution| {
            part.norm = part.norm.map(|norm| norm.update(stats, share));
            part
        };
        self.res = self.res.into_iter().map(&mut moved).collect();
        self.down = moved(self.down);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_padding_gives_a_quarter() {
        for l in 1..200 {
            let [left, right] = WaveganDConfig::same_padding(l);
            let positions = (left + l + right - TAPS) / STRIDE + 1;
            assert_eq!(positions, l.div_ceil(STRIDE), "{l}");
            assert!(right == left || right == left + 1, "{l}");
        }
    }

    #[test]
    fn shuffled_phases_are_mirrored() {
        let x = Tensor::<1>::from_floats([0.0, 1.0, 2.0, 3.0, 4.0], &Device::flex());
        let moved = |phase| -> Vec<f32> {
            let y = phase_shuffle(x.clone().reshape([1, 5, 1]), phase);
            y.to_data().try_into_vec().unwrap()
        };
        assert_eq!(moved(2), [2.0, 1.0, 0.0, 1.0, 2.0]);
        assert_eq!(moved(-1), [1.0, 2.0, 3.0, 4.0, 3.0]);
        assert_eq!(moved(0), [0.0, 1.0, 2.0, 3.0, 4.0]);
        assert_eq!(moved(7), [1.0, 2.0, 3.0, 4.0, 3.0]);
    }
}
