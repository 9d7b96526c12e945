//! Damaged copies of sound checkpoints: an error or a model, never a panic.

use std::fs;
use std::path::Path;

use dss_exchange::{ImportOptions, import};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::golden::settings;

/// Of each file; `DSS_MUTATIONS` sets another number.
const MUTATIONS: usize = 600;

#[test]
fn damaged_copies() {
    let count = std::env::var("DSS_MUTATIONS").map_or(MUTATIONS, |n| n.parse().unwrap());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let files = [
        "ag1988/softmax_bn_post.pt",
        "ag1988/softmax_bn_post.legacy.pt",
        "ag1988/softmax_bn_post.oldlightning.ckpt",
        "ag1988/softmax_bn_post.safetensors",
        "s4/block_nplr_s1.pth",
    ];
    let mut rng = ChaCha8Rng::seed_from_u64(20);
    let (mut refused, mut imported) = (0, 0);
    for file in files {
        let path = folder.join(file);
        let sound = fs::read(&path).unwrap();
        let name = file.split('.').next().unwrap();
        let config = settings(&folder.join(format!("{name}.config.yaml")));
        for _ in 0..count {
            let bytes = mutated(&sound, &mut rng);
            let options = ImportOptions { settings: config.clone(), ..Default::default() };
            match import(&bytes, &options) {
                Ok(_) => imported += 1,
                Err(_) => refused += 1,
            }
        }
    }
    assert_eq!(refused + imported, files.len() * count);
    assert!(refused > imported / 10, "{refused} refused, {imported} imported");
}

/// One to three changes; half of them where the structure is: at the beginning or the end.
fn mutated(sound: &[u8], rng: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = sound.to_vec();
    let mut below = |n: usize| (rng.next_u64() % n.max(1) as u64) as usize;
    for _ in 0..1 + below(3) {
        let len = bytes.len();
        let at = match below(4) {
            0 => below(len.min(4096)),
            1 => len.saturating_sub(1 + below(len.min(4096))),
            _ => below(len),
        };
        match below(7) {
            0 => bytes[at] = below(256) as u8,
            1 => bytes[at] ^= 1 << below(8),
            2 => bytes.truncate(at.max(1)),
            3 => {
                let end = (at + below(64)).min(len);
                bytes.drain(at..end);
            }
            4 => {
                let piece = bytes[at..(at + below(64)).min(len)].to_vec();
                let to = below(len);
                bytes.splice(to..to, piece);
            }
            5 => {
                let end = (at + 8).min(len);
                bytes[at..end].fill(0xff);
            }
            _ => bytes.insert(at, below(256) as u8),
        }
        if bytes.is_empty() {
            bytes.push(0);
        }
    }
    bytes
}
