//! FLAC, decoded by `claxon`, which checks the sums of every frame.

use std::io::Cursor;

use claxon::{Error, FlacReader};

use super::{Audio, too_long};

pub(super) fn decode(bytes: &[u8], most: usize) -> Result<Audio, String> {
    let mut reader = FlacReader::new(Cursor::new(bytes)).map_err(damaged)?;
    let info = reader.streaminfo();
    let (channels, bits) = (info.channels as usize, info.bits_per_sample);
    if channels == 0 || info.sample_rate == 0 || !(4..=32).contains(&bits) {
        return Err("its header is invalid; get the file again".into());
    }
    let announced = info.samples.filter(|&n| n > 0).map(|n| n.saturating_mul(channels as u64));
    if let Some(n) = announced.filter(|&n| n > most as u64) {
        return Err(too_long(n, most));
    }
    let scale = 0.5f64.powi(bits as i32 - 1);
    let mut samples = Vec::with_capacity(announced.unwrap_or(0) as usize);
    let mut blocks = reader.blocks();
    let mut buffer = Vec::new();
    while let Some(block) = blocks.read_next_or_eof(buffer).map_err(damaged)? {
        if block.channels() as usize != channels {
            return Err(format!("changes from {channels} to {} channels", block.channels()));
        }
        let more = block.duration() as usize * channels;
        if samples.len() + more > most {
            return Err(too_long((samples.len() + more) as u64, most));
        }
        let steps = 0..block.duration();
        let step = |i| (0..block.channels()).map(move |c| (c, i));
        samples.extend(
            steps.flat_map(step).map(|(c, i)| (f64::from(block.sample(c, i)) * scale) as f32),
        );
        buffer = block.into_buffer();
    }
    match announced {
        Some(n) if n != samples.len() as u64 => Err(format!(
            "cut short: the header announces {n} samples, but {} follow",
            samples.len()
        )),
        _ => Ok(Audio { rate: info.sample_rate, channels, bits, samples }),
    }
}

fn damaged(error: Error) -> String {
    match error {
        Error::IoError(error) => format!("cut short ({error})"),
        Error::FormatError(what) => format!("damaged FLAC ({what})"),
        Error::Unsupported(what) => format!("unsupported FLAC ({what})"),
    }
}
