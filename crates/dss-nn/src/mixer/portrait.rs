//! What can be seen of a layer besides modes and kernels of state spaces: for inspection.

use burn::tensor::Tensor;
use dss_kernels::eigenvalues;

use super::modes::Eigenvalue;

/// Something of a layer that can be drawn.
#[derive(Debug, Clone)]
pub struct Portrait {
    /// What it is, such as "A" or "from the sequence to p".
    pub name: &'static str,
    /// The numbers.
    pub subject: Subject,
}

/// What a portrait shows.
#[derive(Debug, Clone)]
pub enum Subject {
    /// How much each position takes of each other one, for an example: `[heads, M, L]`, rows of sum 1.
    Attention(Tensor<3>),
    /// What a recurrent matrix does to the state.
    Spectrum {
        /// Its eigenvalues.
        eigenvalues: Vec<Eigenvalue>,
        /// Where they lie when the state neither grows nor fades.
        edge: StableEdge,
    },
    /// Kernels of dense convolutions, `[out, in, taps]`.
    Kernels(Tensor<3>),
}

/// Where the eigenvalues of a matrix lie if it keeps the size of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StableEdge {
    /// |λ| = 1: the matrix is a step.
    UnitCircle,
    /// Re λ = 0: the matrix is a rate of change.
    ImaginaryAxis,
}

impl Portrait {
    /// The spectrum of a square matrix; none if its numbers are not finite.
    pub(super) fn spectrum(
        name: &'static str,
        matrix: Tensor<2>,
        edge: StableEdge,
    ) -> Option<Self> {
        let n = matrix.dims()[0];
        let values: Vec<f64> = matrix.into_data().iter::<f64>().collect();
        let eigenvalues = eigenvalues(&values, n).ok()?.iter().map(|z| [z.re, z.im]).collect();
        Some(Self { name, subject: Subject::Spectrum { eigenvalues, edge } })
    }

    /// The spectra of the matrices `[n, n]` that W `[k·n, n]` consists of, each a step.
    pub(super) fn spectra_of_gates(names: &[&'static str], weight: Tensor<2>) -> Vec<Self> {
        let n = weight.dims()[1];
        let gate = |(i, &name): (usize, &&'static str)| {
            Self::spectrum(name, weight.clone().narrow(0, i * n, n), StableEdge::UnitCircle)
        };
        names.iter().enumerate().filter_map(gate).collect()
    }

    /// The weights `[1, heads, M, L]` of an example.
    pub(super) fn attention(name: &'static str, weights: Tensor<4>) -> Self {
        Self { name, subject: Subject::Attention(weights.squeeze_dim(0)) }
    }
}
