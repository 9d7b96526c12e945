//! The networks f of ODE-RNN and NRDE: linear maps with tanh or relu between them.

use super::{Grads, Weights, padded, tanh, vectorised};
use crate::real::Real;

/// What follows a linear map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activation {
    None,
    Relu,
    Tanh,
}

/// Linear maps one after the other; several may be the same one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    /// Widths from the input to the output, one more than there are maps.
    pub widths: Vec<usize>,
    /// Numbers of matrix and bias in the weights, and what follows.
    pub maps: Vec<(usize, Activation)>,
}

impl Field {
    /// Numbers per row of all results.
    pub fn trace(&self) -> usize {
        self.widths[1..].iter().map(|&width| padded(width)).sum()
    }

    /// Numbers of scratch memory per row of a backward.
    pub fn scratch(&self) -> usize {
        2 * self.widths.iter().map(|&width| padded(width)).max().unwrap_or(0)
    }

    /// The result of the last map in a trace of R rows.
    pub fn output<'a, T>(&self, rows: usize, trace: &'a [T]) -> &'a [T] {
        &trace[trace.len() - rows * padded(self.widths[self.widths.len() - 1])..]
    }

    /// x `[R, padded(n)]` -> the results of all maps behind each other, `[R, padded(width)]` each.
    pub fn forward<T: Real>(&self, weights: &Weights<T>, rows: usize, x: &[T], trace: &mut [T]) {
        let mut x = x;
        let mut rest = trace;
        for (i, &(at, activation)) in self.maps.iter().enumerate() {
            let (inputs, outputs) = (padded(self.widths[i]), padded(self.widths[i + 1]));
            let (y, later) = std::mem::take(&mut rest).split_at_mut(rows * outputs);
            weights.maps[at].affine(rows, x, inputs, &weights.vectors[at], y);
            vectorised(
                #[inline(always)]
                |fuse| match activation {
                    Activation::None => {}
                    Activation::Relu => {
                        for y in y.iter_mut() {
                            *y = if *y < T::ZERO { T::ZERO } else { *y };
                        }
                    }
                    Activation::Tanh => {
                        for y in y.iter_mut() {
                            *y = tanh(*y, fuse);
                        }
                    }
                },
            );
            (x, rest) = (y, later);
        }
    }

    /// Given dy `[R, padded(out)]`: dx `[R, padded(n)]` is added to.
    pub fn backward<T: Real>(
        &self,
        weights: &Weights<T>,
        rows: usize,
        (x, trace): (&[T], &[T]),
        (dy, dx): (&[T], &mut [T]),
        grads: &mut Grads<T>,
        scratch: &mut [T],
    ) {
        let half = rows * self.scratch() / 2;
        let (mut now, mut before) = scratch[..2 * half].split_at_mut(half);
        now[..dy.len()].copy_from_slice(dy);
        let mut end = trace.len();
        for (i, &(at, activation)) in self.maps.iter().enumerate().rev() {
            let (inputs, outputs) = (padded(self.widths[i]), padded(self.widths[i + 1]));
            let begin = end - rows * outputs;
            let d = &mut now[..rows * outputs];
            vectorised(
                #[inline(always)]
                |_| {
                    for (d, &y) in d.iter_mut().zip(&trace[begin..end]) {
                        *d = match activation {
                            Activation::None => *d,
                            Activation::Relu if y > T::ZERO => *d,
                            Activation::Relu => T::ZERO,
                            Activation::Tanh => *d * (T::rounded(1.0) - y * y),
                        };
                    }
                },
            );
            let into = if i == 0 { x } else { &trace[begin - rows * inputs..begin] };
            grads.add_map(at, rows, (d, outputs), (into, inputs));
            grads.add_vector(at, d, outputs);
            if i == 0 {
                weights.maps[at].add_backward(rows, d, outputs, dx);
            } else {
                let back = &mut before[..rows * inputs];
                back.fill(T::ZERO);
                weights.maps[at].add_backward(rows, d, outputs, back);
            }
            (now, before) = (before, now);
            end = begin;
        }
    }
}
