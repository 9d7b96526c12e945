//! WAV as its bytes arrive: "RIFF", a size, "WAVE", then chunks of a name, a size and as many bytes. `fmt ` says how the
//! samples of `data` are written. Numbers are little-endian.

use super::SoundFormat;
use super::samples::{Coding, Samples};

const PCM: u16 = 1;
const FLOAT: u16 = 3;
/// The format is the first two bytes of a longer code, 24 bytes into the chunk.
const EXTENSIBLE: u16 = 0xfffe;
/// Programs that write to a pipe do not know the size of the data: they write 0, or a number from here on (`sox`
/// 0x7FFFF000, `arecord` 0x80000000, `ffmpeg` 0xFFFFFFFF). The data then extend to the end of the file.
const UNKNOWN: u32 = 0x7fff_f000;
/// The longest `fmt ` chunk that is accepted; 40 bytes are usual.
const FORMAT_LIMIT: u32 = 1 << 16;

/// A WAV file, as far as it has arrived.
#[derive(Clone, Debug)]
pub(super) struct WavReader {
    stage: Stage,
    /// Bytes of a part of the header that is not complete.
    pending: Vec<u8>,
    format: Option<(SoundFormat, Coding)>,
}

#[derive(Clone, Debug)]
enum Stage {
    /// "RIFF", a size, "WAVE".
    Start,
    /// A chunk's name and size.
    Chunk,
    /// The body of `fmt `.
    Format { size: usize },
    /// Bytes that are skipped.
    Skip { left: u64 },
    /// The samples: of `size` bytes (`None` = all that come) so many have come.
    Data { samples: Samples, size: Option<u64>, taken: u64 },
}

impl WavReader {
    pub(super) fn new() -> Self {
        Self { stage: Stage::Start, pending: Vec::new(), format: None }
    }

    /// What the header says, once the samples begin.
    pub(super) fn format(&self) -> Option<SoundFormat> {
        match self.stage {
            Stage::Data { .. } => self.format.map(|(format, _)| format),
            _ => None,
        }
    }

    /// Takes bytes and adds the samples in them, whole steps only, to `out`.
    pub(super) fn push(&mut self, mut bytes: &[u8], out: &mut Vec<f32>) -> Result<(), String> {
        loop {
            match &mut self.stage {
                Stage::Data { samples, size, taken } => {
                    let count = (bytes.len() as u64).min(size.unwrap_or(u64::MAX) - *taken);
                    *taken += count;
                    return samples.push(&bytes[..count as usize], out);
                }
                Stage::Skip { left } => {
                    let count = (bytes.len() as u64).min(*left) as usize;
                    *left -= count as u64;
                    bytes = &bytes[count..];
                    if *left > 0 {
                        return Ok(());
                    }
                    self.stage = Stage::Chunk;
                }
                stage => {
                    let size = match stage {
                        Stage::Start => 12,
                        Stage::Format { size } => *size,
                        _ => 8,
                    };
                    let missing = size - self.pending.len();
                    let (now, rest) = bytes.split_at(missing.min(bytes.len()));
                    self.pending.extend_from_slice(now);
                    bytes = rest;
                    if now.len() < missing {
                        return Ok(());
                    }
                    self.part()?;
                }
            }
        }
    }

    /// A part of the header is complete.
    fn part(&mut self) -> Result<(), String> {
        let part = std::mem::take(&mut self.pending);
        self.stage = match self.stage {
            Stage::Start if &part[..4] != b"RIFF" => return Err("not a WAV file".into()),
            Stage::Start if &part[8..] != b"WAVE" => return Err("a RIFF file, but not WAV".into()),
            Stage::Format { .. } => {
                self.format = Some(read_format(&part)?);
                // A chunk of odd size is followed by one byte of padding.
                Stage::Skip { left: part.len() as u64 % 2 }
            }
            Stage::Chunk => {
                let size = u32_at(&part, 4);
                match &part[..4] {
                    b"data" => {
                        let (format, coding) =
                            self.format.ok_or("the samples come before their format")?;
                        let size = (1..UNKNOWN).contains(&size).then_some(u64::from(size));
                        let samples = Samples::new(coding, format.channels);
                        Stage::Data { samples, size, taken: 0 }
                    }
                    b"fmt " if size > FORMAT_LIMIT => {
                        return Err("its header is damaged: the format is too long".into());
                    }
                    b"fmt " => Stage::Format { size: size as usize },
                    _ => Stage::Skip { left: u64::from(size) + u64::from(size % 2) },
                }
            }
            _ => Stage::Chunk,
        };
        Ok(())
    }

    /// At the end of the bytes: checks that all announced data have come. A recording of unknown length may end within
    /// a sample.
    pub(super) fn finish(&self) -> Result<(), String> {
        match &self.stage {
            Stage::Data { size: Some(size), taken, .. } if taken < size => Err(format!(
                "cut short: the header announces {size} bytes of samples, but {taken} follow"
            )),
            Stage::Data { samples, size: Some(_), .. } => samples.finish(),
            Stage::Data { size: None, .. } => Ok(()),
            Stage::Chunk if self.pending.is_empty() => {
                Err("no samples in this file (its chunk \"data\" is missing); get the file again"
                    .into())
            }
            _ => Err("cut short in its header".into()),
        }
    }
}

fn read_format(chunk: &[u8]) -> Result<(SoundFormat, Coding), String> {
    if chunk.len() < 16 {
        return Err("its header is too short".into());
    }
    let code = match u16_at(chunk, 0) {
        EXTENSIBLE if chunk.len() >= 26 => u16_at(chunk, 24),
        code => code,
    };
    let (channels, rate, bits) =
        (usize::from(u16_at(chunk, 2)), u32_at(chunk, 4), u32::from(u16_at(chunk, 14)));
    if channels == 0 || rate == 0 {
        return Err("its header says 0 channels or 0 samples per second".into());
    }
    let coding = match (code, bits) {
        (PCM, 8) => Coding::U8,
        (PCM, 16) => Coding::S16,
        (PCM, 24) => Coding::S24,
        (PCM, 32) => Coding::S32,
        (FLOAT, 32) => Coding::F32,
        _ => {
            return Err(format!(
                "samples of format {code} with {bits} bits; only PCM (1) of 8, 16, 24 or 32 bits and float (3) of 32 bits can be read"
            ));
        }
    };
    Ok((SoundFormat { rate, channels, bits }, coding))
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) | u32::from(u16_at(bytes, at + 2)) << 16
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::decode;
    use super::*;

    fn chunk(name: &[u8; 4], body: &[u8]) -> Vec<u8> {
        let mut bytes = name.to_vec();
        bytes.extend((body.len() as u32).to_le_bytes());
        bytes.extend_from_slice(body);
        bytes.resize(bytes.len().next_multiple_of(2), 0);
        bytes
    }

    fn format(code: u16, channels: u16, rate: u32, bits: u16) -> Vec<u8> {
        let width = channels * bits / 8;
        let mut body = Vec::new();
        body.extend(code.to_le_bytes());
        body.extend(channels.to_le_bytes());
        body.extend(rate.to_le_bytes());
        body.extend((rate * u32::from(width)).to_le_bytes());
        body.extend(width.to_le_bytes());
        body.extend(bits.to_le_bytes());
        body
    }

    fn wav(chunks: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = b"RIFF\0\0\0\0WAVE".to_vec();
        chunks.iter().for_each(|chunk| bytes.extend(chunk));
        let size = bytes.len() as u32 - 8;
        bytes[4..8].copy_from_slice(&size.to_le_bytes());
        bytes
    }

    fn simple(code: u16, channels: u16, bits: u16, data: &[u8]) -> Vec<u8> {
        wav(&[chunk(b"fmt ", &format(code, channels, 16_000, bits)), chunk(b"data", data)])
    }

    #[test]
    fn every_depth() {
        let read =
            |code, bits, data: &[u8]| decode(&simple(code, 1, bits, data), 9).unwrap().samples;
        assert_eq!(read(PCM, 8, &[0, 128, 192]), [-1.0, 0.0, 0.5]);
        assert_eq!(read(PCM, 16, &[0, 0x80, 1, 0, 0, 0x40]), [-1.0, 1.0 / 32768.0, 0.5]);
        assert_eq!(read(PCM, 24, &[0, 0, 0x80, 0, 0, 0x20]), [-1.0, 0.25]);
        assert_eq!(read(PCM, 32, &[0, 0, 0, 0xc0]), [-0.5]);
        assert_eq!(read(FLOAT, 32, &0.3f32.to_le_bytes()), [0.3]);
        let stereo = decode(&simple(PCM, 2, 16, &[0; 8]), 9).unwrap();
        assert_eq!((stereo.channels, stereo.samples.len(), stereo.bits), (2, 4, 16));
    }

    #[test]
    fn other_chunks_are_passed_over() {
        let mut long = format(EXTENSIBLE, 1, 8000, 16);
        long.extend([22, 0, 16, 0, 4, 0, 0, 0, 1, 0]);
        long.resize(40, 0);
        let mut bytes = wav(&[
            chunk(b"LIST", b"odd"),
            chunk(b"fmt ", &long),
            chunk(b"data", &[0; 4]),
            vec![7; 5],
        ]);
        let audio = decode(&bytes, 9).unwrap();
        assert_eq!((audio.rate, audio.samples.len()), (8000, 2));
        bytes.truncate(bytes.len() - 5);
        let at = bytes.len() - 8;
        for size in [0u32, 0x7fff_f000, 0x8000_0000, u32::MAX] {
            bytes[at..at + 4].copy_from_slice(&size.to_le_bytes());
            assert_eq!(decode(&bytes, 9).unwrap().samples.len(), 2, "from a pipe");
        }
        bytes.push(0);
        assert_eq!(decode(&bytes, 9).unwrap().samples.len(), 2, "stopped within a sample");
    }

    #[test]
    fn pieces_of_any_size_give_the_same_samples() {
        let bytes = wav(&[
            chunk(b"LIST", b"odd"),
            chunk(b"fmt ", &format(PCM, 2, 8000, 24)),
            chunk(b"data", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]),
            vec![7; 5],
        ]);
        let whole = decode(&bytes, 9).unwrap();
        assert_eq!((whole.rate, whole.channels, whole.samples.len()), (8000, 2, 4));
        for size in 1..bytes.len() {
            let (mut reader, mut samples) = (super::super::SoundReader::new(), Vec::new());
            bytes.chunks(size).for_each(|piece| reader.push(piece, &mut samples).unwrap());
            reader.finish(&mut samples).unwrap();
            assert_eq!(samples, whole.samples, "{size}");
        }
    }

    #[test]
    fn faults_are_named() {
        let good = simple(PCM, 1, 16, &[0; 8]);
        let mut other = good.clone();
        other[8] = b'A';
        let late = wav(&[chunk(b"data", &[0; 4]), chunk(b"fmt ", &format(1, 1, 1, 16))]);
        let cases = [
            (other, "not WAV"),
            (
                good[..good.len() - 1].to_vec(),
                "the header announces 8 bytes of samples, but 7 follow",
            ),
            (good[..30].to_vec(), "cut short in its header"),
            (good[..36].to_vec(), "\"data\" is missing"),
            (late, "before their format"),
            (simple(PCM, 1, 16, &[0; 3]), "not a multiple of 2"),
            (simple(PCM, 1, 12, &[0; 3]), "format 1 with 12 bits"),
            (simple(6, 1, 8, &[0; 3]), "format 6 with 8 bits"),
            (simple(PCM, 0, 16, &[0; 4]), "0 channels"),
            (simple(PCM, 1, 16, &[0; 20]), "10 samples; at most 9"),
            (simple(FLOAT, 1, 32, &f32::NAN.to_le_bytes()), "sample 0 is NaN"),
            (wav(&[chunk(b"fmt ", &[0; 9])]), "too short"),
        ];
        for (bytes, part) in cases {
            let error = decode(&bytes, 9).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes, 1000);
            let _ = decode(&[b"RIFF\0\0\0\0WAVE", &bytes[..]].concat(), 1000);
            let _ = decode(&[b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0", &bytes[..]].concat(), 1000);
        }

        #[test]
        fn no_damage_makes_it_panic(at in 0usize..60, byte in any::<u8>(), cut in 0usize..60) {
            let mut bytes = simple(PCM, 1, 16, &[3; 16]);
            bytes[at] = byte;
            let _ = decode(&bytes, 1000);
            let _ = decode(&bytes[..cut], 1000);
        }

        #[test]
        fn sixteen_bits_come_back(samples in prop::collection::vec(any::<i16>(), 0..50)) {
            let data: Vec<u8> = samples.iter().flat_map(|s| s.to_le_bytes()).collect();
            let audio = decode(&simple(PCM, 1, 16, &data), 50).unwrap();
            let back: Vec<i16> = audio.samples.iter().map(|s| (s * 32768.0) as i16).collect();
            prop_assert_eq!(back, samples);
        }
    }
}
