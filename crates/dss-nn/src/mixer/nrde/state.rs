//! NRDE one position at a time: the points of the window that is not yet complete are kept.

use burn::tensor::Tensor;

use super::{NrdeLayer, log_signatures};
use crate::error::Result;
use crate::mixer::state::Recurrent;

/// B streams through a layer.
#[derive(Debug, Clone)]
pub(super) struct NrdeState {
    layer: NrdeLayer,
    weights: Vec<Tensor<2>>,
    /// `[B, H]`; `None` before the first step.
    h: Option<Tensor<2>>,
    /// Points `[B, 1, P + 1]` since the end of the last window, that one included.
    points: Vec<Tensor<3>>,
}

impl NrdeState {
    pub fn new(layer: NrdeLayer) -> Self {
        let weights = layer.weights().into_iter().map(Tensor::detach).collect();
        Self { layer, weights, h: None, points: Vec::new() }
    }
}

impl Recurrent for NrdeState {
    fn step(&mut self, k: usize, u: Tensor<2>) -> Result<Tensor<2>> {
        let point = self.layer.points(u.detach().unsqueeze_dim(1), k).detach();
        let first = || self.layer.initial.forward(point.clone().squeeze_dim(1)).detach();
        let mut h = self.h.take().unwrap_or_else(first);
        self.points.push(point);
        let window = self.layer.config.window;
        if self.points.len() > window {
            let x = Tensor::cat(std::mem::take(&mut self.points), 1);
            let d = x.clone().narrow(1, 1, window) - x.clone().narrow(1, 0, window);
            let ell = log_signatures(d, window, self.layer.config.depth).squeeze_dim(1);
            h = self.layer.compose(&self.weights, ell, h).detach();
            self.points.push(x.narrow(1, window, 1));
        }
        self.h = Some(h.clone());
        Ok(h)
    }

    fn boxed_clone(&self) -> Box<dyn Recurrent> {
        Box::new(self.clone())
    }
}
