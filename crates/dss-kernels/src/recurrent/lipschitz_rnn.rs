//! LipschitzRNN (Erichson et al. 2021): dh/dt = h·A + tanh(h·W + z), in steps of ε.

use super::solver::{Dynamics, GradientSums, Solver, Steps};
use super::{Cell, CellGrads, CellInput, CellSizes, Weights, padded, tanh, vectorised};
use crate::real::Real;

/// n units. Parameters: Aᵀ and Wᵀ, `[n, n]` each; z is `[n]`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LipschitzRnn {
    /// Units.
    pub n: usize,
    /// ε: the time of a step.
    pub step: f64,
    /// The rule of a step.
    pub solver: Solver,
}

impl LipschitzRnn {
    fn steps(&self) -> Steps {
        Steps { solver: self.solver, substeps: 1 }
    }
}

impl Dynamics for LipschitzRnn {
    fn width(&self) -> usize {
        self.n
    }

    /// tanh(h·W + z).
    fn trace(&self) -> usize {
        padded(self.n)
    }

    fn scratch(&self) -> usize {
        padded(self.n)
    }

    fn eval<T: Real>(
        &self,
        weights: &Weights<T>,
        input: CellInput<T>,
        k: &mut [T],
        trace: &mut [T],
    ) {
        let (n, s) = (self.n, padded(self.n));
        let CellInput { rows, z, h } = input;
        for (q, z) in trace.chunks_exact_mut(s).zip(z.chunks_exact(n)) {
            q[..n].copy_from_slice(z);
            q[n..].fill(T::ZERO);
        }
        weights.maps[1].add(rows, h, s, trace);
        vectorised(
            #[inline(always)]
            |fuse| {
                for q in trace.iter_mut() {
                    *q = tanh(*q, fuse);
                }
            },
        );
        k.copy_from_slice(trace);
        weights.maps[0].add(rows, h, s, k);
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
        let (n, s, rows) = (self.n, padded(self.n), input.rows);
        let dq = &mut scratch[..rows * s];
        for ((dq, &d), &q) in dq.iter_mut().zip(dk).zip(trace) {
            *dq = d * (T::rounded(1.0) - q * q);
        }
        for (dz, dq) in to.z.chunks_exact_mut(n).zip(dq.chunks_exact(s)) {
            dz.iter_mut().zip(dq).for_each(|(dz, &dq)| *dz += dq);
        }
        for (map, d) in [(0, dk), (1, &*dq)] {
            weights.maps[map].add_backward(rows, d, s, to.h);
            to.params.add_map(map, rows, (d, s), (input.h, s));
        }
    }
}

impl Cell for LipschitzRnn {
    fn sizes(&self) -> CellSizes {
        let n = self.n;
        CellSizes {
            inputs: n,
            state: padded(n),
            outputs: n,
            scratch: self.steps().scratch(self),
            maps: vec![[n, n]; 2],
            vectors: Vec::new(),
        }
    }

    fn step<T: Real>(
        &self,
        weights: &Weights<T>,
        input: CellInput<T>,
        next: &mut [T],
        scratch: &mut [T],
    ) {
        let delta = |_| T::rounded(self.step);
        self.steps().forward((self, weights), input, delta, next, scratch);
    }

    fn backward<T: Real>(
        &self,
        weights: &Weights<T>,
        input: CellInput<T>,
        d_next: &[T],
        grads: CellGrads<T>,
        scratch: &mut [T],
    ) {
        let delta = |_| T::rounded(self.step);
        grads.z.fill(T::ZERO);
        let to = GradientSums { h: grads.h, z: grads.z, params: grads.params };
        self.steps().backward((self, weights), input, delta, d_next, to, scratch);
    }
}
