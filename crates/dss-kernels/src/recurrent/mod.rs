//! Recurrent nets h_t = f(z_t, h_{t−1}) over whole batches, with their backward, and one step at a time.
//!
//! What depends on the inputs alone, z = W·u + b, is one matrix product over all positions and made by the caller. A
//! [`Cell`] is f: [`Gru`], [`Lstm`], [`ExpRnn`], [`LipschitzRnn`], [`OdeRnn`], [`Nrde`], and the linear [`Diagonal`] of
//! LRU and S5. [`Recurrent`] runs any of them.
//!
//! Sequences go in groups of a few rows, so that every weight that is read serves several of them; a group is the unit
//! of work of a thread, and its rows do not depend on each other or on the group. Only every √L-th state is kept for
//! the backward pass, which recomputes the others: memory O(√L·B·S).
//!
//! | letter | meaning |
//! |--------|---------|
//! | Z | numbers of the input z per position |
//! | S | numbers of a state; the first n of them are the output |
//! | R | rows: sequences of a group |

mod diagonal;
mod driver;
mod exp_rnn;
mod field;
mod gru;
mod lipschitz_rnn;
mod lstm;
mod nrde;
mod ode_rnn;
pub mod orthogonal;
mod solver;
mod weights;

use std::fmt::Debug;

use crate::real::Real;

pub use diagonal::Diagonal;
pub use driver::{Recurrent, RecurrentGrads, RecurrentInput};
pub use exp_rnn::ExpRnn;
pub use gru::Gru;
pub use lipschitz_rnn::LipschitzRnn;
pub use lstm::Lstm;
pub use nrde::Nrde;
pub use ode_rnn::OdeRnn;
pub use solver::Solver;
pub use weights::{Grads, Map, Weights};

/// Sizes of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellSizes {
    /// Z: numbers of the input per position.
    pub inputs: usize,
    /// S: numbers of the state, padding between its parts included.
    pub state: usize,
    /// n: how many of the first numbers of the state are the output.
    pub outputs: usize,
    /// Numbers of scratch memory per row.
    pub scratch: usize,
    /// `[out, in]` of the weight matrices.
    pub maps: Vec<[usize; 2]>,
    /// Lengths of the other parameters.
    pub vectors: Vec<usize>,
}

impl CellSizes {
    /// Numbers of all parameters: first the matrices in their order, then the vectors.
    pub fn parameters(&self) -> usize {
        let maps: usize = self.maps.iter().map(|[outputs, inputs]| outputs * inputs).sum();
        maps + self.vectors.iter().sum::<usize>()
    }
}

/// One step of some sequences: z `[R, Z]` and the state before it, h `[R, S]`.
#[derive(Debug, Clone, Copy)]
pub struct CellInput<'a, T> {
    /// R: how many sequences.
    pub rows: usize,
    /// `[R, Z]`.
    pub z: &'a [T],
    /// `[R, S]`.
    pub h: &'a [T],
}

/// Where the gradients of a step go.
#[derive(Debug)]
pub struct CellGrads<'a, T: Real> {
    /// `[R, Z]`, overwritten.
    pub z: &'a mut [T],
    /// `[R, S]`, overwritten.
    pub h: &'a mut [T],
    /// Of the parameters, added to.
    pub params: &'a mut Grads<T>,
}

/// One step of a recurrent net, on several rows at once, and its backward.
pub trait Cell: Debug + Clone + Send + Sync + 'static {
    /// Whether [`Cell::backward`] finds in its scratch memory what [`Cell::step`] of the same input left there.
    const KEEPS_SCRATCH: bool = false;

    /// Its sizes.
    fn sizes(&self) -> CellSizes;

    /// next `[R, S]` = f(z, h).
    fn step<T: Real>(
        &self,
        weights: &Weights<T>,
        input: CellInput<T>,
        next: &mut [T],
        scratch: &mut [T],
    );

    /// Given the gradient of `next`.
    fn backward<T: Real>(
        &self,
        weights: &Weights<T>,
        input: CellInput<T>,
        d_next: &[T],
        grads: CellGrads<T>,
        scratch: &mut [T],
    );
}

/// n rounded up to whole cache lines: the columns of what a matrix product writes.
pub(crate) fn padded(n: usize) -> usize {
    n.next_multiple_of(16)
}

/// Runs loops that the compiler vectorises for the machine's vector instructions; they are told whether it has a fused
/// multiply-add. The closure must be `#[inline(always)]`, and its loops `for` loops: functions of their own would be
/// compiled without these instructions.
#[inline(always)]
fn vectorised(body: impl FnOnce(bool)) {
    struct Loops<F>(F);
    impl<F: FnOnce(bool)> pulp::WithSimd for Loops<F> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: pulp::Simd>(self, _: S) {
            (self.0)(crate::real::fuses::<S>());
        }
    }
    crate::real::dispatch(Loops(body));
}

/// tanh x = 2σ(2x) − 1.
#[inline(always)]
fn tanh<T: Real>(x: T, fuse: bool) -> T {
    let s = (x + x).sigmoid(fuse);
    s + s - T::rounded(1.0)
}
