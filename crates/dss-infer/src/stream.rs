//! Streams: one position at a time, several at once, or one position of several streams.

use dss_format::{OutputKind, Pool};
use dss_kernels::frozen;

use crate::error::{Error, Result};
use crate::linear::RowBuffers;
use crate::model::{Input, Model};
use crate::state::State;

/// Buffers of a step; they belong to a state, but it does not remember them.
#[derive(Default)]
pub(crate) struct StepBuffers {
    /// `[rows, H]` each.
    x: Vec<f32>,
    u: Vec<f32>,
    v: Vec<f32>,
    rows: usize,
    buffers: Option<RowBuffers>,
}

impl StepBuffers {
    pub(crate) fn new(rows: usize, h: usize) -> Self {
        let mut scratch = Self::default();
        scratch.fit(rows, h);
        scratch
    }

    /// Makes room for so many rows; nothing is allocated the second time.
    fn fit(&mut self, rows: usize, h: usize) {
        if rows > self.rows {
            for buffer in [&mut self.x, &mut self.u, &mut self.v] {
                buffer.resize(rows * h, 0.0);
            }
            self.rows = rows;
            self.buffers = Some(RowBuffers::new(frozen::Scratch::new(rows)));
        }
    }
}

/// A copy has buffers of its own, for single steps.
impl Clone for StepBuffers {
    fn clone(&self) -> Self {
        let h = self.x.len() / self.rows.max(1);
        Self::new(1, h)
    }
}

impl std::fmt::Debug for StepBuffers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StepBuffers").field("rows", &self.rows).finish_non_exhaustive()
    }
}

/// The rows of a call: positions of one stream, or one of each of several streams.
enum StreamRows<'a> {
    Positions(&'a mut State, usize),
    Streams(&'a mut [State]),
}

impl Model {
    /// Takes the next position of a stream, and writes what the model says about everything so far to `out`: `[O]`, or
    /// nothing if it is empty.
    ///
    /// Of a model with one answer per sequence that is the answer for the sequence up to here: a mean over positions is
    /// kept as it grows. Nothing is allocated.
    ///
    /// # Errors
    /// If the input is not one position of finite numbers or known tokens, or the model ends here ([`Error::PastEnd`]):
    /// the state is then as before. After [`Error::Overflow`] the state has to be reset.
    pub fn step(&self, state: &mut State, input: Input<'_>, out: &mut [f32]) -> Result<()> {
        self.step_batch(std::slice::from_mut(state), input, out)
    }

    /// One position of each of B streams, each at a place of its own: `out` is `[B, O]`, or empty.
    ///
    /// # Errors
    /// As [`Self::step`]. After [`Error::Overflow`] the other streams have moved on as if nothing had happened; those to
    /// be reset say so with their next step.
    pub fn step_batch(
        &self,
        states: &mut [State],
        input: Input<'_>,
        out: &mut [f32],
    ) -> Result<()> {
        let (positions, streams) = (self.check_input(input)?, states.len());
        if positions != streams {
            let what = format!("{streams} streams take {streams} positions, but got {positions}");
            return Err(Error::input(what));
        }
        if !out.is_empty() && out.len() != streams * self.outputs() {
            return Err(self.wrong_out(streams, out.len()));
        }
        for state in &*states {
            self.check_state(state)?;
            self.check_steps(state.position, 1)?;
        }
        if states.is_empty() {
            return Ok(());
        }
        let mut scratch = std::mem::take(&mut states[0].scratch);
        let result = self.advance(StreamRows::Streams(states), input, out, &mut scratch);
        states[0].scratch = scratch;
        result
    }

    /// The next n positions of a stream at once: the same as n steps, bit for bit, in a fraction of the time. `out` gets
    /// what the model says at the last of these positions: as many as it has room for, `[k, O]`, k from 0 to n.
    ///
    /// Nothing is allocated once a call of this size was made.
    ///
    /// # Errors
    /// As [`Self::step`].
    pub fn block_step(&self, state: &mut State, input: Input<'_>, out: &mut [f32]) -> Result<()> {
        let positions = self.check_input(input)?;
        let wanted = out.len() / self.outputs();
        if wanted > positions || wanted * self.outputs() != out.len() {
            return Err(self.wrong_out(positions, out.len()));
        }
        self.check_state(state)?;
        self.check_steps(state.position, positions)?;
        if positions == 0 {
            return Ok(());
        }
        let mut scratch = std::mem::take(&mut state.scratch);
        let result =
            self.advance(StreamRows::Positions(state, positions), input, out, &mut scratch);
        state.scratch = scratch;
        result
    }

    fn wrong_out(&self, rows: usize, got: usize) -> Error {
        let outputs = self.outputs();
        Error::input(format!(
            "the output must have room for at most {rows} rows of {outputs} numbers, whole ones, but has {got} numbers"
        ))
    }

    fn advance(
        &self,
        mut rows: StreamRows<'_>,
        input: Input<'_>,
        out: &mut [f32],
        scratch: &mut StepBuffers,
    ) -> Result<()> {
        let (numbers, h) = (&self.numbers, self.config().h);
        let count = match &rows {
            StreamRows::Positions(_, count) => *count,
            StreamRows::Streams(states) => states.len(),
        };
        scratch.fit(count, h);
        let StepBuffers { x, u, v, buffers, .. } = scratch;
        let buffers = buffers.as_mut().expect("made for at least one row");
        let (x, u, v) = (&mut x[..count * h], &mut u[..count * h], &mut v[..count * h]);
        self.encode(input, x, &mut buffers.scratch)?;
        for (row, x) in x.chunks_exact_mut(h).enumerate() {
            numbers.positions.add(rows.position(row), x);
        }
        for (i, layer) in numbers.layers.iter().enumerate() {
            layer.before(x, u, &mut buffers.scratch);
            rows.check(u, h);
            match &mut rows {
                StreamRows::Positions(state, _) => layer.mixer.run(&mut *state.layers[i], u, v)?,
                StreamRows::Streams(states) => layer.mixer.step(states, i, u, v)?,
            }
            layer.after(x, u, v, buffers)?;
        }
        rows.check(x, h);
        numbers.norm.forward(x, h, u, &mut buffers.scratch);
        self.finish(&mut rows, u, v, out, buffers)?;
        rows.check(out, self.outputs());
        if rows.any_broken() { Err(Error::Overflow) } else { Ok(()) }
    }

    /// Moves the positions on and makes the outputs of the activations `[rows, H]`.
    fn finish(
        &self,
        rows: &mut StreamRows<'_>,
        x: &[f32],
        pooled: &mut [f32],
        out: &mut [f32],
        buffers: &mut RowBuffers,
    ) -> Result<()> {
        let h = self.config().h;
        let mean = matches!(self.meta().io.output, OutputKind::Sequence { .. })
            && self.config().pool == Pool::Mean;
        let count = x.len() / h;
        for (row, (x, pooled)) in x.chunks_exact(h).zip(pooled.chunks_exact_mut(h)).enumerate() {
            let state = rows.state(row);
            state.position += 1;
            if mean {
                let share = 1.0 / state.position as f64;
                for ((sum, &x), pooled) in state.sum.iter_mut().zip(x).zip(pooled) {
                    *sum += f64::from(x);
                    *pooled = (*sum * share) as f32;
                }
            }
        }
        let wanted = out.len() / self.outputs();
        let from = if mean { pooled } else { x };
        if wanted > 0 {
            self.numbers.head.forward(&from[(count - wanted) * h..count * h], out, buffers)?;
        }
        Ok(())
    }
}

impl StreamRows<'_> {
    /// The stream of a row.
    fn state(&mut self, row: usize) -> &mut State {
        match self {
            Self::Positions(state, _) => state,
            Self::Streams(states) => &mut states[row],
        }
    }

    /// How many positions there are before a row.
    fn position(&self, row: usize) -> usize {
        match self {
            Self::Positions(state, _) => state.position as usize + row,
            Self::Streams(states) => states[row].position as usize,
        }
    }

    /// Marks the streams of rows `[.., width]` that have left the range of numbers, and gives them zeros to continue with.
    fn check(&mut self, x: &mut [f32], width: usize) {
        if x.iter().all(|x| x.is_finite()) {
            return;
        }
        for (row, x) in x.chunks_exact_mut(width).enumerate() {
            if x.iter().any(|x| !x.is_finite()) {
                self.state(row).broken = true;
                x.fill(0.0);
            }
        }
    }

    fn any_broken(&self) -> bool {
        match self {
            Self::Positions(state, _) => state.broken,
            Self::Streams(states) => states.iter().any(|state| state.broken),
        }
    }
}
