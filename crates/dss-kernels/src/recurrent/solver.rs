//! Fixed steps of explicit Runge–Kutta rules for dh/dt = f(h, z), with z held over the step, and their backward: the
//! gradient of what was computed.

use super::{CellInput, Grads, Weights, padded};
use crate::real::Real;

/// A rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Solver {
    /// h + Δ·f(h).
    Euler,
    /// h + Δ·f(h + ½Δ·f(h)).
    Midpoint,
    /// The 3/8 rule of order four.
    Rk4,
}

impl Solver {
    /// Rows of the tableau and the weights of the sum.
    fn tableau(self) -> (&'static [&'static [f64]], &'static [f64]) {
        const THIRD: f64 = 1.0 / 3.0;
        match self {
            Self::Euler => (&[&[]], &[1.0]),
            Self::Midpoint => (&[&[], &[0.5]], &[0.0, 1.0]),
            Self::Rk4 => {
                (&[&[], &[THIRD], &[-THIRD, 1.0], &[1.0, -1.0, 1.0]], &[0.125, 0.375, 0.375, 0.125])
            }
        }
    }
}

/// f, and what its backward needs of an evaluation.
pub(super) trait Dynamics {
    /// n.
    fn width(&self) -> usize;

    /// Numbers per row that an evaluation leaves for its backward.
    fn trace(&self) -> usize;

    /// Numbers of scratch memory per row of a backward.
    fn scratch(&self) -> usize;

    /// k `[R, padded(n)]` = f(p, z).
    fn eval<T: Real>(
        &self,
        weights: &Weights<T>,
        input: CellInput<T>,
        k: &mut [T],
        trace: &mut [T],
    );

    /// Given dk: dp and dz are added to.
    fn backward<T: Real>(
        &self,
        weights: &Weights<T>,
        input: CellInput<T>,
        trace: &[T],
        dk: &[T],
        to: GradientSums<T>,
        scratch: &mut [T],
    );
}

/// Gradients that are added to.
pub(super) struct GradientSums<'a, T: Real> {
    /// `[R, padded(n)]`.
    pub h: &'a mut [T],
    /// `[R, Z]`.
    pub z: &'a mut [T],
    pub params: &'a mut Grads<T>,
}

/// `substeps` steps of a rule, which together cover a time Δ that every row has its own of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Steps {
    pub solver: Solver,
    pub substeps: usize,
}

/// Scratch memory of [`Steps`] for R rows.
struct Memory<'a, T> {
    /// `[substeps, R, s]`: the states that the steps begin at.
    starts: &'a mut [T],
    /// `[stages, R, s]` each.
    p: &'a mut [T],
    k: &'a mut [T],
    dk: &'a mut [T],
    /// `[R, s]`.
    dp: &'a mut [T],
    /// `[stages, R, trace]`.
    traces: &'a mut [T],
    scratch: &'a mut [T],
}

impl Steps {
    pub fn scratch(self, f: &impl Dynamics) -> usize {
        let (stages, s) = (self.solver.tableau().1.len(), padded(f.width()));
        (self.substeps + 3 * stages + 1) * s + stages * f.trace() + f.scratch()
    }

    fn memory<'a, T>(self, f: &impl Dynamics, rows: usize, scratch: &'a mut [T]) -> Memory<'a, T> {
        let (stages, size) = (self.solver.tableau().1.len(), rows * padded(f.width()));
        let (starts, rest) = scratch.split_at_mut(self.substeps * size);
        let (p, rest) = rest.split_at_mut(stages * size);
        let (k, rest) = rest.split_at_mut(stages * size);
        let (dk, rest) = rest.split_at_mut(stages * size);
        let (dp, rest) = rest.split_at_mut(size);
        let (traces, scratch) = rest.split_at_mut(stages * rows * f.trace());
        Memory { starts, p, k, dk, dp, traces, scratch }
    }

    /// All stages of one step from h, and the state after it.
    fn stages<T: Real>(
        self,
        (f, weights): (&impl Dynamics, &Weights<T>),
        input: CellInput<T>,
        delta: impl Fn(usize) -> T,
        [p, k, traces]: [&mut [T]; 3],
        next: &mut [T],
    ) {
        let (tableau, sum) = self.solver.tableau();
        let CellInput { rows, z, h } = input;
        let (s, trace) = (padded(f.width()), rows * f.trace());
        let size = rows * s;
        for (i, row) in tableau.iter().enumerate() {
            let p = &mut p[i * size..][..size];
            combine(p, h, s, &delta, row, k);
            let input = CellInput { rows, z, h: p };
            let (_, k) = k.split_at_mut(i * size);
            f.eval(weights, input, &mut k[..size], &mut traces[i * trace..][..trace]);
        }
        combine(next, h, s, &delta, sum, k);
    }

    /// next `[R, s]` after the time `delta(row)`.
    pub fn forward<T: Real>(
        self,
        (f, weights): (&impl Dynamics, &Weights<T>),
        input: CellInput<T>,
        delta: impl Fn(usize) -> T,
        next: &mut [T],
        scratch: &mut [T],
    ) {
        let Memory { starts, p, k, traces, .. } = self.memory(f, input.rows, scratch);
        let share = T::rounded(1.0 / self.substeps as f64);
        let start = &mut starts[..input.h.len()];
        start.copy_from_slice(input.h);
        for _ in 0..self.substeps {
            let input = CellInput { h: start, ..input };
            self.stages(
                (f, weights),
                input,
                |row| delta(row) * share,
                [&mut *p, &mut *k, &mut *traces],
                next,
            );
            start.copy_from_slice(next);
        }
    }

    /// Given d_next: dh is overwritten, dz added to.
    pub fn backward<T: Real>(
        self,
        (f, weights): (&impl Dynamics, &Weights<T>),
        input: CellInput<T>,
        delta: impl Fn(usize) -> T,
        d_next: &[T],
        to: GradientSums<T>,
        scratch: &mut [T],
    ) {
        let (tableau, sum) = self.solver.tableau();
        let CellInput { rows, z, h } = input;
        let (s, size, trace) = (padded(f.width()), h.len(), rows * f.trace());
        let Memory { starts, p, k, dk, dp, traces, scratch } = self.memory(f, rows, scratch);
        let share = T::rounded(1.0 / self.substeps as f64);
        let delta = |row: usize| delta(row) * share;
        starts[..size].copy_from_slice(h);
        for i in 1..self.substeps {
            let (start, next) = starts[(i - 1) * size..][..2 * size].split_at_mut(size);
            let input = CellInput { rows, z, h: start };
            self.stages((f, weights), input, delta, [&mut *p, &mut *k, &mut *traces], next);
        }
        to.h.copy_from_slice(d_next);
        for i in (0..self.substeps).rev() {
            let input = CellInput { rows, z, h: &starts[i * size..][..size] };
            // The state after the step is not needed: dp has room for it.
            self.stages((f, weights), input, delta, [&mut *p, &mut *k, &mut *traces], dp);
            for (dk, &b) in dk.chunks_exact_mut(size).zip(sum) {
                scaled(dk, to.h, s, |row| delta(row) * T::rounded(b), false);
            }
            for stage in (0..sum.len()).rev() {
                dp.fill(T::ZERO);
                let (earlier, dk) = dk.split_at_mut(stage * size);
                let input = CellInput { rows, z, h: &p[stage * size..][..size] };
                let added = GradientSums { h: &mut *dp, z: &mut *to.z, params: &mut *to.params };
                let trace = &traces[stage * trace..][..trace];
                f.backward(weights, input, trace, &dk[..size], added, scratch);
                scaled(to.h, dp, s, |_| T::rounded(1.0), true);
                for (dk, &a) in earlier.chunks_exact_mut(size).zip(tableau[stage]) {
                    scaled(dk, dp, s, |row| delta(row) * T::rounded(a), true);
                }
            }
        }
    }
}

/// out = h + Δ·Σ_j w_j·k_j.
fn combine<T: Real>(
    out: &mut [T],
    h: &[T],
    s: usize,
    delta: &impl Fn(usize) -> T,
    w: &[f64],
    k: &[T],
) {
    out.copy_from_slice(h);
    for (k, &w) in k.chunks_exact(h.len()).zip(w) {
        scaled(out, k, s, |row| delta(row) * T::rounded(w), true);
    }
}

/// out = c·x or out += c·x, with a factor per row.
fn scaled<T: Real>(out: &mut [T], x: &[T], s: usize, c: impl Fn(usize) -> T, add: bool) {
    for (row, (out, x)) in out.chunks_exact_mut(s).zip(x.chunks_exact(s)).enumerate() {
        let c = c(row);
        for (out, &x) in out.iter_mut().zip(x) {
            *out = if add { *out + c * x } else { c * x };
        }
    }
}
