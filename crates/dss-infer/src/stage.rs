//! The stages of WaveGAN-D, by products with the windows of a sequence.

use dss_format::ModelConfig;
use dss_format::mixer::{WaveganDConfig, WaveganVariant};
use dss_kernels::frozen::{Linear, Norm, Scratch};

use crate::arrays::Arrays;
use crate::error::Result;
use crate::load::norm;

const TAPS: usize = WaveganDConfig::TAPS;
const STRIDE: usize = WaveganDConfig::STRIDE;

/// All stages of a model.
pub(crate) struct Stack {
    config: WaveganDConfig,
    /// Channels of the input.
    channels: usize,
    /// The length that every sequence is padded to.
    pub padded_len: usize,
    stages: Vec<Stage>,
}

struct Stage {
    res: Vec<Convolution>,
    down: Convolution,
}

struct Convolution {
    /// W `[out, in·taps]`.
    map: Linear<f32>,
    channels: usize,
    norm: Norm<f32>,
}

/// Output positions whose windows are there at the same time.
const PORTION: usize = 256;

impl Convolution {
    fn new(
        config: &ModelConfig,
        channels: usize,
        normed: bool,
        mut arrays: Arrays<'_>,
    ) -> Result<Self> {
        let map = arrays.linear("conv").map()?;
        let norm = if normed { norm(config, arrays.within("norm")) } else { Norm::Identity };
        Ok(Self { map, channels, norm })
    }

    /// x `[L, C]` -> `[L', C']` without the norm, `left` zeros before x and as many after as are needed for L'.
    fn convolve(
        &self,
        x: &[f32],
        stride: usize,
        left: usize,
        scratch: &mut Scratch<f32>,
    ) -> Result<Vec<f32>> {
        let (c, outputs) = (self.channels, self.map.outputs());
        let l = x.len() / c;
        let count = l.div_ceil(stride);
        let mut y = vec![0.0; count * outputs];
        let mut windows = vec![0.0; count.min(PORTION) * c * TAPS];
        for (part, y) in y.chunks_mut(PORTION * outputs).enumerate() {
            let rows = y.len() / outputs;
            let windows = &mut windows[..rows * c * TAPS];
            for (row, window) in windows.chunks_exact_mut(c * TAPS).enumerate() {
                let start = (part * PORTION + row) * stride;
                for j in 0..TAPS {
                    let at = (start + j).checked_sub(left).filter(|&at| at < l);
                    for channel in 0..c {
                        window[channel * TAPS + j] = at.map_or(0.0, |at| x[at * c + channel]);
                    }
                }
            }
            self.map.forward(windows, y, scratch)?;
        }
        Ok(y)
    }

    fn normed(&self, x: Vec<f32>, scratch: &mut Scratch<f32>) -> Vec<f32> {
        if matches!(self.norm, Norm::Identity) {
            return x;
        }
        let mut y = vec![0.0; x.len()];
        self.norm.forward(&x, self.map.outputs(), &mut y, scratch);
        y
    }
}

fn leaky_relu(x: &mut [f32]) {
    let slope = WaveganDConfig::SLOPE as f32;
    x.iter_mut().for_each(|x| *x = if *x < 0.0 { slope * *x } else { *x });
}

impl Stack {
    pub(crate) fn new(
        config: &WaveganDConfig,
        model: &ModelConfig,
        io: &dss_format::ModelIo,
        arrays: &mut Arrays<'_>,
    ) -> Result<Self> {
        let normed = config.variant == WaveganVariant::Ported;
        let widths = config.widths(model, io).into_iter().enumerate();
        let stages = widths.map(|(i, (from, _))| {
            let mut part = |name: &str| {
                let arrays = arrays.within(&format!("stages.{i}.{name}"));
                Convolution::new(model, from, normed, arrays)
            };
            let res = (1..config.convs).map(|j| part(&format!("res.{}", j - 1)));
            let res = res.collect::<Result<_>>()?;
            Ok(Stage { res, down: part("down")? })
        });
        Ok(Self {
            config: *config,
            channels: config.input_channels(model, io),
            padded_len: config.padded_len(io.len),
            stages: stages.collect::<Result<_>>()?,
        })
    }

    /// Numbers per position that the first stage reads.
    pub(crate) fn channels(&self) -> usize {
        self.channels
    }

    /// A sequence `[L, C]` -> the numbers that the head reads.
    pub(crate) fn features(&self, x: &[f32], scratch: &mut Scratch<f32>) -> Result<Vec<f32>> {
        let mut x = x.to_vec();
        x.resize(self.padded_len * self.channels, 0.0);
        let mut channels = self.channels;
        for Stage { res, down } in &self.stages {
            for part in res {
                let mut y = part.convolve(&x, 1, TAPS / 2, scratch)?;
                leaky_relu(&mut y);
                y.iter_mut().zip(&x).for_each(|(y, x)| *y += x);
                x = part.normed(y, scratch);
            }
            let left = match self.config.variant {
                WaveganVariant::Ported => TAPS / 2,
                WaveganVariant::Original => WaveganDConfig::same_padding(x.len() / channels)[0],
            };
            x = down.convolve(&x, STRIDE, left, scratch)?;
            if self.config.variant == WaveganVariant::Original {
                leaky_relu(&mut x);
            }
            x = down.normed(x, scratch);
            channels = down.map.outputs();
        }
        Ok(match self.config.variant {
            WaveganVariant::Original => x,
            WaveganVariant::Ported => {
                (0..channels).flat_map(|c| x[c..].iter().step_by(channels)).copied().collect()
            }
        })
    }
}
