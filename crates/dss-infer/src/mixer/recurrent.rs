//! What recurrent nets share: z = W·u + b, a step h ← f(z, h) of `dss_kernels::recurrent`, and what the output is made of.

use dss_format::MixerContext;
use dss_kernels::frozen::{Linear, Scratch, gelu};
use dss_kernels::recurrent::{Cell, Recurrent};

use super::{
    MixerState, SequenceMixer, StateValue, WithBuffers, Workspace, no_step, own_state,
    own_workspace, read_own_state,
};
use crate::arrays::Arrays;
use crate::error::Result;
use crate::linear::LinearWeights;
use crate::state::Bytes;

/// What the shared mixer asks of a kind of recurrent net.
pub(super) trait Net: Send + Sync + 'static {
    type Cell: Cell;

    fn cell(&self) -> Self::Cell;

    /// The parameters of the cell: its matrices, then its vectors.
    fn params(&self) -> Vec<f32>;

    /// z = W·u + b, but for the constants.
    fn input(&self) -> LinearWeights;

    /// Numbers that follow in z, at the first position and at the others.
    fn constants(&self) -> [Vec<f32>; 2] {
        [const { Vec::new() }; 2]
    }

    /// What follows the states; `None`: they are the output.
    fn readout(&self) -> Result<Option<Readout>> {
        Ok(None)
    }

    /// As [`SequenceMixer::set_step`].
    fn set_step(&mut self, _r: f64) -> Result<()> {
        Err(no_step())
    }
}

/// Out(GELU(C·x + D·u)) of a state x.
pub(super) struct Readout {
    c: Linear<f32>,
    d: Vec<f32>,
    out: Linear<f32>,
    glu: bool,
}

impl Readout {
    /// Of C `[H, n]`, the shortcut D `[H]` and the output projection.
    pub(super) fn new(c: &[f32], d: &[f32], out: &LinearWeights, glu: bool) -> Result<Self> {
        let c = Linear::new(c, &vec![0.0; d.len()])?;
        Ok(Self { c, d: d.to_vec(), out: out.map()?, glu })
    }

    fn forward(&self, x: &[f32], u: &[f32], v: &mut [f32], buffers: &mut Buffers) -> Result<()> {
        let h = self.d.len();
        buffers.y.resize(u.len(), 0.0);
        self.c.forward(x, &mut buffers.y, &mut buffers.scratch)?;
        for (y, u) in buffers.y.chunks_exact_mut(h).zip(u.chunks_exact(h)) {
            y.iter_mut().zip(u).zip(&self.d).for_each(|((y, u), d)| *y += u * d);
        }
        gelu(&mut buffers.y);
        if !self.glu {
            return Ok(self.out.forward(&buffers.y, v, &mut buffers.scratch)?);
        }
        buffers.wide.resize(2 * u.len(), 0.0);
        self.out.forward(&buffers.y, &mut buffers.wide, &mut buffers.scratch)?;
        for (v, pair) in v.chunks_exact_mut(h).zip(buffers.wide.chunks_exact(2 * h)) {
            let (a, b) = pair.split_at(h);
            for ((v, a), b) in v.iter_mut().zip(a).zip(b) {
                *v = a / (1.0 + (-b).exp());
            }
        }
        Ok(())
    }
}

pub(super) struct RecurrentMixer<N: Net> {
    net: N,
    context: MixerContext,
    model: Recurrent<N::Cell, f32>,
    input: Linear<f32>,
    constants: [Vec<f32>; 2],
    readout: Option<Readout>,
}

impl<N: Net> RecurrentMixer<N> {
    pub(super) fn new(net: N, context: MixerContext) -> Result<Self> {
        Ok(Self {
            model: Recurrent::new(net.cell(), &net.params())?,
            input: net.input().map()?,
            constants: net.constants(),
            readout: net.readout()?,
            net,
            context,
        })
    }

    /// The next positions of a stream, u `[n, H]` -> v `[n, H]`.
    fn advance(&self, stream: &mut Stream, u: &[f32], v: &mut [f32]) -> Result<()> {
        let Stream { state: NetState { h: state, position }, buffers } = stream;
        let (sizes, rows) = (self.model.sizes(), u.len() / self.context.h);
        let (inputs, outputs) = (self.input.outputs(), sizes.outputs);
        buffers.z.resize(rows * inputs, 0.0);
        self.input.forward(u, &mut buffers.z, &mut buffers.scratch)?;
        buffers.x.resize(rows * outputs, 0.0);
        buffers.next.resize(sizes.state, 0.0);
        buffers.cell.resize(sizes.scratch, 0.0);
        buffers.row.resize(sizes.inputs, 0.0);
        let Buffers { z, x, next, cell, row, .. } = &mut *buffers;
        for (z, x) in z.chunks_exact(inputs).zip(x.chunks_exact_mut(outputs)) {
            row[..inputs].copy_from_slice(z);
            row[inputs..].copy_from_slice(&self.constants[(*position).min(1)]);
            *position += 1;
            self.model.step_with(1, row, state, next, cell);
            x.copy_from_slice(&state[..outputs]);
        }
        let x = std::mem::take(&mut buffers.x);
        match &self.readout {
            Some(readout) => readout.forward(&x, u, v, buffers)?,
            None => v.copy_from_slice(&x),
        }
        buffers.x = x;
        Ok(())
    }

    fn stream(&self, scratch: Scratch<f32>) -> Stream {
        let state = NetState { h: self.model.state(1), position: 0 };
        Stream { state, buffers: Buffers { scratch, ..Buffers::default() } }
    }
}

/// Memory of a pass, which is made at the first one of its size.
#[derive(Default)]
struct Buffers {
    z: Vec<f32>,
    x: Vec<f32>,
    y: Vec<f32>,
    wide: Vec<f32>,
    next: Vec<f32>,
    cell: Vec<f32>,
    row: Vec<f32>,
    scratch: Scratch<f32>,
}

/// What a stream remembers.
#[derive(Debug, Clone, PartialEq)]
struct NetState {
    h: Vec<f32>,
    position: usize,
}

type Stream = WithBuffers<NetState, Buffers>;

impl StateValue for NetState {
    fn reset(&mut self) {
        self.h.fill(0.0);
        self.position = 0;
    }
}

impl<N: Net> SequenceMixer for RecurrentMixer<N> {
    fn workspace(&self, l: usize) -> Result<Workspace> {
        Ok(Box::new(self.stream(Scratch::parallel(l))))
    }

    fn mix(&self, _: &[f32], workspace: &mut Workspace, u: &[f32], v: &mut [f32]) -> Result<()> {
        let stream: &mut Stream = own_workspace(workspace);
        StateValue::reset(stream);
        self.advance(stream, u, v)
    }

    fn state(&self) -> Result<Box<dyn MixerState>> {
        Ok(Box::new(self.stream(Scratch::new(1))))
    }

    fn run(&self, state: &mut dyn MixerState, u: &[f32], v: &mut [f32]) -> Result<()> {
        self.advance(own_state(state), u, v)
    }

    fn write_state(&self, state: &dyn MixerState, bytes: &mut Vec<u8>) -> Result<()> {
        let Stream { state, .. } = read_own_state(state);
        bytes.extend(state.h.iter().flat_map(|x| x.to_le_bytes()));
        Ok(())
    }

    fn read_state(&self, position: usize, bytes: &mut Bytes<'_>) -> Result<Box<dyn MixerState>> {
        let mut stream = self.stream(Scratch::new(1));
        stream.state.position = position;
        for x in &mut stream.state.h {
            *x = bytes.f32()?;
        }
        Ok(Box::new(stream))
    }

    fn set_step(&mut self, r: f64) -> Result<()> {
        self.net.set_step(r)?;
        self.context = self.context.at_step(r);
        self.model = Recurrent::new(self.net.cell(), &self.net.params())?;
        self.input = self.net.input().map()?;
        self.constants = self.net.constants();
        Ok(())
    }
}

/// D and the output projection.
pub(super) fn d_and_out(arrays: &mut Arrays<'_>) -> (Vec<f32>, LinearWeights) {
    (arrays.take("d"), arrays.linear("out"))
}
