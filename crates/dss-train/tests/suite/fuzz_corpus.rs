//! The kept corpus of the fuzz targets, and changes of it: nothing that is read may panic.

use std::io::Write;
use std::path::Path;

use crate::fuzz_targets as targets;

/// Changes of each file.
const CHANGES: u64 = 60;

#[test]
fn no_file_of_the_corpus_panics() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    if !corpus.is_dir() {
        // Not by eprintln!, which tests show only when they fail.
        let _ = writeln!(std::io::stderr(), "skipped: the corpus is not part of this package");
        return;
    }
    let (mut files, mut changes) = (0, 0);
    for (name, target) in targets::ALL {
        let folder = std::fs::read_dir(corpus.join(name)).unwrap();
        for entry in folder.map(|entry| entry.unwrap()) {
            let bytes = std::fs::read(entry.path()).unwrap();
            let run = |bytes: &[u8], what: &str| {
                let panicked = std::panic::catch_unwind(|| target(bytes)).is_err();
                assert!(!panicked, "{}: {what}", entry.path().display());
            };
            run(&bytes, "as it is");
            files += 1;
            for change in 0..CHANGES {
                run(&changed(&bytes, change), &format!("change {change}"));
                changes += 1;
            }
        }
    }
    assert!(files >= 20, "{files} files");
    eprintln!("{files} files, {changes} changes");
}

/// The programs of the targets are compiled by `cargo fuzz` only: each is one call of what this test compiles.
#[test]
fn every_target_has_its_program() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let Ok(manifest) = std::fs::read_to_string(fuzz.join("Cargo.toml")) else { return };
    let program = |name: &str| {
        format!(
            "#![no_main]\n\n#[path = \"../../crates/dss-train/tests/suite/fuzz_targets.rs\"]\n\
             #[allow(dead_code)]\nmod targets;\n\n\
             libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::{name}(bytes));\n"
        )
    };
    for (name, _) in targets::ALL {
        let path = format!("fuzz_targets/{name}.rs");
        assert!(manifest.contains(&format!("path = \"{path}\"")), "{name}");
        assert_eq!(std::fs::read_to_string(fuzz.join(path)).unwrap(), program(name));
    }
    let programs = std::fs::read_dir(fuzz.join("fuzz_targets")).unwrap().count();
    assert_eq!(programs, targets::ALL.len());
}

/// The bytes with a bit flipped, cut short, or with a byte replaced by an extreme one; the same for the same number.
fn changed(bytes: &[u8], change: u64) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if bytes.is_empty() {
        return vec![change as u8];
    }
    // SplitMix64.
    let mut z = change.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let at = (z >> 8) as usize % bytes.len();
    match change % 4 {
        0 => bytes[at] ^= 1 << (z % 8),
        1 => bytes.truncate(at),
        2 => bytes[at] = [0, 0xff, b'9', b'-', b'"', b'\n'][(z % 6) as usize],
        _ => bytes.extend_from_within(at..),
    }
    bytes
}
