//! The convolution kernels of all layers, computed once and used by several passes.
//!
//! With gradient accumulation the kernels are the same for all micro-batches of a step. Take [`Kernels::leaves`] into
//! the passes, add up their gradients with [`Kernels::grads`], and send the sum on to the kernel parameters by the
//! backward pass of [`Kernels::surrogate`].

use burn::tensor::{Gradients, Tensor};

/// K of each layer, `[C, H, taps]`, for sequences of length l.
#[derive(Debug, Clone)]
pub struct Kernels {
    pub(crate) layers: Vec<Tensor<3>>,
    pub(crate) l: usize,
}

impl Kernels {
    /// The K of each layer.
    pub fn layers(&self) -> &[Tensor<3>] {
        &self.layers
    }

    /// L: the sequence length they are for.
    pub fn sequence_len(&self) -> usize {
        self.l
    }

    /// The kernels for shorter sequences: the first taps of these.
    ///
    /// # Panics
    /// If `l` is longer than what these are for.
    pub fn cut(&self, l: usize) -> Self {
        assert!(l <= self.l, "cut: these kernels are for length {}, not {l}", self.l);
        let first = |k: &Tensor<3>| {
            let taps = k.dims()[2].min(l);
            k.clone().narrow(2, 0, taps)
        };
        Self { layers: self.layers.iter().map(first).collect(), l }
    }

    /// The same kernels cut off from their parameters, with gradients of their own.
    pub fn leaves(&self) -> Self {
        let leaf = |k: &Tensor<3>| k.clone().detach().require_grad();
        Self { layers: self.layers.iter().map(leaf).collect(), l: self.l }
    }

    /// The gradient of each kernel; for [`Self::leaves`].
    pub fn grads(&self, grads: &Gradients) -> Vec<Option<Tensor<3>>> {
        self.layers.iter().map(|k| k.grad(grads)).collect()
    }

    /// Σ ⟨K, dK⟩: its gradients are those that the kernel parameters get when the kernels have the gradients dK.
    ///
    /// # Panics
    /// If there is not one dK per layer.
    pub fn surrogate(&self, grads: Vec<Tensor<3>>) -> Tensor<1> {
        assert_eq!(grads.len(), self.layers.len(), "surrogate: one gradient per layer");
        let terms = self.layers.iter().zip(grads).map(|(k, dk)| (k.clone() * dk).sum());
        terms.reduce(|a, b| a + b).expect("a model has at least one layer")
    }
}
