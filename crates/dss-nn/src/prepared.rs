//! What does not depend on the batch, such as convolution kernels: computed once and used by several passes.
//!
//! With gradient accumulation it is the same for all micro-batches of a step. Take [`PreparedModel::leaves`] into the
//! passes, add up their gradients with [`PreparedModel::grads`], and send the sum on to the parameters by the backward
//! pass of [`PreparedModel::surrogate`].

use burn::tensor::{Gradients, Tensor};

/// The preparation of one mixer; nothing for mixers that depend on the batch alone.
#[derive(Debug, Clone, Default)]
pub struct Prepared {
    /// K: `[C, H, taps]`, or the functions of the lag that it is made of; shorter sequences use the first taps.
    kernel: Option<Tensor<3>>,
}

impl Prepared {
    /// Of a convolution.
    pub(crate) fn with_kernel(k: Tensor<3>) -> Self {
        Self { kernel: Some(k) }
    }

    /// K.
    ///
    /// # Panics
    /// If another kind of mixer prepared this.
    pub(crate) fn expect_kernel(&self) -> Tensor<3> {
        self.kernel.clone().expect("prepared by a mixer with kernels")
    }

    fn map(&self, f: impl Fn(&Tensor<3>) -> Tensor<3>) -> Self {
        Self { kernel: self.kernel.as_ref().map(f) }
    }
}

/// The preparations of the mixers of all layers for sequences of length l.
#[derive(Debug, Clone)]
pub struct PreparedModel {
    pub(crate) layers: Vec<Prepared>,
    pub(crate) l: usize,
}

impl PreparedModel {
    /// The K of each layer that has one.
    pub fn kernels(&self) -> impl Iterator<Item = &Tensor<3>> {
        self.layers.iter().filter_map(|layer| layer.kernel.as_ref())
    }

    /// L: the sequence length it is for.
    pub fn sequence_len(&self) -> usize {
        self.l
    }

    /// The same for shorter sequences: the first taps of each kernel.
    pub(crate) fn cut(&self, l: usize) -> Self {
        assert!(l <= self.l, "cut: this is for length {}, not {l}", self.l);
        let first = |k: &Tensor<3>| {
            let taps = k.dims()[2].min(l);
            k.clone().narrow(2, 0, taps)
        };
        Self { layers: self.layers.iter().map(|layer| layer.map(first)).collect(), l }
    }

    /// The same cut off from its parameters, with gradients of its own.
    pub fn leaves(&self) -> Self {
        let leaf = |k: &Tensor<3>| k.clone().detach().require_grad();
        Self { layers: self.layers.iter().map(|layer| layer.map(leaf)).collect(), l: self.l }
    }

    /// The gradient of each kernel; for [`Self::leaves`].
    pub fn grads(&self, grads: &Gradients) -> Vec<Option<Tensor<3>>> {
        self.kernels().map(|k| k.grad(grads)).collect()
    }

    /// Σ ⟨K, dK⟩: its gradients are those that the parameters get when the kernels have the gradients dK. `None` without
    /// kernels.
    ///
    /// # Panics
    /// If there is not one dK per kernel.
    pub fn surrogate(&self, grads: Vec<Tensor<3>>) -> Option<Tensor<1>> {
        assert_eq!(grads.len(), self.kernels().count(), "surrogate: one gradient per kernel");
        let terms = self.kernels().zip(grads).map(|(k, dk)| (k.clone() * dk).sum());
        terms.reduce(|a, b| a + b)
    }
}
