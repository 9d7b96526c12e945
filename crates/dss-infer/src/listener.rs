//! An endless input: one stream that reads everything, or staggered streams that each read a window of it.

use crate::error::{Error, Result};
use crate::model::{Input, Model};
use crate::state::{State, check_sealed, seal};

/// How long each of the staggered streams of a [`Listener`] lasts, and how often one begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Positions that a stream hears.
    pub length: usize,
    /// Positions between the beginnings of two streams; a window is a whole number of hops.
    pub hop: usize,
}

/// Listens for as long as input comes, in constant memory.
///
/// Without a window it is a single stream. With one, a stream begins every `hop` positions and ends after `length`; the
/// oldest one answers. It has heard between `length − hop` and `length` positions, and exactly the last `length` after
/// each whole hop. That is how a model listens that ends at its training length, or that averages over all it hears.
#[derive(Debug, Clone)]
pub struct Listener {
    window: Option<Window>,
    /// With a window, the stream of slot k begins at k·hop, and again after every `length` positions.
    streams: Vec<State>,
    position: u64,
}

/// What the bytes of a listener with a window begin with.
const MAGIC: &[u8; 8] = b"dsswindo";
/// Their layout.
const VERSION: u32 = 1;

impl Listener {
    /// The most streams at a time.
    pub const MAX_STREAMS: usize = 64;

    /// A listener that has heard nothing.
    ///
    /// # Errors
    /// If the model cannot stream, the window is longer than it can run, or not 1 to [`Self::MAX_STREAMS`] hops long.
    pub fn new(model: &Model, window: Option<Window>) -> Result<Self> {
        if let Some(Window { length, hop }) = window {
            let count = length.checked_div(hop).unwrap_or(0);
            let most = Self::MAX_STREAMS;
            if !(1..=most).contains(&count) || count * hop != length {
                return Err(Error::input(format!(
                    "the window must be a whole number of hops, 1 to {most}, but is {length} positions with hops of {hop}"
                )));
            }
            model.check_steps(0, length)?;
        }
        let count = window.map_or(1, |window| window.length / window.hop);
        Ok(Self { window, streams: vec![model.state()?; count], position: 0 })
    }

    /// Positions heard so far.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Takes the next positions, any number of them. `out` gets the answer after the last one: `[O]`, or nothing if it
    /// is empty.
    ///
    /// # Errors
    /// As [`Model::block_step`].
    pub fn push(&mut self, model: &Model, input: Input<'_>, out: &mut [f32]) -> Result<()> {
        let (count, mut done) = (model.check_input(input)?, 0);
        while done < count {
            let room =
                self.window.map_or(count, |w| w.hop - (self.position % w.hop as u64) as usize);
            let size = room.min(count - done);
            let last = done + size == count;
            self.advance(model, model.part(input, done, size), if last { out } else { &mut [] })?;
            self.position += size as u64;
            done += size;
        }
        Ok(())
    }

    /// Positions within one hop.
    fn advance(&mut self, model: &Model, input: Input<'_>, out: &mut [f32]) -> Result<()> {
        let Some(Window { length, hop }) = self.window else {
            return model.block_step(&mut self.streams[0], input, out);
        };
        let (slots, hops) = (self.streams.len() as u64, self.position / hop as u64);
        let oldest = if hops < slots { 0 } else { (hops + 1) % slots } as usize;
        let begun = self.begun();
        for (slot, state) in self.streams.iter_mut().enumerate().take(begun) {
            if self.position % length as u64 == (slot * hop) as u64 {
                state.reset();
            }
            let wanted = if slot == oldest { &mut *out } else { &mut [] };
            model.block_step(state, input, wanted)?;
        }
        Ok(())
    }

    /// Slots whose first stream has begun, or begins with the next position.
    fn begun(&self) -> usize {
        let hops = self.window.map_or(0, |window| self.position / window.hop as u64);
        self.streams.len().min((hops as usize).saturating_add(1))
    }

    /// What it remembers as bytes, with a mark of the model and a checksum. Without a window, those of its [`State`].
    ///
    /// # Errors
    /// As [`State::to_bytes`].
    pub fn to_bytes(&self, model: &Model) -> Result<Vec<u8>> {
        let Some(Window { length, hop }) = self.window else {
            return self.streams[0].to_bytes(model);
        };
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(
            [length as u64, hop as u64, self.position].map(u64::to_le_bytes).as_flattened(),
        );
        for state in &self.streams[..self.begun()] {
            let state = state.to_bytes(model)?;
            bytes.extend((state.len() as u64).to_le_bytes());
            bytes.extend(state);
        }
        Ok(seal(bytes))
    }

    /// The listener of such bytes.
    ///
    /// # Errors
    /// If they are not whole, of another model, or of another window.
    pub fn from_bytes(model: &Model, window: Option<Window>, bytes: &[u8]) -> Result<Self> {
        let mut listener = Self::new(model, window)?;
        let wrong = |what: &str| Error::State(what.into());
        let windowed = bytes.starts_with(MAGIC);
        let Some(Window { length, hop }) = window else {
            if windowed {
                return Err(wrong("it was saved by a stream with a window"));
            }
            listener.streams[0] = State::from_bytes(model, bytes)?;
            listener.position = listener.streams[0].position();
            return Ok(listener);
        };
        if !windowed {
            return Err(wrong("it was not saved by a stream with a window"));
        }
        let mut rest = check_sealed(bytes, MAGIC, VERSION)?;
        let (saved_length, saved_hop) = (rest.u64()?, rest.u64()?);
        if (saved_length, saved_hop) != (length as u64, hop as u64) {
            let what = format!(
                "it has a window of {saved_length} positions with hops of {saved_hop}, not of {length} with hops of {hop}"
            );
            return Err(Error::State(what));
        }
        listener.position = rest.u64()?;
        let begun = listener.begun();
        for (slot, state) in listener.streams.iter_mut().enumerate().take(begun) {
            let size = rest.u64()?;
            *state = State::from_bytes(model, rest.slice(size)?)?;
            // A stream has heard a whole window until the next position begins another one.
            let heard = listener.position - (slot * hop) as u64;
            let heard = if heard == 0 { 0 } else { (heard - 1) % length as u64 + 1 };
            if state.position() != heard {
                return Err(wrong("its streams do not belong together"));
            }
        }
        if rest.is_empty() { Ok(listener) } else { Err(wrong("it is too long")) }
    }
}
