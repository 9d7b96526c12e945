//! FNet (Lee-Thorp et al. 2021, Eq. 3): y = Re(F_N·u·F_H), Fourier transforms over positions and channels.
//!
//! N is the length that the model is made for: shorter sequences count as followed by zeros, so that an answer does not
//! depend on the batch. The composed form is the specification.

mod composed;
mod fused;

use burn::module::Module;
use burn::tensor::Tensor;
use dss_format::MixerContext;
use dss_format::mixer::FnetConfig;

use super::state::MixerState;
use super::{Init, Pass, Portrait, SequenceMixer, Subject, up_to, whole_only};
use crate::dispatch;
use crate::error::Result;
use crate::prepared::Prepared;

/// Fourier mixing; it has no parameters.
#[derive(Module, Debug)]
pub struct FnetLayer {
    #[module(skip)]
    pub(super) context: MixerContext,
}

impl FnetLayer {
    pub(super) fn init(_config: &FnetConfig, context: MixerContext, _init: &Init) -> Result<Self> {
        Ok(Self { context })
    }

    fn fourier(&self, u: Tensor<3>, lengths: Option<&[usize]>) -> Tensor<3> {
        match dispatch::is_fused(self.context.form, &u) {
            true => fused::fourier(u, self.context.len, lengths),
            false => composed::fourier(u, self.context.len, lengths),
        }
    }
}

impl SequenceMixer for FnetLayer {
    fn check_len(&self, l: usize) -> Result<()> {
        up_to("the transform of FNet is", l, self.context.len)
    }

    fn mix(&self, u: Tensor<3>, _prepared: &Prepared, pass: &Pass) -> Tensor<3> {
        self.fourier(u, pass.lengths.as_deref())
    }

    fn state(&self, _batch: usize) -> Result<MixerState> {
        whole_only("FNet transforms the whole length, so that every position depends on all")
    }

    /// The transform is the same for all models; what it finds in the sequence that reaches a layer is not. Frequencies
    /// above N/2 are those below it in reverse.
    fn portraits(&self, u: Tensor<3>, _side: Option<&Tensor<3>>) -> Vec<Portrait> {
        let [_, l, h] = u.dims();
        let size = |x: Tensor<3>| x.square().mean().into_scalar::<f64>().sqrt();
        let y = self.fourier(u.clone(), None);
        let gain = size(y.clone()) / size(u).max(f64::MIN_POSITIVE);
        let count = l.min(self.context.len / 2 + 1);
        let values = y.narrow(1, 0, count).reshape([count, h]);
        vec![Portrait { name: "transform", subject: Subject::Frequencies { values, gain } }]
    }

    fn past_end(&self) -> String {
        "the transform ends at the training length".to_owned()
    }
}
