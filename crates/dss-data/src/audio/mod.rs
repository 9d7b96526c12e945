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
mod wav;

use std::path::Path;

use crate::{Error, Result, io};

/// The most samples of a file, all channels together: over an hour at 16 kHz.
const SAMPLES: usize = 1 << 26;

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

/// Reads a WAV or FLAC file; which one it is, its first bytes say.
pub fn read(path: &Path) -> Result<Audio> {
    from_bytes(&io::read(path)?).map_err(|what| Error::content(path, what))
}

/// Decodes the bytes of a WAV or FLAC file; `Err` says what is wrong with them.
pub fn from_bytes(bytes: &[u8]) -> std::result::Result<Audio, String> {
    decode(bytes, SAMPLES)
}

/// Decodes a WAV or FLAC file of at most `most` samples; `Err` says what is wrong with it.
pub(crate) fn decode(bytes: &[u8], most: usize) -> std::result::Result<Audio, String> {
    match bytes.first_chunk::<4>() {
        Some(b"RIFF") => wav::decode(bytes, most),
        Some(b"fLaC") => flac::decode(bytes, most),
        Some(magic) => Err(format!(
            "neither WAV nor FLAC: it starts with \"{}\", not with \"RIFF\" or \"fLaC\"",
            magic.escape_ascii()
        )),
        None => Err(format!("only {} bytes; get the file again", bytes.len())),
    }
}

fn too_long(samples: u64, most: usize) -> String {
    format!("{samples} samples; at most {most} are read")
}
