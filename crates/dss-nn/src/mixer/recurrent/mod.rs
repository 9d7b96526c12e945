//! What recurrent nets share: z = input(u) at all positions at once, h_t = f(z_t, h_{t−1}) one position after the other,
//! y = output(h).
//!
//! In the fused form f runs in `dss_kernels::recurrent`, which keeps only every √L-th state. The composed form, one
//! position at a time in Burn operations, is the specification; its step is also that of a stream.

pub(super) mod diagonal;
pub(super) mod fused;
pub(super) mod solver;
mod state;

use std::fmt::Debug;

use burn::tensor::Tensor;
use dss_kernels::recurrent::Cell;

use super::state::MixerState;
use super::{HasContext, Mixer, Pass, Portrait, no_step};
use crate::dispatch;
use crate::error::Result;
use state::NetState;

/// A recurrent net.
pub(crate) trait RecurrentNet: HasContext + Debug + Clone + Send + Sync + 'static {
    /// f in `dss_kernels`.
    type Cell: Cell;

    /// f.
    fn cell(&self) -> Self::Cell;

    /// What f computes with: the matrices `[out, in]` of the cell, then its vectors `[1, n]`.
    fn weights(&self) -> Vec<Tensor<2>>;

    /// z `[B, L, Z]` of u `[B, L, H]`; `first`: the sequences begin here.
    fn input(&self, u: Tensor<3>, first: bool) -> Tensor<3>;

    /// How many numbers the state has; those of the output come first.
    fn state_width(&self) -> usize {
        self.context().h
    }

    /// f in Burn operations: z `[B, Z]`, h `[B, S]` -> `[B, S]`.
    fn compose(&self, weights: &[Tensor<2>], z: Tensor<2>, h: Tensor<2>) -> Tensor<2>;

    /// `[B, L, H]` of the states' outputs `[B, L, n]` and the input u `[B, L, H]`; `pass` has the dropout mask.
    fn output(&self, h: Tensor<3>, _u: Tensor<3>, pass: &Pass) -> Tensor<3> {
        pass.dropped(h, 0)
    }

    /// The spectra of its matrices.
    fn spectra(&self) -> Vec<Portrait> {
        Vec::new()
    }

    /// The same net with r times the step.
    ///
    /// # Errors
    /// If it has no step.
    fn with_step(&self, _r: f64) -> Result<Mixer> {
        Err(no_step())
    }
}

/// Whole sequences: `[B, L, H]` -> `[B, L, H]`.
pub(super) fn mix<N: RecurrentNet>(net: &N, u: Tensor<3>, pass: &Pass) -> Tensor<3> {
    let (weights, z) = (net.weights(), net.input(u.clone(), true));
    let h = match dispatch::is_fused(net.context().form, &z) {
        true => fused::run(net.cell(), z, &weights, None),
        false => compose(net, z, &weights),
    };
    net.output(h, u, pass)
}

/// The outputs `[B, L, n]` of all states, one position after the other.
fn compose<N: RecurrentNet>(net: &N, z: Tensor<3>, weights: &[Tensor<2>]) -> Tensor<3> {
    let ([batch, l, _], outputs) = (z.dims(), net.cell().sizes().outputs);
    let mut h = Tensor::zeros([batch, net.state_width()], (&z.device(), z.dtype()));
    let mut all = Vec::with_capacity(l);
    for t in 0..l {
        h = net.compose(weights, z.clone().narrow(1, t, 1).squeeze_dim(1), h);
        all.push(h.clone().narrow(1, 0, outputs));
    }
    Tensor::stack(all, 1)
}

/// B streams before their first step.
pub(super) fn state<N: RecurrentNet>(net: &N, batch: usize) -> MixerState {
    MixerState::new(Box::new(NetState::new(net.clone(), batch)), [batch, net.context().h])
}

/// y = x·Wᵀ + b of rows x, in Burn operations.
pub(super) fn affine(x: Tensor<2>, weight: &Tensor<2>, bias: &Tensor<2>) -> Tensor<2> {
    x.matmul(weight.clone().transpose()) + bias.clone()
}

/// A vector as a row `[1, n]`.
pub(super) fn row(x: Tensor<1>) -> Tensor<2> {
    x.unsqueeze()
}

/// The seam of a recurrent net.
macro_rules! recurrent_mixer {
    ($layer:ident) => {
        impl crate::mixer::SequenceMixer for $layer {
            fn mix(
                &self,
                u: burn::tensor::Tensor<3>,
                _prepared: &crate::prepared::Prepared,
                pass: &crate::mixer::Pass,
            ) -> burn::tensor::Tensor<3> {
                crate::mixer::recurrent::mix(self, u, pass)
            }

            fn state(&self, batch: usize) -> crate::error::Result<crate::mixer::MixerState> {
                Ok(crate::mixer::recurrent::state(self, batch))
            }

            fn at_step(&self, r: f64) -> crate::error::Result<crate::mixer::Mixer> {
                self.with_step(r)
            }

            fn portraits(
                &self,
                _u: burn::tensor::Tensor<3>,
                _side: Option<&burn::tensor::Tensor<3>>,
            ) -> Vec<crate::mixer::Portrait> {
                crate::mixer::recurrent::RecurrentNet::spectra(self)
            }

            fn past_end(&self) -> String {
                "a recurrent net does not depend on the length".to_owned()
            }
        }
    };
}
pub(super) use recurrent_mixer;
