//! WAV: "RIFF", a size, "WAVE", then chunks of a name, a size and as many bytes. `fmt ` says how the samples of `data`
//! are written. Numbers are little-endian.

use super::{Audio, too_long};

const PCM: u16 = 1;
const FLOAT: u16 = 3;
/// The format stands in the first two bytes of a longer code, 24 bytes into the chunk.
const EXTENSIBLE: u16 = 0xfffe;
/// Size of the data of a file that was written to a pipe: they go to the end.
const UNKNOWN: usize = u32::MAX as usize;

struct Format {
    code: u16,
    channels: usize,
    rate: u32,
    bits: u32,
}

pub(super) fn decode(bytes: &[u8], most: usize) -> Result<Audio, String> {
    if bytes.get(8..12) != Some(b"WAVE") {
        return Err("a RIFF file, but not WAV".into());
    }
    let mut rest = &bytes[12..];
    let mut format = None;
    while let Some((head, body)) = rest.split_first_chunk::<8>() {
        let (name, size) = (&head[..4], u32_at(head, 4) as usize);
        match name {
            b"data" => {
                let format = format.ok_or("the samples come before their format")?;
                let data = if size == UNKNOWN { Some(body) } else { body.get(..size) };
                let short = || {
                    format!(
                        "cut short: {size} bytes of samples are announced, {} follow",
                        body.len()
                    )
                };
                return samples(format, data.ok_or_else(short)?, most);
            }
            b"fmt " => {
                format =
                    Some(body.get(..size).ok_or("cut short in its header").and_then(read_format)?)
            }
            _ => {}
        }
        // A chunk of odd size is followed by one byte of padding.
        rest = body.get(size + size % 2..).ok_or("cut short in its header")?;
    }
    Err("no samples in this file (its chunk \"data\" is missing); get the file again".into())
}

fn read_format(chunk: &[u8]) -> Result<Format, &'static str> {
    if chunk.len() < 16 {
        return Err("its header is too short");
    }
    let code = match u16_at(chunk, 0) {
        EXTENSIBLE if chunk.len() >= 26 => u16_at(chunk, 24),
        code => code,
    };
    let (channels, rate) = (u16_at(chunk, 2).into(), u32_at(chunk, 4));
    if channels == 0 || rate == 0 {
        return Err("its header says 0 channels or 0 samples per second");
    }
    Ok(Format { code, channels, rate, bits: u16_at(chunk, 14).into() })
}

fn samples(format: Format, data: &[u8], most: usize) -> Result<Audio, String> {
    let Format { code, channels, rate, bits } = format;
    if !matches!((code, bits), (PCM, 8 | 16 | 24 | 32) | (FLOAT, 32)) {
        return Err(format!(
            "samples of format {code} with {bits} bits; PCM (1) of 8, 16, 24 or 32 bits and float (3) of 32 bits are read"
        ));
    }
    let width = bits as usize / 8;
    if !data.len().is_multiple_of(width * channels) {
        return Err(format!(
            "cut short: {} bytes of samples are not a multiple of {}",
            data.len(),
            width * channels
        ));
    }
    if data.len() / width > most {
        return Err(too_long((data.len() / width) as u64, most));
    }
    let each = data.chunks_exact(width);
    // The bytes of a sample, on top of zeros: its value times 2^31.
    let high = |s: &[u8]| {
        let mut four = [0; 4];
        four[4 - s.len()..].copy_from_slice(s);
        i32::from_le_bytes(four)
    };
    let samples: Vec<f32> = match (code, bits) {
        (PCM, 8) => data.iter().map(|&s| (f32::from(s) - 128.0) / 128.0).collect(),
        (PCM, _) => each.map(|s| (f64::from(high(s)) / 2f64.powi(31)) as f32).collect(),
        _ => each.map(|s| f32::from_bits(high(s) as u32)).collect(),
    };
    match samples.iter().position(|s| !s.is_finite()) {
        Some(i) => Err(format!("sample {i} is {}", samples[i])),
        None => Ok(Audio { rate, channels, bits, samples }),
    }
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
        bytes[at..at + 4].fill(0xff);
        assert_eq!(decode(&bytes, 9).unwrap().samples.len(), 2, "from a pipe");
    }

    #[test]
    fn faults_are_named() {
        let good = simple(PCM, 1, 16, &[0; 8]);
        let mut other = good.clone();
        other[8] = b'A';
        let late = wav(&[chunk(b"data", &[0; 4]), chunk(b"fmt ", &format(1, 1, 1, 16))]);
        let cases = [
            (other, "not WAV"),
            (good[..good.len() - 1].to_vec(), "8 bytes of samples are announced, 7 follow"),
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
