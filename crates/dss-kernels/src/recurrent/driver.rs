//! Whole sequences through a cell, forward and backward, and single steps.

use super::{Cell, CellGrads, CellInput, CellSizes, Grads, Weights};
use crate::error::{Error, Result, check_len};
use crate::par::{self, Disjoint};
use crate::real::Real;

/// Sequences that go together.
const GROUP: usize = 8;

/// A cell with its parameters.
///
/// ```
/// use dss_kernels::recurrent::{Gru, Recurrent, RecurrentInput};
/// # fn main() -> dss_kernels::Result<()> {
/// let cell = Gru { n: 1 };
/// let params = [0.5, -0.5, 1.0, 0.0, 0.0, 0.1]; // W_hh: [3, 1], b_hh: [3]
/// let model = Recurrent::<_, f64>::new(cell, &params)?;
/// let z = [1.0, 0.0, 2.0, -1.0, 0.5, 1.0]; // two positions of [r, z, n]
/// let input = RecurrentInput { batch: 1, len: 2, z: &z, start: None };
/// let mut y = [0.0; 2];
/// model.forward(&input, &mut y, None)?;
///
/// // One step at a time: the same.
/// let mut state = model.state(1);
/// for (z, y) in z.chunks(3).zip(y) {
///     model.step(1, z, &mut state);
///     assert_eq!(state[0], y);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Recurrent<C, T: Real> {
    cell: C,
    sizes: CellSizes,
    weights: Weights<T>,
}

/// What goes into a pass.
#[derive(Debug, Clone, Copy)]
pub struct RecurrentInput<'a, T> {
    /// B.
    pub batch: usize,
    /// L.
    pub len: usize,
    /// `[B, L, Z]`.
    pub z: &'a [T],
    /// `[B, n]`: the output before the first position; zeros if there is none.
    pub start: Option<&'a [T]>,
}

/// Where the gradients of a pass go; every element is overwritten.
#[derive(Debug)]
pub struct RecurrentGrads<'a, T> {
    /// `[B, L, Z]`.
    pub z: &'a mut [T],
    /// As the parameters.
    pub params: &'a mut [T],
    /// `[B, n]`.
    pub start: Option<&'a mut [T]>,
}

/// Memory of one worker.
struct Scratch<T> {
    z: Vec<T>,
    dz: Vec<T>,
    /// States of a segment: `[period + 1, R, S]`; two of them in a forward pass.
    states: Vec<T>,
    /// Gradients of the state after a step and before it.
    dh: [Vec<T>; 2],
    cell: Vec<T>,
}

impl<T: Real> Scratch<T> {
    fn new(sizes: &CellSizes, steps: usize, kept: usize) -> Self {
        let zeros = |count: usize| vec![T::ZERO; GROUP * count];
        Self {
            z: zeros(sizes.inputs),
            dz: zeros(sizes.inputs),
            states: zeros((steps + 1) * sizes.state),
            dh: [zeros(sizes.state), zeros(sizes.state)],
            cell: zeros(kept * sizes.scratch),
        }
    }
}

/// ⌈√L⌉: how many steps apart the kept states are.
fn period(len: usize) -> usize {
    let mut period = 1;
    while period * period < len {
        period += 1;
    }
    period
}

impl<C: Cell, T: Real> Recurrent<C, T> {
    /// The cell with these parameters: its matrices in their order, then its vectors.
    pub fn new(cell: C, params: &[T]) -> Result<Self> {
        let sizes = cell.sizes();
        check_len("Recurrent::new", "params", "[P]", sizes.parameters(), params.len())?;
        let weights = Weights::new(&sizes, params);
        Ok(Self { cell, sizes, weights })
    }

    /// Its sizes.
    pub fn sizes(&self) -> &CellSizes {
        &self.sizes
    }

    fn check(&self, op: &'static str, input: &RecurrentInput<T>) -> Result<()> {
        let RecurrentInput { batch, len, z, start } = *input;
        if batch == 0 || len == 0 {
            let what = format!("B and L must be at least 1, but are {batch} and {len}");
            return Err(Error::Invalid { op, what });
        }
        check_len(op, "z", "[B, L, Z]", batch * len * self.sizes.inputs, z.len())?;
        let size = batch * self.sizes.outputs;
        start.map_or(Ok(()), |start| check_len(op, "start", "[B, n]", size, start.len()))
    }

    /// The first row and the number of rows of group g.
    fn group(batch: usize, g: usize) -> (usize, usize) {
        (g * GROUP, GROUP.min(batch - g * GROUP))
    }

    /// h `[R, S]` before the first position of the sequences from `first` on.
    fn begin(&self, input: &RecurrentInput<T>, first: usize, h: &mut [T]) {
        let CellSizes { state, outputs, .. } = self.sizes;
        h.fill(T::ZERO);
        if let Some(start) = input.start {
            for (h, start) in h.chunks_exact_mut(state).zip(start.chunks_exact(outputs).skip(first))
            {
                h[..outputs].copy_from_slice(start);
            }
        }
    }

    /// next = f(z of position t, h) for the rows of a group.
    fn advance(
        &self,
        input: &RecurrentInput<T>,
        (first, rows): (usize, usize),
        t: usize,
        states: [&mut [T]; 2],
        (z, scratch): (&mut [T], &mut [T]),
    ) {
        let inputs = self.sizes.inputs;
        for (row, z) in z.chunks_exact_mut(inputs).take(rows).enumerate() {
            z.copy_from_slice(&input.z[((first + row) * input.len + t) * inputs..][..inputs]);
        }
        let [h, next] = states;
        let input = CellInput { rows, z: &z[..rows * inputs], h };
        self.cell.step(&self.weights, input, next, scratch);
    }

    /// y `[B, L, n]`; into `saved`, if it is there, the states that [`Self::backward`] needs.
    pub fn forward(
        &self,
        input: &RecurrentInput<T>,
        y: &mut [T],
        saved: Option<&mut Vec<T>>,
    ) -> Result<()> {
        let op = "Recurrent::forward";
        self.check(op, input)?;
        let RecurrentInput { batch, len, .. } = *input;
        let CellSizes { state, outputs, .. } = self.sizes;
        check_len(op, "y", "[B, L, n]", batch * len * outputs, y.len())?;
        let period = period(len);
        let mut none = Vec::new();
        let keep = saved.is_some();
        let saved = saved.unwrap_or(&mut none);
        if keep {
            saved.resize(len.div_ceil(period) * batch * state, T::ZERO);
        }
        let (y, saved) = (Disjoint::new(y), Disjoint::new(saved));
        self.for_groups(batch, 1, |scratch, (first, rows)| {
            let Scratch { z, states, cell, .. } = scratch;
            let (mut h, mut next) = states[..2 * rows * state].split_at_mut(rows * state);
            self.begin(input, first, h);
            for t in 0..len {
                if keep && t.is_multiple_of(period) {
                    let at = (t / period * batch + first) * state;
                    // SAFETY: rows belong to one group each.
                    unsafe { saved.part(at, rows * state) }.copy_from_slice(h);
                }
                self.advance(input, (first, rows), t, [&mut *h, &mut *next], (z, cell));
                (h, next) = (next, h);
                for (row, h) in h.chunks_exact(state).enumerate() {
                    let at = ((first + row) * len + t) * outputs;
                    // SAFETY: as above.
                    unsafe { y.part(at, outputs) }.copy_from_slice(&h[..outputs]);
                }
            }
        });
        Ok(())
    }

    /// Given dy `[B, L, n]` and what [`Self::forward`] saved.
    pub fn backward(
        &self,
        input: &RecurrentInput<T>,
        saved: &[T],
        dy: &[T],
        grads: RecurrentGrads<T>,
    ) -> Result<()> {
        let op = "Recurrent::backward";
        self.check(op, input)?;
        let RecurrentInput { batch, len, .. } = *input;
        let CellSizes { inputs, state, outputs, .. } = self.sizes;
        let period = period(len);
        check_len(op, "saved", "[√L, B, S]", len.div_ceil(period) * batch * state, saved.len())?;
        check_len(op, "dy", "[B, L, n]", batch * len * outputs, dy.len())?;
        check_len(op, "dz", "[B, L, Z]", batch * len * inputs, grads.z.len())?;
        check_len(op, "d_params", "[P]", self.sizes.parameters(), grads.params.len())?;
        let d_start = grads.start.unwrap_or_default();
        let has_start = !d_start.is_empty();
        if has_start {
            check_len(op, "d_start", "[B, n]", batch * outputs, d_start.len())?;
        }
        let d_start = Disjoint::new(d_start);
        let mut groups: Vec<_> =
            (0..batch.div_ceil(GROUP)).map(|_| Grads::new(&self.sizes)).collect();
        let (dz_all, sums) = (Disjoint::new(grads.z), Disjoint::new(&mut groups));
        self.for_groups(batch, period, |scratch, (first, rows)| {
            let Scratch { z, dz, states, dh, cell } = scratch;
            let scratch_size = cell.len() / if C::KEEPS_SCRATCH { period } else { 1 };
            let scratch_of = |i: usize| if C::KEEPS_SCRATCH { i * scratch_size } else { 0 };
            let [after, before] = dh;
            let size = rows * state;
            let (mut after, mut before) = (&mut after[..size], &mut before[..size]);
            after.fill(T::ZERO);
            // SAFETY: each group has its own sums.
            let sums = &mut unsafe { sums.part(first / GROUP, 1) }[0];
            for begin in (0..len).step_by(period).rev() {
                let steps = period.min(len - begin);
                let at = (begin / period * batch + first) * state;
                states[..size].copy_from_slice(&saved[at..][..size]);
                // Of the last step only what it leaves in its scratch memory is of use.
                for i in 0..steps - usize::from(!C::KEEPS_SCRATCH) {
                    let (h, next) = states[i * size..][..2 * size].split_at_mut(size);
                    let cell = &mut cell[scratch_of(i)..][..scratch_size];
                    self.advance(input, (first, rows), begin + i, [h, next], (z, cell));
                }
                for i in (0..steps).rev() {
                    let t = begin + i;
                    for (row, d) in after.chunks_exact_mut(state).enumerate() {
                        let at = (first + row) * len + t;
                        let dy = &dy[at * outputs..][..outputs];
                        d.iter_mut().zip(dy).for_each(|(d, &dy)| *d += dy);
                        z[row * inputs..][..inputs]
                            .copy_from_slice(&input.z[at * inputs..][..inputs]);
                    }
                    let h = &states[i * size..][..size];
                    let input = CellInput { rows, z: &z[..rows * inputs], h };
                    let grads =
                        CellGrads { z: &mut dz[..rows * inputs], h: before, params: &mut *sums };
                    let cell = &mut cell[scratch_of(i)..][..scratch_size];
                    self.cell.backward(&self.weights, input, after, grads, cell);
                    for (row, dz) in dz[..rows * inputs].chunks_exact(inputs).enumerate() {
                        let at = ((first + row) * len + t) * inputs;
                        // SAFETY: rows belong to one group each.
                        unsafe { dz_all.part(at, inputs) }.copy_from_slice(dz);
                    }
                    (after, before) = (before, after);
                }
            }
            if has_start {
                for (row, d) in after.chunks_exact(state).enumerate() {
                    // SAFETY: as above.
                    unsafe { d_start.part((first + row) * outputs, outputs) }
                        .copy_from_slice(&d[..outputs]);
                }
            }
        });
        grads.params.fill(T::ZERO);
        groups.iter_mut().for_each(|group| group.add_to(grads.params));
        Ok(())
    }

    /// Calls `body` for the rows (first, count) of every group.
    fn for_groups(
        &self,
        batch: usize,
        steps: usize,
        body: impl Fn(&mut Scratch<T>, (usize, usize)) + Sync,
    ) {
        let groups = batch.div_ceil(GROUP);
        let workers = par::workers().min(groups);
        let kept = if C::KEEPS_SCRATCH { steps } else { 1 };
        let make = |_| Scratch::new(&self.sizes, steps, kept);
        let mut scratch: Vec<_> = (0..workers).map(make).collect();
        par::for_each(&mut scratch, groups, |scratch, g| body(scratch, Self::group(batch, g)));
    }

    /// The states `[R, S]` of R streams before their first step.
    pub fn state(&self, rows: usize) -> Vec<T> {
        vec![T::ZERO; rows * self.sizes.state]
    }

    /// The next position of R streams: z `[R, Z]`; `state` `[R, S]` moves on, and its first n numbers are the output.
    ///
    /// # Panics
    /// If the sizes do not fit.
    pub fn step(&self, rows: usize, z: &[T], state: &mut [T]) {
        let mut scratch = vec![T::ZERO; rows * self.sizes.scratch];
        let mut next = vec![T::ZERO; rows * self.sizes.state];
        self.step_with(rows, z, state, &mut next, &mut scratch);
    }

    /// As [`Self::step`], with memory for the next states `[R, S]` and for `scratch` numbers per row of the sizes.
    ///
    /// # Panics
    /// If the sizes do not fit.
    pub fn step_with(
        &self,
        rows: usize,
        z: &[T],
        state: &mut [T],
        next: &mut [T],
        scratch: &mut [T],
    ) {
        assert_eq!((z.len(), state.len()), (rows * self.sizes.inputs, rows * self.sizes.state));
        self.cell.step(&self.weights, CellInput { rows, z, h: state }, next, scratch);
        state.copy_from_slice(next);
    }
}
