//! What can be seen of a layer besides modes and kernels of state spaces: for inspection.

use burn::tensor::Tensor;
use dss_kernels::eigenvalues;

use super::heads::split;
use super::modes::Eigenvalue;
use crate::composed::constant;

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
    /// What a Fourier transform over the positions makes of an example.
    Frequencies {
        /// `[frequencies, H]`, from frequency 0 up.
        values: Tensor<2>,
        /// The root mean square of all its outputs over that of its inputs.
        gain: f64,
    },
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

    /// The weights of heads that share the channels of q `[1, L, Q]`, whichever way they are computed: `attend` maps
    /// values `[1, L, Q]` linearly to answers `[1, L, Q]`.
    ///
    /// The answers to unit vectors are columns of the weights. A pass gives as many as a head has channels.
    pub(super) fn attention_of(
        q: &Tensor<3>,
        heads: usize,
        attend: impl Fn(Tensor<3>) -> Tensor<3>,
    ) -> Self {
        let [_, l, width] = q.dims();
        let d = width / heads;
        let columns = |first: usize| {
            let is_one = |i: usize| i / width == first + i % width % d;
            let values = (0..l * width).map(|i| f64::from(is_one(i))).collect();
            let answers = attend(constant(values, [1, l, width], &q.device(), q.dtype()));
            split(answers, heads)
        };
        let weights = Tensor::cat((0..l).step_by(d).map(columns).collect(), 3);
        Self::attention("attention", weights.narrow(3, 0, l))
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{DType, Device};

    use super::*;
    use crate::mixer::heads::join;
    use crate::random::{normal, stream};

    #[test]
    fn answers_to_unit_vectors_are_the_weights() {
        // Two heads of three channels: five passes, the last one for one column.
        let (heads, d, l) = (2, 3, 13);
        let device = Device::flex();
        let numbers = |count, name| normal(count, &mut stream(1, name));
        let weights: Tensor<4> =
            constant(numbers(heads * l * l, "w"), [1, heads, l, l], &device, DType::F64);
        let q = constant(numbers(l * heads * d, "q"), [1, l, heads * d], &device, DType::F64);
        let attend = |v| join(weights.clone().matmul(split(v, heads)));
        let Subject::Attention(found) = Portrait::attention_of(&q, heads, attend).subject else {
            panic!("attention")
        };
        assert_eq!(found.dims(), [heads, l, l]);
        let error: f64 = (found - weights.squeeze_dim(0)).abs().max().into_scalar();
        assert_eq!(error, 0.0);
    }
}
