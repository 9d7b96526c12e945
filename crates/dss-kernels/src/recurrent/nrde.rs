//! Neural rough differential equations (Morrill et al. 2021): over each window of a path the state follows
//! dh/dτ = f(h)·ℓ for a time of 1, where ℓ is the log-signature of the window and f(h) a matrix `[n, dim]`.

use super::field::{Activation, Field};
use super::solver::{Dynamics, GradientSums, Solver, Steps};
use super::{Cell, CellGrads, CellInput, CellSizes, Weights, padded};
use crate::real::Real;

/// n units. f: a map to `width`, `layers` − 1 times relu and one shared map, tanh, a map to n·dim.
///
/// Parameters: the matrices `[width, n]`, `[width, width]` and `[n·dim, width]`; their biases in the same order. z is
/// ℓ `[dim]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nrde {
    /// Units.
    pub n: usize,
    /// Numbers of a log-signature.
    pub dim: usize,
    /// Width of the hidden layers of f.
    pub width: usize,
    /// Hidden layers of f, at least 1.
    pub layers: usize,
    /// The rule of a step.
    pub solver: Solver,
    /// Steps over a window.
    pub substeps: usize,
}

impl Nrde {
    fn field(&self) -> Field {
        let Self { n, dim, width, layers, .. } = *self;
        let mut maps = vec![(0, Activation::Relu)];
        maps.extend(std::iter::repeat_n((1, Activation::Relu), layers - 1));
        maps[layers - 1].1 = Activation::Tanh;
        maps.push((2, Activation::None));
        let hidden = std::iter::repeat_n(width, layers);
        Field { widths: std::iter::once(n).chain(hidden).chain([n * dim]).collect(), maps }
    }

    fn steps(&self) -> Steps {
        Steps { solver: self.solver, substeps: self.substeps }
    }

    fn flow(&self) -> Flow {
        Flow { field: self.field(), dim: self.dim }
    }
}

/// f(h)·ℓ.
struct Flow {
    field: Field,
    dim: usize,
}

impl Dynamics for Flow {
    fn width(&self) -> usize {
        self.field.widths[0]
    }

    fn trace(&self) -> usize {
        self.field.trace()
    }

    fn scratch(&self) -> usize {
        self.field.scratch() + padded(self.width() * self.dim)
    }

    fn eval<T: Real>(
        &self,
        weights: &Weights<T>,
        input: CellInput<T>,
        k: &mut [T],
        trace: &mut [T],
    ) {
        let (n, dim) = (self.width(), self.dim);
        self.field.forward(weights, input.rows, input.h, trace);
        let f = self.field.output(input.rows, trace);
        let rows = f.chunks_exact(padded(n * dim)).zip(input.z.chunks_exact(dim));
        for (k, (f, ell)) in k.chunks_exact_mut(padded(n)).zip(rows) {
            for (k, f) in k.iter_mut().zip(f[..n * dim].chunks_exact(dim)) {
                *k = f.iter().zip(ell).fold(T::ZERO, |sum, (&f, &ell)| sum + f * ell);
            }
            k[n..].fill(T::ZERO);
        }
    }

    fn backward<T: Real>(
        &self,
        weights: &Weights<T>,
        input: CellInput<T>,
        trace: &[T],
        dk: &[T],
        to: GradientSums<T>,
        scratch: &mut [T],
    ) {
        let (n, dim) = (self.width(), self.dim);
        let (CellInput { rows, z, h }, wide) = (input, padded(n * dim));
        let (df, scratch) = scratch.split_at_mut(rows * wide);
        let f = self.field.output(rows, trace);
        let inputs = f.chunks_exact(wide).zip(z.chunks_exact(dim)).zip(dk.chunks_exact(padded(n)));
        let outputs = df.chunks_exact_mut(wide).zip(to.z.chunks_exact_mut(dim));
        for (((f, ell), dk), (df, d_ell)) in inputs.zip(outputs) {
            for (i, &dk) in dk[..n].iter().enumerate() {
                for j in 0..dim {
                    df[i * dim + j] = dk * ell[j];
                    d_ell[j] += dk * f[i * dim + j];
                }
            }
            df[n * dim..].fill(T::ZERO);
        }
        self.field.backward(weights, rows, (h, trace), (df, to.h), to.params, scratch);
    }
}

impl Cell for Nrde {
    fn sizes(&self) -> CellSizes {
        let Self { n, dim, width, .. } = *self;
        CellSizes {
            inputs: dim,
            state: padded(n),
            outputs: n,
            scratch: self.steps().scratch(&self.flow()),
            maps: vec![[width, n], [width, width], [n * dim, width]],
            vectors: vec![width, width, n * dim],
        }
    }

    fn step<T: Real>(
        &self,
        weights: &Weights<T>,
        input: CellInput<T>,
        next: &mut [T],
        scratch: &mut [T],
    ) {
        let one = |_| T::rounded(1.0);
        self.steps().forward((&self.flow(), weights), input, one, next, scratch);
    }

    fn backward<T: Real>(
        &self,
        weights: &Weights<T>,
        input: CellInput<T>,
        d_next: &[T],
        grads: CellGrads<T>,
        scratch: &mut [T],
    ) {
        let one = |_| T::rounded(1.0);
        grads.z.fill(T::ZERO);
        let to = GradientSums { h: grads.h, z: grads.z, params: grads.params };
        self.steps().backward((&self.flow(), weights), input, one, d_next, to, scratch);
    }
}
