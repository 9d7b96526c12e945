//! ODE-RNN (Rubanova et al. 2019, as run in the Neural CDE experiments): between observations the state follows
//! dh/dt = f(h), at an observation it is updated by a GRU.

use super::field::{Activation, Field};
use super::solver::{Dynamics, GradientSums, Solver, Steps};
use super::{Cell, CellGrads, CellInput, CellSizes, Gru, Weights, padded};
use crate::real::Real;

/// n units, f with `layers` hidden layers of width `width` and tanh between.
///
/// Parameters: the matrices of f from input to output, W_hh `[3n, n]`; their biases in the same order. z is `[3n + 2]`:
/// the GRU's, the time since the position before, and 1 if there is an observation, else 0; the last two have no gradient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OdeRnn {
    /// Units.
    pub n: usize,
    /// Width of the hidden layers of f.
    pub width: usize,
    /// Hidden layers of f.
    pub layers: usize,
    /// The rule of a step.
    pub solver: Solver,
    /// Steps between two positions.
    pub substeps: usize,
}

impl OdeRnn {
    fn field(&self) -> Field {
        let hidden = std::iter::repeat_n(self.width, self.layers);
        let widths = std::iter::once(self.n).chain(hidden).chain([self.n]).collect();
        let activation = |i| if i < self.layers { Activation::Tanh } else { Activation::None };
        Field { widths, maps: (0..=self.layers).map(|i| (i, activation(i))).collect() }
    }

    fn steps(&self) -> Steps {
        Steps { solver: self.solver, substeps: self.substeps }
    }

    fn gru(&self) -> Gru {
        Gru { n: self.n }
    }
}

/// f.
struct Flow(Field);

impl Dynamics for Flow {
    fn width(&self) -> usize {
        self.0.widths[0]
    }

    fn trace(&self) -> usize {
        self.0.trace()
    }

    fn scratch(&self) -> usize {
        self.0.scratch()
    }

    fn eval<T: Real>(
        &self,
        weights: &Weights<T>,
        input: CellInput<T>,
        k: &mut [T],
        trace: &mut [T],
    ) {
        self.0.forward(weights, input.rows, input.h, trace);
        k.copy_from_slice(self.0.output(input.rows, trace));
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
        let CellInput { rows, h, .. } = input;
        self.0.backward(weights, rows, (h, trace), (dk, to.h), to.params, scratch);
    }
}

impl Cell for OdeRnn {
    fn sizes(&self) -> CellSizes {
        let (n, flow) = (self.n, Flow(self.field()));
        let widths = &flow.0.widths;
        let maps = widths.windows(2).map(|pair| [pair[1], pair[0]]).chain([[3 * n, n]]);
        let vectors = widths[1..].iter().copied().chain([3 * n]);
        CellSizes {
            inputs: 3 * n + 2,
            state: padded(n),
            outputs: n,
            scratch: 2 * padded(n) + self.steps().scratch(&flow).max(self.gru().scratch()),
            maps: maps.collect(),
            vectors: vectors.collect(),
        }
    }

    fn step<T: Real>(
        &self,
        weights: &Weights<T>,
        input: CellInput<T>,
        next: &mut [T],
        scratch: &mut [T],
    ) {
        let (n, s, wide) = (self.n, padded(self.n), 3 * self.n + 2);
        let CellInput { rows, z, .. } = input;
        let (evolved, scratch) = scratch.split_at_mut(rows * s);
        let delta = |row: usize| z[row * wide + 3 * n];
        let flow = Flow(self.field());
        self.steps().forward((&flow, weights), input, delta, evolved, scratch);
        let input = CellInput { h: evolved, ..input };
        self.gru().step_at(weights, (self.layers + 1, wide), input, next, scratch);
        for (row, next) in next.chunks_exact_mut(s).enumerate() {
            if z[row * wide + 3 * n + 1] == T::ZERO {
                next.copy_from_slice(&evolved[row * s..][..s]);
            }
        }
    }

    fn backward<T: Real>(
        &self,
        weights: &Weights<T>,
        input: CellInput<T>,
        d_next: &[T],
        grads: CellGrads<T>,
        scratch: &mut [T],
    ) {
        let (n, s, wide) = (self.n, padded(self.n), 3 * self.n + 2);
        let CellInput { rows, z, .. } = input;
        let observed = |row: usize| z[row * wide + 3 * n + 1] != T::ZERO;
        let (evolved, rest) = scratch.split_at_mut(rows * s);
        let (d_evolved, scratch) = rest.split_at_mut(rows * s);
        let delta = |row: usize| z[row * wide + 3 * n];
        let flow = Flow(self.field());
        self.steps().forward((&flow, weights), input, delta, evolved, scratch);
        // Of rows without an observation the GRU gets the gradient 0.
        let d_update = grads.h;
        d_update.copy_from_slice(d_next);
        for (row, d) in d_update.chunks_exact_mut(s).enumerate() {
            if !observed(row) {
                d.fill(T::ZERO);
            }
        }
        grads.z.fill(T::ZERO);
        let to = CellGrads { z: &mut *grads.z, h: d_evolved, params: &mut *grads.params };
        let update = CellInput { h: evolved, ..input };
        self.gru().backward_at(weights, (self.layers + 1, wide), update, d_update, to, scratch);
        for (row, d) in d_evolved.chunks_exact_mut(s).enumerate() {
            if !observed(row) {
                d.copy_from_slice(&d_next[row * s..][..s]);
            }
        }
        let to = GradientSums { h: d_update, z: grads.z, params: grads.params };
        self.steps().backward((&flow, weights), input, delta, d_evolved, to, scratch);
    }
}
