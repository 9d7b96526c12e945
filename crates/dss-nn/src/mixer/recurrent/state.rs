//! A recurrent net one position at a time.

use burn::tensor::Tensor;

use super::RecurrentNet;
use crate::error::Result;
use crate::mixer::Pass;
use crate::mixer::state::Recurrent;

/// B streams through a net, with its weights as they were when the state was made.
#[derive(Debug, Clone)]
pub(super) struct NetState<N> {
    net: N,
    weights: Vec<Tensor<2>>,
    /// `[B, S]`; `None` before the first step.
    h: Option<Tensor<2>>,
    batch: usize,
}

impl<N: RecurrentNet> NetState<N> {
    pub fn new(net: N, batch: usize) -> Self {
        let weights = net.weights().into_iter().map(Tensor::detach).collect();
        Self { net, weights, h: None, batch }
    }
}

impl<N: RecurrentNet> Recurrent for NetState<N> {
    fn step(&mut self, k: usize, u: Tensor<2>) -> Result<Tensor<2>> {
        let u = u.detach().unsqueeze_dim::<3>(1);
        let z = self.net.input(u.clone(), k == 0).detach().squeeze_dim::<2>(1);
        let width = [self.batch, self.net.state_width()];
        let h = self.h.take().unwrap_or_else(|| Tensor::zeros(width, (&z.device(), z.dtype())));
        let h = self.net.compose(&self.weights, z, h).detach();
        let outputs = dss_kernels::recurrent::Cell::sizes(&self.net.cell()).outputs;
        let read = h.clone().narrow(1, 0, outputs).unsqueeze_dim::<3>(1);
        self.h = Some(h);
        Ok(self.net.output(read, u, &Pass::default()).detach().squeeze_dim(1))
    }

    fn boxed_clone(&self) -> Box<dyn Recurrent> {
        Box::new(self.clone())
    }
}
