//! CKConv: a dense convolution whose kernels are a network of the lag, then relu.

use dss_format::MixerContext;
use dss_format::mixer::CkconvConfig;
use dss_kernels::Conv;

use super::{LengthLimit, MixerState, SequenceMixer, Workspace, own_workspace};
use crate::arrays::Arrays;
use crate::error::{Error, Result};
use crate::linear::relu;

pub(super) struct CkconvMixer {
    config: CkconvConfig,
    context: MixerContext,
    /// (W, b) of the kernel network, weight norms resolved.
    maps: [(Vec<f64>, Vec<f64>); 3],
    bias: Vec<f32>,
}

impl CkconvMixer {
    pub(super) fn new(
        config: CkconvConfig,
        context: MixerContext,
        arrays: &mut Arrays<'_>,
    ) -> Self {
        let maps = [0, 1, 2].map(|i| {
            let mut take = |part: &str| -> Vec<f64> {
                let numbers = arrays.take(&format!("kernel.{i}.{part}"));
                numbers.into_iter().map(f64::from).collect()
            };
            let (mut v, g, bias) = (take("v"), take("g"), take("bias"));
            let inputs = v.len() / g.len();
            for (v, g) in v.chunks_exact_mut(inputs).zip(g) {
                let size = v.iter().map(|x| x * x).sum::<f64>().sqrt();
                v.iter_mut().for_each(|x| *x *= g / size);
            }
            (v, bias)
        });
        Self { config, context, maps, bias: arrays.take("bias") }
    }

    /// All kernels `[H·H]` at one lag.
    fn at_lag(&self, lag: usize) -> Vec<f64> {
        let span = (self.context.len - 1).max(1) as f64;
        let mut x = vec![1.0 - 2.0 * lag as f64 / span];
        for (i, (weight, bias)) in self.maps.iter().enumerate() {
            let rows = weight.chunks_exact(x.len()).zip(bias);
            let sums = rows.map(|(w, b)| b + w.iter().zip(&x).map(|(w, x)| w * x).sum::<f64>());
            let omega = self.config.omega;
            x = sums.map(|y| if i < 2 { (omega * y).sin() } else { y }).collect();
        }
        x
    }
}

impl SequenceMixer for CkconvMixer {
    fn max_len(&self) -> Option<LengthLimit> {
        let why = "its kernels are made for the training length".to_owned();
        Some(LengthLimit { length: self.context.len, why })
    }

    /// K `[H, H, l]`, outputs first.
    fn prepare(&self, l: usize) -> Result<Vec<f32>> {
        let pairs = self.context.h * self.context.h;
        let mut k = vec![0.0; pairs * l];
        for lag in 0..l {
            for (pair, value) in self.at_lag(lag).into_iter().enumerate() {
                k[pair * l + lag] = value as f32;
            }
        }
        Ok(k)
    }

    fn workspace(&self, l: usize) -> Result<Workspace> {
        let conv = Conv::<f32>::new(1, l, self.context.h)?;
        Ok(Box::new((conv, vec![0.0f32; l * self.context.h])))
    }

    fn mix(
        &self,
        prepared: &[f32],
        workspace: &mut Workspace,
        u: &[f32],
        v: &mut [f32],
    ) -> Result<()> {
        let (conv, parts) = own_workspace::<(Conv<f32>, Vec<f32>)>(workspace);
        let h = self.context.h;
        for (output, kernels) in prepared.chunks_exact(prepared.len() / h).enumerate() {
            conv.set_kernel(kernels)?;
            conv.forward(u, parts)?;
            for (v, parts) in v.chunks_exact_mut(h).zip(parts.chunks_exact(h)) {
                v[output] = self.bias[output] + parts.iter().sum::<f32>();
            }
        }
        relu(v);
        Ok(())
    }

    fn state(&self) -> Result<Box<dyn MixerState>> {
        let why = "its kernels have a value of their own for every lag (CKConv)";
        Err(Error::cannot_stream(why))
    }
}
