//! Sound files: WAV (PCM or float) and FLAC.
//!
//! ```
//! # fn main() -> dss_data::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let path = dir.path().join("word.wav");
//! # let mut wav = b"RIFF\x28\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x80\x3e\0\0\0\x7d\0\0\x02\0\x10\0".to_vec();
//! # wav.extend(b"data\x04\0\0\0\0\x40\0\x80");
//! # std::fs::write(&path, wav).unwrap();
//! let audio = dss_data::audio::read(&path)?;
//! assert_eq!((audio.rate, audio.channels, audio.bits), (16_000, 1, 16));
//! assert_eq!(audio.samples, [0.5, -1.0]);
//! # Ok(())
//! # }
//! ```

mod flac;
mod samples;
mod wav;

use std::path::Path;

pub use self::samples::Coding;
use self::samples::Samples;
use self::wav::WavReader;
use crate::{Error, Result, io};

/// The most samples of a file, all channels together: over an hour at 16 kHz.
const SAMPLES: usize = 1 << 26;
/// The most bytes of a FLAC file, which is decoded once it is complete.
const FLAC_BYTES: usize = 1 << 28;

/// The format of the samples of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoundFormat {
    /// Steps per second.
    pub rate: u32,
    /// Samples per step.
    pub channels: usize,
    /// Bits per sample.
    pub bits: u32,
}

/// Decoded sound.
#[derive(Clone, Debug, PartialEq)]
pub struct Audio {
    /// Steps per second.
    pub rate: u32,
    /// Samples per step.
    pub channels: usize,
    /// Bits per sample, as they were stored.
    pub bits: u32,
    /// From -1 to 1, `[len, channels]`, channels innermost.
    pub samples: Vec<f32>,
}

impl Audio {
    /// The mean of the channels of every step.
    pub fn mono(&self) -> Vec<f32> {
        mono(&self.samples, self.channels).collect()
    }
}

/// The mean of the channels of every whole step.
pub fn mono(samples: &[f32], channels: usize) -> impl Iterator<Item = f32> {
    let steps = samples.chunks_exact(channels);
    steps.map(move |step| step.iter().sum::<f32>() / channels as f32)
}

/// Decodes sound as its bytes arrive: WAV at once, FLAC once it is complete. Whole files are read in the same way.
#[derive(Clone, Debug)]
pub struct SoundReader {
    kind: Kind,
    /// The most samples of a file that is decoded as a whole.
    most: usize,
}

#[derive(Clone, Debug)]
enum Kind {
    /// The first bytes, until the format is known.
    Unknown(Vec<u8>),
    Wav(WavReader),
    Flac(Vec<u8>, Option<SoundFormat>),
    Raw(SoundFormat, Samples),
}

impl SoundReader {
    /// A reader for WAV or FLAC; the first four bytes tell which.
    pub fn new() -> Self {
        Self { kind: Kind::Unknown(Vec::new()), most: SAMPLES }
    }

    /// Whether the first four bytes are those of WAV or FLAC.
    pub fn knows(first: &[u8]) -> bool {
        matches!(first.first_chunk(), Some(b"RIFF" | b"fLaC"))
    }

    /// A reader for samples of one channel without a header.
    pub fn raw(coding: Coding, rate: u32) -> Self {
        let format = SoundFormat { rate, channels: 1, bits: coding.bits() };
        Self { kind: Kind::Raw(format, Samples::new(coding, 1)), most: SAMPLES }
    }

    /// The format of the samples, as soon as it is known.
    pub fn format(&self) -> Option<SoundFormat> {
        match &self.kind {
            Kind::Unknown(_) => None,
            Kind::Wav(wav) => wav.format(),
            Kind::Flac(_, format) => *format,
            Kind::Raw(format, _) => Some(*format),
        }
    }

    /// Takes bytes and adds the samples of all whole steps in them, from -1 to 1, to `out`; `Err` says what is wrong.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<f32>) -> std::result::Result<(), String> {
        match &mut self.kind {
            Kind::Unknown(first) => {
                first.extend_from_slice(bytes);
                let Some(magic) = first.first_chunk::<4>() else { return Ok(()) };
                let kind = match magic {
                    b"RIFF" => Kind::Wav(WavReader::new()),
                    b"fLaC" => Kind::Flac(Vec::new(), None),
                    _ => return Err(unknown(magic)),
                };
                let first = std::mem::take(first);
                self.kind = kind;
                self.push(&first, out)
            }
            Kind::Wav(wav) => wav.push(bytes, out),
            Kind::Flac(all, _) if all.len() + bytes.len() > FLAC_BYTES => {
                Err(format!("FLAC of over {} MiB; convert it to WAV", FLAC_BYTES >> 20))
            }
            Kind::Flac(all, _) => {
                all.extend_from_slice(bytes);
                Ok(())
            }
            Kind::Raw(_, samples) => samples.push(bytes, out),
        }
    }

    /// At the end of the bytes: adds what is left; `Err` says what is missing.
    pub fn finish(&mut self, out: &mut Vec<f32>) -> std::result::Result<(), String> {
        match &mut self.kind {
            Kind::Unknown(first) => Err(format!("only {} bytes; get the file again", first.len())),
            Kind::Wav(wav) => wav.finish(),
            Kind::Flac(all, format) => {
                let audio = flac::decode(all, self.most)?;
                let Audio { rate, channels, bits, samples } = audio;
                *format = Some(SoundFormat { rate, channels, bits });
                out.extend(samples);
                Ok(())
            }
            Kind::Raw(_, samples) => samples.finish(),
        }
    }
}

impl Default for SoundReader {
    fn default() -> Self {
        Self::new()
    }
}

/// Reads a WAV or FLAC file; its first bytes tell which.
pub fn read(path: &Path) -> Result<Audio> {
    decode(&io::read(path)?, SAMPLES).map_err(|what| Error::content(path, what))
}

/// Decodes a WAV or FLAC file of at most `most` samples; `Err` says what is wrong with it.
pub(crate) fn decode(bytes: &[u8], most: usize) -> std::result::Result<Audio, String> {
    let mut reader = SoundReader { most, ..SoundReader::new() };
    let mut samples = Vec::new();
    // Piece by piece, so that a file that is too long is refused before it takes memory.
    for piece in bytes.chunks(1 << 16) {
        reader.push(piece, &mut samples)?;
        if samples.len() > most {
            return Err(too_long(samples.len() as u64, most));
        }
    }
    reader.finish(&mut samples)?;
    let SoundFormat { rate, channels, bits } = reader.format().ok_or("cut short in its header")?;
    Ok(Audio { rate, channels, bits, samples })
}

fn unknown(magic: &[u8; 4]) -> String {
    let found = magic.escape_ascii();
    format!(
        "neither WAV nor FLAC: it starts with \"{found}\", not with \"RIFF\" or \"fLaC\"; convert the file"
    )
}

fn too_long(samples: u64, most: usize) -> String {
    format!("at least {samples} samples; at most {most} are read")
}
