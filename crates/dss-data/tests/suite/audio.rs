//! Sound files: what was written is read, damage is noticed.

use crate::{common, encode};
use std::fs;

use dss_data::audio::{self, Audio};
use proptest::prelude::*;

fn read(bytes: &[u8]) -> dss_data::Result<Audio> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("clip.flac");
    fs::write(&path, bytes).unwrap();
    audio::read(&path)
}

fn fault(bytes: &[u8]) -> String {
    read(bytes).unwrap_err().to_string()
}

#[test]
fn flac_and_wav_give_the_same_samples() {
    let samples: Vec<i16> = (0..10_000).map(|n: i32| (n * n % 65_521 - 32_760) as i16).collect();
    let flac = read(&encode::flac(&samples, 16_000)).unwrap();
    assert_eq!(flac, read(&encode::wav(&samples, 16_000, 1)).unwrap());
    assert_eq!((flac.rate, flac.channels, flac.bits, flac.samples.len()), (16_000, 1, 16, 10_000));
    assert_eq!(flac.samples[7], f32::from(samples[7]) / 32768.0);
    let stereo = read(&encode::wav(&samples, 44_100, 2)).unwrap();
    assert_eq!((stereo.rate, stereo.channels, stereo.samples), (44_100, 2, flac.samples));
}

#[test]
fn faults_are_named() {
    let whole = encode::flac(&[7; 9_000], 16_000);
    assert!(fault(b"OggS....").contains("neither WAV nor FLAC: it starts with \"OggS\""));
    assert!(fault(b"").contains("clip.flac: only 0 bytes"));
    let cut = fault(&whole[..42 + 8_000]);
    assert!(cut.contains("cut short"), "{cut}");
    // The first frame alone: 4,096 samples of two bytes, 11 bytes around them.
    let between = fault(&whole[..42 + 2 * 4_096 + 11]);
    assert!(between.contains("the header announces 9000 samples, but 4096 follow"), "{between}");
    let mut damaged = whole.clone();
    damaged[5_000] ^= 1;
    let damaged = fault(&damaged);
    assert!(damaged.contains("damaged FLAC"), "{damaged}");
    let mut long = whole;
    long[21..26].fill(0xff);
    let long = fault(&long);
    assert!(long.contains("samples; at most"), "{long}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = read(&bytes);
        let _ = read(&[b"fLaC", &bytes[..]].concat());
        let header = encode::flac(&[], 16_000);
        let _ = read(&[&header[..], &bytes[..]].concat());
        // Any content of a frame: constant, verbatim, or predicted with any orders, shifts and residuals.
        let _ = read(&[&header[..], &encode::flac_frame_head(0, 96), &bytes].concat());
    }

    #[test]
    fn damage_is_noticed(at in 0usize..500, bit in 0u8..8, cut in 0usize..500) {
        let samples: Vec<i16> = (0..230).map(|n: i32| (n * n / 3) as i16).collect();
        let whole = encode::flac(&samples, 16_000);
        let right = read(&whole).unwrap();
        let mut damaged = whole.clone();
        let at = at % whole.len();
        damaged[at] ^= 1 << bit;
        // Frames are summed; of the header, the sums of frames tell nothing.
        if let Ok(audio) = read(&damaged) {
            prop_assert!(at < 42 || audio == right, "byte {at}");
        }
        prop_assert!(read(&whole[..cut % whole.len()]).is_err());
    }
}

/// Compressed frames: a clip of Speech Commands with bytes changed behind its header.
#[test]
fn real_clips_with_damage_do_not_panic() {
    let Some(path) = common::data("speech_commands10/sc10_core_flac.tar") else { return };
    let mut archive = tar::Archive::new(fs::File::open(path).unwrap());
    let entries = archive.entries().unwrap().map(|entry| entry.unwrap());
    for mut entry in entries.filter(|entry| entry.size() > 0).take(8) {
        let mut whole = Vec::new();
        std::io::Read::read_to_end(&mut entry, &mut whole).unwrap();
        let right = read(&whole).unwrap();
        let changes = prop::collection::vec((42..whole.len(), any::<u8>()), 1..20);
        let check = |changes: Vec<(usize, u8)>| {
            let mut damaged = whole.clone();
            changes.iter().for_each(|&(at, byte)| damaged[at] = byte);
            prop_assert!(read(&damaged).map_or(true, |audio| audio == right));
            Ok(())
        };
        // A runner counts its cases over all runs: each clip has its own.
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        runner.run(&changes, check).unwrap();
    }
}
