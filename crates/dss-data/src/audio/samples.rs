//! From bytes to samples, whole steps at a time.

/// How samples are written, little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// One byte, 128 for silence.
    U8,
    /// Whole numbers of two bytes.
    S16,
    /// Whole numbers of three bytes.
    S24,
    /// Whole numbers of four bytes.
    S32,
    /// Floats of four bytes.
    F32,
}

impl Coding {
    fn width(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::S16 => 2,
            Self::S24 => 3,
            Self::S32 | Self::F32 => 4,
        }
    }

    /// Bits of a sample.
    pub(super) fn bits(self) -> u32 {
        8 * self.width() as u32
    }

    /// A sample from -1 to 1.
    fn sample(self, bytes: &[u8]) -> f32 {
        // On top of zeros the bytes are the value times 2^31.
        let mut four = [0; 4];
        four[4 - bytes.len()..].copy_from_slice(bytes);
        match self {
            Self::U8 => (f32::from(bytes[0]) - 128.0) / 128.0,
            Self::F32 => f32::from_le_bytes(four),
            _ => (f64::from(i32::from_le_bytes(four)) / 2f64.powi(31)) as f32,
        }
    }
}

/// Samples of some channels, as their bytes arrive.
#[derive(Clone, Debug)]
pub(super) struct Samples {
    coding: Coding,
    channels: usize,
    /// Bytes of a step that is not complete.
    pending: Vec<u8>,
    count: u64,
}

impl Samples {
    pub(super) fn new(coding: Coding, channels: usize) -> Self {
        Self { coding, channels, pending: Vec::new(), count: 0 }
    }

    /// Adds the samples of all whole steps to `out`.
    pub(super) fn push(&mut self, bytes: &[u8], out: &mut Vec<f32>) -> Result<(), String> {
        self.pending.extend_from_slice(bytes);
        let step = self.coding.width() * self.channels;
        let whole = self.pending.len() / step * step;
        for bytes in self.pending[..whole].chunks_exact(self.coding.width()) {
            let sample = self.coding.sample(bytes);
            if !sample.is_finite() {
                return Err(format!("sample {} is {sample}", self.count));
            }
            self.count += 1;
            out.push(sample);
        }
        self.pending.drain(..whole);
        Ok(())
    }

    /// At the end of the bytes: checks that no step is incomplete.
    pub(super) fn finish(&self) -> Result<(), String> {
        let step = self.coding.width() * self.channels;
        match self.pending.is_empty() {
            true => Ok(()),
            false => {
                Err(format!("cut short: the bytes of the samples are not a multiple of {step}"))
            }
        }
    }
}
