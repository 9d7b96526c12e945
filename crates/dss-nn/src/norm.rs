//! The norm of a block, with its running statistics.

use std::sync::Arc;

use burn::module::{Module, Param, ParamId};
use burn::tensor::{Device, Tensor};
use dss_format::{Form, NormKind};

use crate::dispatch;
use crate::linear::parameter;
use crate::ops::{BatchStats, NormMode};

/// The part of a new batch in the running statistics.
pub const MOMENTUM: f64 = 0.1;

/// A norm of `[B, L, H]` activations.
#[derive(Debug, Module)]
pub struct Norm {
    /// Gain: `[H]` (`[1]` for layer-scalar), at first 1 or as [`Self::with_gain`] says.
    pub gamma: Param<Tensor<1>>,
    /// Offset: `[H]` (`[1]` for layer-scalar), 0 at first.
    pub beta: Param<Tensor<1>>,
    /// BatchNorm's mean for evaluation: `[H]`, 0 at first. Not trained.
    pub running_mean: Option<Param<Tensor<1>>>,
    /// BatchNorm's variance for evaluation: `[H]`, 1 at first. Not trained.
    pub running_var: Option<Param<Tensor<1>>>,
    #[module(skip)]
    kind: NormKind,
    #[module(skip)]
    eps: f64,
}

impl Norm {
    /// A new norm of h channels with this ε.
    pub fn new(kind: NormKind, eps: f64, h: usize, device: &Device) -> Self {
        let size = if kind == NormKind::LayerScalar { 1 } else { h };
        let statistic = |value: f64| {
            let tensor = Tensor::full([h], value, device);
            (kind == NormKind::Batch).then(|| Param::initialized(ParamId::new(), tensor))
        };
        Self {
            gamma: parameter(vec![1.0; size], [size], device),
            beta: parameter(vec![0.0; size], [size], device),
            running_mean: statistic(0.0),
            running_var: statistic(1.0),
            kind,
            eps,
        }
    }

    /// The same with this γ.
    pub fn with_gain(self, gain: f64) -> Self {
        let size = self.gamma.dims()[0];
        Self { gamma: parameter(vec![gain; size], [size], &self.gamma.device()), ..self }
    }

    /// Which norm this is.
    pub fn kind(&self) -> NormKind {
        self.kind
    }

    /// How it works in this pass; `lengths`: the positions that count in a training batch's statistics.
    pub fn mode(&self, train: bool, lengths: Option<Arc<[usize]>>) -> NormMode {
        let eps = self.eps;
        match (self.kind, &self.running_mean, &self.running_var) {
            (NormKind::LayerScalar, ..) => NormMode::LayerScalar,
            (NormKind::Batch, Some(mean), Some(var)) if !train => {
                NormMode::BatchEval { eps, mean: mean.val(), var: var.val() }
            }
            (NormKind::Batch, ..) => NormMode::BatchTrain { eps, lengths },
            (NormKind::Layer, ..) => NormMode::Layer { eps },
        }
    }

    /// The norm of x `[B, L, H]`, and of a BatchNorm in training the statistics of this batch.
    pub(crate) fn forward(
        &self,
        form: Form,
        x: Tensor<3>,
        mode: &NormMode,
    ) -> (Tensor<3>, Option<BatchStats>) {
        dispatch::norm(form, x, self.gamma.val(), self.beta.val(), mode)
    }

    /// running ← (1 − share)·running + share·batch with the next of `stats`; nothing but for BatchNorm.
    ///
    /// # Panics
    /// If there is no next one.
    pub(crate) fn update<'a>(
        mut self,
        stats: &mut impl Iterator<Item = &'a BatchStats>,
        share: f64,
    ) -> Self {
        if self.kind != NormKind::Batch {
            return self;
        }
        let stats = stats.next().expect("statistics for each BatchNorm");
        let blend = |old: Param<Tensor<1>>, new: &Tensor<1>| {
            let new = new.clone().inner() * share;
            old.map(|old| {
                let device = old.device();
                let blended = old.inner() * (1.0 - share) + new;
                if device.is_autodiff() { blended.autodiff() } else { blended }
            })
        };
        self.running_mean = self.running_mean.map(|old| blend(old, &stats.mean));
        self.running_var = self.running_var.map(|old| blend(old, &stats.var));
        self
    }
}
