//! Samples out of bytes: a WAV file as it arrives, or raw samples.

/// How samples are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    U8,
    /// Little-endian whole numbers of so many bytes.
    Int(usize),
    Float,
}

impl Coding {
    fn width(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::Int(width) => width,
            Self::Float => 4,
        }
    }

    fn sample(self, bytes: &[u8]) -> f32 {
        let mut four = [0; 4];
        four[4 - bytes.len()..].copy_from_slice(bytes);
        match self {
            Self::U8 => (f32::from(bytes[0]) - 128.0) / 128.0,
            Self::Int(_) => (f64::from(i32::from_le_bytes(four)) / 2f64.powi(31)) as f32,
            Self::Float => f32::from_le_bytes(four),
        }
    }
}

/// Samples of several channels, as they arrive.
pub struct Samples {
    coding: Coding,
    channels: usize,
    /// Bytes of samples that are still to come; `None`: all that come.
    left: Option<u64>,
    pending: Vec<u8>,
    count: u64,
}

impl Samples {
    /// Raw samples of 16 bits.
    pub fn s16le() -> Self {
        Self::new(Coding::Int(2), 1, None)
    }

    /// Raw floats.
    pub fn f32le() -> Self {
        Self::new(Coding::Float, 1, None)
    }

    fn new(coding: Coding, channels: usize, left: Option<u64>) -> Self {
        Self { coding, channels, left, pending: Vec::new(), count: 0 }
    }

    /// Takes bytes and calls `each` with the mean of the channels of every step.
    pub fn push(&mut self, bytes: &[u8], mut each: impl FnMut(f32)) -> Result<(), String> {
        let bytes = match &mut self.left {
            Some(left) => {
                let count = (*left).min(bytes.len() as u64);
                *left -= count;
                &bytes[..count as usize]
            }
            None => bytes,
        };
        self.pending.extend_from_slice(bytes);
        let (width, channels) = (self.coding.width(), self.channels);
        let whole = self.pending.len() / (width * channels) * (width * channels);
        for step in self.pending[..whole].chunks_exact(width * channels) {
            let sum: f32 = step.chunks_exact(width).map(|x| self.coding.sample(x)).sum();
            let mean = sum / channels as f32;
            if !mean.is_finite() {
                return Err(format!("sample {} is {mean}", self.count));
            }
            self.count += 1;
            each(mean);
        }
        self.pending.drain(..whole);
        Ok(())
    }

    /// At the end of the bytes: nothing may be missing.
    pub fn finish(&self) -> Result<(), String> {
        if !self.pending.is_empty() || self.left.is_some_and(|left| left > 0) {
            return Err("cut short: the last samples are missing".into());
        }
        Ok(())
    }
}

/// What a WAV file's header says.
pub struct Wav {
    pub samples: Samples,
    pub rate: f64,
    /// Where the samples begin.
    pub start: usize,
}

/// Reads the header of a WAV file; `None`: more bytes are needed.
pub fn wav(bytes: &[u8]) -> Result<Option<Wav>, String> {
    if bytes.len() < 12 {
        return Ok(None);
    }
    if &bytes[..4] != b"RIFF" || &bytes[8..12] != b"WAVE" {
        return Err("not a WAV file".into());
    }
    let mut at = 12;
    let mut format: Option<(Coding, usize, f64)> = None;
    loop {
        let Some(head) = bytes.get(at..at + 8) else { return Ok(None) };
        let size = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
        let start = at + 8;
        if &head[..4] == b"data" {
            let (coding, channels, rate) = format.ok_or("the samples come before their format")?;
            // A file that was written to a pipe does not know its size.
            let left = (size != u32::MAX && size != 0).then_some(u64::from(size));
            return Ok(Some(Wav { samples: Samples::new(coding, channels, left), rate, start }));
        }
        if size > 1 << 20 {
            return Err("its header is damaged: a part before the samples has over 1 MB".into());
        }
        let end = start + size as usize + size as usize % 2;
        if bytes.len() < end {
            return Ok(None);
        }
        if &head[..4] == b"fmt " {
            format = Some(read_format(&bytes[start..start + size as usize])?);
        }
        at = end;
    }
}

fn read_format(chunk: &[u8]) -> Result<(Coding, usize, f64), String> {
    if chunk.len() < 16 {
        return Err("its header is too short".into());
    }
    let short = |at: usize| u16::from_le_bytes([chunk[at], chunk[at + 1]]);
    let code = match short(0) {
        0xfffe if chunk.len() >= 26 => short(24),
        code => code,
    };
    let rate = u32::from_le_bytes([chunk[4], chunk[5], chunk[6], chunk[7]]);
    let (channels, bits) = (usize::from(short(2)), short(14));
    let coding = match (code, bits) {
        (1, 8) => Coding::U8,
        (1, 16 | 24 | 32) => Coding::Int(usize::from(bits) / 8),
        (3, 32) => Coding::Float,
        _ => return Err(format!("samples of format {code} with {bits} bits are not read")),
    };
    if channels == 0 || rate == 0 {
        return Err("its header says 0 channels or 0 samples per second".into());
    }
    Ok((coding, channels, rate.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(code: u16, channels: u16, rate: u32, bits: u16, size: u32) -> Vec<u8> {
        let mut bytes = b"RIFF\0\0\0\0WAVELIST\x03\0\0\0abc\0fmt \x10\0\0\0".to_vec();
        bytes.extend(code.to_le_bytes());
        bytes.extend(channels.to_le_bytes());
        bytes.extend(rate.to_le_bytes());
        bytes.extend([0; 6]);
        bytes.extend(bits.to_le_bytes());
        bytes.extend(b"data");
        bytes.extend(size.to_le_bytes());
        bytes
    }

    fn samples(mut samples: Samples, bytes: &[u8], piece: usize) -> Vec<f32> {
        let mut found = Vec::new();
        for part in bytes.chunks(piece) {
            samples.push(part, |x| found.push(x)).unwrap();
        }
        samples.finish().unwrap();
        found
    }

    #[test]
    fn headers_in_pieces_and_samples_in_pieces() {
        let head = header(1, 2, 8000, 16, 8);
        for end in 0..head.len() {
            assert!(wav(&head[..end]).unwrap().is_none(), "{end}");
        }
        let data = [0, 0x40, 0, 0x40, 0, 0x80, 0, 0];
        for piece in 1..8 {
            let found = wav(&head).unwrap().unwrap();
            assert_eq!((found.rate, found.start), (8000.0, head.len()));
            assert_eq!(samples(found.samples, &data, piece), [0.5, -0.5]);
        }
        // What follows the samples is not sound.
        let mut found = wav(&head).unwrap().unwrap().samples;
        let mut count = 0;
        found.push(&[data, [9; 8]].concat(), |_| count += 1).unwrap();
        assert_eq!(count, 2);
        assert!(wav(&header(1, 1, 8000, 16, 4)).unwrap().unwrap().samples.finish().is_err());
    }

    #[test]
    fn codings() {
        let one = |code, bits, data: &[u8]| {
            let found = wav(&header(code, 1, 1, bits, data.len() as u32)).unwrap().unwrap();
            samples(found.samples, data, 1)
        };
        assert_eq!(one(1, 8, &[0, 128, 192]), [-1.0, 0.0, 0.5]);
        assert_eq!(one(1, 24, &[0, 0, 0x40]), [0.5]);
        assert_eq!(one(1, 32, &[0, 0, 0, 0xc0]), [-0.5]);
        assert_eq!(one(3, 32, &0.25f32.to_le_bytes()), [0.25]);
        assert!(Samples::f32le().push(&f32::NAN.to_le_bytes(), |_| {}).is_err());
        assert!(wav(&header(1, 1, 1, 12, 2)).is_err() && wav(&header(1, 0, 1, 16, 2)).is_err());
        assert!(wav(b"RIFF1234AVI and more").is_err());
    }
}
