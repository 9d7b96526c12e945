//! What a stream remembers: a value.

use crate::error::{Error, Result};
use crate::hash::Hash;
use crate::mixer::MixerState;
use crate::model::Model;
use crate::stream::StepBuffers;

/// The state of one stream: everything that the past matters for. With a state space, its size does not depend on the
/// length of the stream.
///
/// Cloning it forks the stream. [`Self::to_bytes`] and [`Self::from_bytes`] carry it elsewhere, to the same bits.
#[derive(Debug, Clone)]
pub struct State {
    pub(crate) position: u64,
    pub(crate) layers: Vec<Box<dyn MixerState>>,
    /// `[H]`: the sum of the activations before the head, for the running mean.
    pub(crate) sum: Vec<f64>,
    /// Of the model.
    pub(crate) hash: u64,
    /// The numbers left their range; nothing can be said until it is reset.
    pub(crate) broken: bool,
    pub(crate) scratch: StepBuffers,
}

/// The values count; the buffers do not.
impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        let values = |s: &Self| (s.position, s.hash, s.broken);
        values(self) == values(other) && self.layers == other.layers && self.sum == other.sum
    }
}

/// What the bytes of a state begin with.
const MAGIC: &[u8; 8] = b"dssstate";
/// Their layout.
const VERSION: u32 = 3;

impl Model {
    /// The state before the first position.
    ///
    /// # Errors
    /// [`Error::CannotStream`] if the model takes whole sequences only.
    pub fn state(&self) -> Result<State> {
        self.check_stream()?;
        let h = self.config().h;
        let layers = self.numbers.layers.iter().map(|layer| layer.mixer.state());
        Ok(State {
            position: 0,
            layers: layers.collect::<Result<_>>()?,
            sum: vec![0.0; h],
            hash: self.hash,
            broken: false,
            scratch: StepBuffers::new(1, h),
        })
    }
}

impl State {
    /// Positions taken so far.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// As before the first position.
    pub fn reset(&mut self) {
        self.position = 0;
        self.broken = false;
        self.sum.fill(0.0);
        self.layers.iter_mut().for_each(|state| state.reset());
    }

    /// The state as bytes, with a mark of the model and a checksum.
    ///
    /// # Errors
    /// If it is a state of another model, or one whose numbers have overflowed.
    pub fn to_bytes(&self, model: &Model) -> Result<Vec<u8>> {
        model.check_state(self)?;
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(self.hash.to_le_bytes());
        bytes.extend(self.position.to_le_bytes());
        bytes.extend(self.sum.iter().flat_map(|x| x.to_le_bytes()));
        for (layer, state) in model.numbers.layers.iter().zip(&self.layers) {
            layer.mixer.write_state(&**state, &mut bytes)?;
        }
        Ok(seal(bytes))
    }

    /// The state of such bytes.
    ///
    /// # Errors
    /// If they are not whole, or of another model.
    pub fn from_bytes(model: &Model, bytes: &[u8]) -> Result<Self> {
        let wrong = |what: &str| Error::State(what.into());
        let mut state = model.state()?;
        let mut rest = check_sealed(bytes, MAGIC, VERSION)?;
        if rest.take() != Some(model.hash.to_le_bytes()) {
            return Err(wrong("it was saved by a different model"));
        }
        state.position = rest.u64()?;
        for x in &mut state.sum {
            *x = rest.f64()?;
        }
        let position = usize::try_from(state.position).ok().filter(|at| *at <= usize::MAX / 2);
        let position = position.ok_or_else(|| wrong("it is of a longer stream"))?;
        for (layer, state) in model.numbers.layers.iter().zip(&mut state.layers) {
            *state = layer.mixer.read_state(position, &mut rest)?;
        }
        if !rest.is_empty() {
            return Err(wrong("it is too long"));
        }
        Ok(state)
    }
}

impl Model {
    /// The state is one of this model, and sound.
    pub(crate) fn check_state(&self, state: &State) -> Result<()> {
        if state.hash != self.hash {
            return Err(Error::State("it belongs to another one".into()));
        }
        if state.broken { Err(Error::Overflow) } else { Ok(()) }
    }
}

/// The bytes with their checksum behind them.
pub(crate) fn seal(mut bytes: Vec<u8>) -> Vec<u8> {
    let mut sum = Hash::new();
    sum.bytes(&bytes);
    bytes.extend(sum.0.to_le_bytes());
    bytes
}

/// What follows the beginning of [`seal`]ed bytes, if this is it and they are whole.
pub(crate) fn check_sealed<'a>(
    bytes: &'a [u8],
    magic: &[u8; 8],
    version: u32,
) -> Result<Bytes<'a>> {
    let wrong = |what: &str| Error::State(what.into());
    let (content, checksum) = bytes.split_last_chunk().ok_or_else(|| wrong("too short"))?;
    let mut sum = Hash::new();
    sum.bytes(content);
    let mut rest = Bytes(content);
    if rest.take() != Some(*magic) {
        return Err(wrong("it is not a state file"));
    }
    let found = rest.take().map(u32::from_le_bytes).ok_or_else(|| wrong("too short"))?;
    if found != version {
        let what = format!("its version is {found}, but this program reads version {version}");
        return Err(Error::State(what));
    }
    if sum.0 != u64::from_le_bytes(*checksum) {
        return Err(wrong("it is damaged"));
    }
    Ok(rest)
}

/// Bytes that are left to read.
pub(crate) struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next `size` bytes.
    pub(crate) fn slice(&mut self, size: u64) -> Result<&'a [u8]> {
        let split = usize::try_from(size).ok().and_then(|size| self.0.split_at_checked(size));
        let (first, rest) = split.ok_or_else(|| Error::State("it is too short".into()))?;
        self.0 = rest;
        Ok(first)
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn expect<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.take().ok_or_else(|| Error::State("it is too short".into()))
    }

    pub(crate) fn u64(&mut self) -> Result<u64> {
        self.expect().map(u64::from_le_bytes)
    }

    /// A finite number.
    pub(crate) fn f32(&mut self) -> Result<f32> {
        self.expect().map(f32::from_le_bytes).and_then(|x| finite(x, x.is_finite()))
    }

    /// A finite number.
    pub(crate) fn f64(&mut self) -> Result<f64> {
        self.expect().map(f64::from_le_bytes).and_then(|x| finite(x, x.is_finite()))
    }
}

fn finite<T: std::fmt::Display>(x: T, is_finite: bool) -> Result<T> {
    if is_finite { Ok(x) } else { Err(Error::State(format!("it has the number {x}"))) }
}
